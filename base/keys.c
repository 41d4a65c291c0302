/* THE table of configuration keys; its rows are in keys_*.def, by area. */
#include "base/config.h"

/* clang-format off */
#define INT(name, fallback, min, max, unit, help)                                      \
    {name, PL_KEY_INT, unit, fallback, min, max, NULL, help}
#define REAL(name, fallback, min, max, unit, help)                                     \
    {name, PL_KEY_REAL, unit, fallback, min, max, NULL, help}
#define BOOL(name, fallback, help) {name, PL_KEY_BOOL, "", fallback, 0, 1, NULL, help}
#define TEXT(name, fallback, help) {name, PL_KEY_TEXT, "", fallback, 0, 0, NULL, help}
#define NAME(name, fallback, choices, help)                                            \
    {name, PL_KEY_NAME, "", fallback, 0, 0, choices, help}
#define TIME(name, fallback, help) {name, PL_KEY_TIME, "s", fallback, 0, 0, NULL, help}
#define TIMES(name, fallback, help) {name, PL_KEY_TIMES, "s", fallback, 0, 0, NULL, help}
/* clang-format on */

static const char *const cost_types[] = {"given", "roofline", NULL};
static const char *const semantics[] = {"latency", "occupancy", "rendezvous",
                                        "contention", NULL};
static const char *const orders[] = {"issued", "free", NULL};
static const char *const scopes[] = {"auto", "global", "stage", "none", NULL};
static const char *const iterates[] = {"x", "y", NULL};
static const char *const gates[] = {"none", "cosine", NULL};
static const char *const decay_points[] = {"current", "stale", NULL};
static const char *const fidelities[] = {"auto",    "global", "stash",
                                         "nostash", "queue",  NULL};
static const char *const starts[] = {"zero", "hold", NULL};
static const char *const tasks[] = {"classification", "regression", NULL};
static const char *const ties[] = {"no", "yes", NULL};
static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
static const char *const mlps[] = {"swiglu", "gelu", NULL};
static const char *const biases[] = {"none", "qkv", "attention", "all", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};
static const char *const qk_norms[] = {"none", "head", "full", NULL};
static const char *const scorings[] = {"softmax", "sigmoid", NULL};
static const char *const inits[] = {"scaled", "normal", "truncated", "width", NULL};

const struct pl_key pl_keys[] = {
#include "base/keys_sim.def"
#include "base/keys_model.def"
#include "base/keys_train.def"
#include "base/keys_update.def"
    {NULL, 0, NULL, NULL, 0, 0, NULL, NULL},
};
