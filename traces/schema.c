#include "traces/schema.h"

#include <assert.h>
#include <string.h>

#include "base/config.h"
#include "base/mem.h"
#include "traces/sweep.h"

const char *const pl_kind_names[] = {"F", "B", "W", "BW", "U", NULL};

#define END                                    \
    {                                          \
        NULL, PL_COLUMN_I64, NULL, NULL, false \
    }

static const struct pl_column timeline[] = {
    {"kind", PL_COLUMN_KIND, "1", "kind of op", false},
    {"device", PL_COLUMN_I64, "1", "device, from 0", false},
    {"chunk", PL_COLUMN_I64, "1", "instance: replica * model chunks + model chunk",
     false},
    {"micro", PL_COLUMN_I64, "1", "microbatch over the whole run; of U the update",
     false},
    {"start", PL_COLUMN_I64, "ps", "simulated start", false},
    {"end", PL_COLUMN_I64, "ps", "simulated end", false},
    END};

static const struct pl_column messages[] = {
    {"kind", PL_COLUMN_KIND, "1", "F: activation, B: gradient of the activation",
     false},
    {"src", PL_COLUMN_I64, "1", "sending device", false},
    {"dst", PL_COLUMN_I64, "1", "receiving device", false},
    {"chunk", PL_COLUMN_I64, "1", "sending instance", false},
    {"micro", PL_COLUMN_I64, "1", "microbatch over the whole run", false},
    {"sent", PL_COLUMN_I64, "ps", "simulated departure", false},
    {"arrived", PL_COLUMN_I64, "ps", "simulated arrival", false},
    END};

static const struct pl_column memory[] = {
    {"device", PL_COLUMN_I64, "1", "device, from 0", false},
    {"time", PL_COLUMN_I64, "ps", "simulated time from which the value holds", false},
    {"bytes", PL_COLUMN_I64, "byte", "memory in use on the device", false},
    END};

static const struct pl_column costs[] = {
    {"forward", PL_COLUMN_I64, "ps", "forward of one microbatch on this model chunk",
     false},
    {"backward", PL_COLUMN_I64, "ps", "input gradient of one microbatch", false},
    {"weight", PL_COLUMN_I64, "ps", "weight gradient of one microbatch", false},
    {"update", PL_COLUMN_I64, "ps", "optimizer step, per update", false},
    END};

static const struct pl_column links[] = {
    {"next", PL_COLUMN_I64, "ps", "transfer from this device to the next in the ring",
     false},
    {"prev", PL_COLUMN_I64, "ps", "transfer from this device to the one before", false},
    END};

static const struct pl_column devices[] = {
    {"busy_s", PL_COLUMN_F64, "s", "work of the device over the whole run", false},
    {"peak_activations", PL_COLUMN_I64, "1",
     "most microbatches of a chunk whose activations are held", false},
    END};

static const struct pl_column stages[] = {
    {"device", PL_COLUMN_I64, "1", "device, from 0", false},
    {"chunk", PL_COLUMN_I64, "1", "model chunk (virtual stage), from 0", false},
    {"replica", PL_COLUMN_I64, "1", "copy of the model, from 0", false},
    {"busy_s", PL_COLUMN_F64, "s", "work on the instance over the whole run", false},
    {"tau_min", PL_COLUMN_F64, "1", "least delay in the steady window, in updates",
     false},
    {"tau_mean", PL_COLUMN_F64, "1", "mean delay in the steady window, in updates",
     false},
    {"tau_max", PL_COLUMN_F64, "1", "largest delay in the steady window, in updates",
     false},
    {"tau_startup", PL_COLUMN_F64, "1",
     "mean delay before the steady window, in updates", false},
    {"weight_versions", PL_COLUMN_I64, "1",
     "most weight versions alive after an update", false},
    {"peak_activations", PL_COLUMN_I64, "1",
     "most microbatches whose activations are held", false},
    END};

static const struct pl_column versions[] = {
    {"stage", PL_COLUMN_I64, "1", "model chunk (virtual stage), from 0", false},
    {"micro", PL_COLUMN_I64, "1", "microbatch over the whole run", false},
    {"update", PL_COLUMN_I64, "1", "update that consumes the gradient", false},
    {"forward", PL_COLUMN_I64, "1", "weight version read in forward", false},
    {"backward", PL_COLUMN_I64, "1", "weight version read in backward", false},
    END};

static const struct pl_column delays[] = {
    {"stage", PL_COLUMN_I64, "1", "model chunk (virtual stage), from 0", false},
    {"tau", PL_COLUMN_I64, "1", "delay in updates", false},
    {"count", PL_COLUMN_I64, "1", "microbatches of the steady window with this delay",
     false},
    END};

static const struct pl_column rows[] = {
    {"update", PL_COLUMN_I64, "1", "update n, turning version n into n+1", false},
    {"time_s", PL_COLUMN_F64, "s", "simulated end of the update", false},
    {"loss", PL_COLUMN_F64, "nat", "training loss of the gradient consumed", false},
    {"rate", PL_COLUMN_F64, "1", "schedule factor of the learning rate", false},
    {"grad_norm", PL_COLUMN_F64, "1", "gradient norm over all stages, before clipping",
     false},
    {"update_norm", PL_COLUMN_F64, "1",
     "norm of the optimizer's update over all stages", false},
    {"stale_norm", PL_COLUMN_F64, "1", "distance of version n to the versions read",
     false},
    {"balance_loss", PL_COLUMN_F64, "1",
     "routers' load-balance loss without its coefficient, mean over layers; 1: uniform",
     true},
    {"z_loss", PL_COLUMN_F64, "1",
     "routers' z loss without its coefficient, mean over layers", true},
    {"load_max", PL_COLUMN_F64, "1",
     "load of the fullest expert over the mean load, largest over layers", true},
    END};

static const struct pl_column evals[] = {
    {"update", PL_COLUMN_I64, "1", "weight version validated: after this many updates",
     false},
    {"time_s", PL_COLUMN_F64, "s", "simulated end of the update before", false},
    {"loss", PL_COLUMN_F64, "nat", "validation loss at the stored iterate x", false},
    {"loss_y", PL_COLUMN_F64, "nat",
     "validation loss at y = x + c times the last update", false},
    {"bits_per_byte", PL_COLUMN_F64, "1", "loss in bits per byte of text", true},
    {"load_max", PL_COLUMN_F64, "1",
     "load of the fullest expert over the mean load, largest over layers", true},
    {"grad_norm", PL_COLUMN_F64, "1",
     "problems without a model: norm of the exact gradient at x", true},
    {"grad_dual", PL_COLUMN_F64, "1",
     "the same in the dual norm: nuclear of matrices plus l1 of vectors", true},
    {"grad_dual_y", PL_COLUMN_F64, "1", "the same at y", true},
    END};

static const struct pl_column scores[] = {
    {"update", PL_COLUMN_I64, "1", "weight version scored: after this many updates",
     false},
    {"set", PL_COLUMN_TEXT, "", "text or questions", false},
    {"items", PL_COLUMN_I64, "1", "tokens, or questions", false},
    {"loss", PL_COLUMN_F64, "nat", "loss per token; of questions that of the answers",
     false},
    {"perplexity", PL_COLUMN_F64, "1", "exp(loss)", false},
    {"bits_per_byte", PL_COLUMN_F64, "1", "loss in bits per byte of text", false},
    {"accuracy", PL_COLUMN_F64, "1",
     "share of questions whose answer is the likeliest choice", false},
    {"accuracy_norm", PL_COLUMN_F64, "1", "the same, likelihood per byte of the choice",
     false},
    END};

static const struct pl_column diagnosis[] = {
    {"update", PL_COLUMN_I64, "1", "update n, turning version n into n+1", false},
    {"stage", PL_COLUMN_I64, "1", "model chunk (virtual stage), from 0", false},
    {"tau", PL_COLUMN_F64, "1", "mean delay of the group, in updates", false},
    {"cos_update", PL_COLUMN_F64, "1",
     "cosine of the step that was applied and the update that the same tokens give at "
     "version n",
     false},
    {"cos_gradient", PL_COLUMN_F64, "1",
     "cosine of the gradient that the optimizer was given and the one at version n",
     false},
    {"distance", PL_COLUMN_F64, "1",
     "distance of version n to the oldest version that forward read", false},
    {"turning", PL_COLUMN_F64, "1", "cosine of the updates n and n-1", false},
    {"grad_norm", PL_COLUMN_F64, "1", "gradient norm of the stage, before clipping",
     false},
    {"update_norm", PL_COLUMN_F64, "1", "norm of the optimizer's update", false},
    {"half_life", PL_COLUMN_F64, "1",
     "half-life of the first moment, in updates, over the delay", false},
    END};

static const struct pl_column segments[] = {
    {"schedule", PL_COLUMN_TEXT, "", "pipeline schedule", false},
    {"corrector", PL_COLUMN_TEXT, "", "delay corrector", false},
    {"first_update", PL_COLUMN_I64, "1", "first update of the stretch", false},
    {"updates", PL_COLUMN_I64, "1", "updates of the stretch", false},
    END};

static const struct pl_column claims[] = {
    {"id", PL_COLUMN_TEXT, "", "name of the claim", false},
    {"statement", PL_COLUMN_TEXT, "", "what is claimed", false},
    {"source", PL_COLUMN_TEXT, "", "where it is claimed", false},
    {"published", PL_COLUMN_TEXT, "", "the published number", false},
    {"measured", PL_COLUMN_TEXT, "", "our number", false},
    {"word", PL_COLUMN_TEXT, "", "verdict", false},
    END};

static const struct pl_column result_table[] = {
    {"arm", PL_COLUMN_TEXT, "", "arm, a group of /arms", false},
    {"baseline", PL_COLUMN_TEXT, "", "arm that it is compared with", true},
    {"loss_mean", PL_COLUMN_F64, "nat", "final validation loss, mean over seeds", true},
    {"loss_sd", PL_COLUMN_F64, "nat", "its sample standard deviation over seeds", true},
    {"loss_y", PL_COLUMN_F64, "nat", "final validation loss at y, mean over seeds",
     true},
    {"gap", PL_COLUMN_F64, "nat",
     "loss_mean minus that of the baseline, paired by seed", true},
    {"gap_t95", PL_COLUMN_F64, "nat", "half width of the 95 % interval of the gap",
     true},
    {"recovered", PL_COLUMN_F64, "1",
     "share closed of the gap of the plain asynchronous arm", true},
    {"end_s", PL_COLUMN_F64, "s", "simulated end of the run", true},
    {"time_to_baseline_s", PL_COLUMN_F64, "s",
     "simulated time to the baseline's final loss; NaN: not reached", true},
    {"equal_time_s", PL_COLUMN_F64, "s", "simulated time at which losses are compared",
     true},
    {"equal_time_loss", PL_COLUMN_F64, "nat", "validation loss at equal_time_s", true},
    {"equal_time_baseline_loss", PL_COLUMN_F64, "nat",
     "validation loss of the baseline at equal_time_s", true},
    {"tau_first", PL_COLUMN_F64, "1",
     "delay of the first stage in the steady window, in updates", true},
    {"tau_last", PL_COLUMN_F64, "1",
     "delay of the last stage in the steady window, in updates", true},
    {"step_s", PL_COLUMN_F64, "s", "simulated time per update, steady", true},
    {"bubble_steady", PL_COLUMN_F64, "1", "idle share per update, steady", true},
    {"diverged", PL_COLUMN_I64, "1", "seeds of the arm that diverged", true},
    END};

/* Filled from the table of keys, then PL_SWEEP_RESULTS: see fill_sweep. */
enum { MAX_SWEEP = 640 };
static struct pl_column sweep[MAX_SWEEP];

const struct pl_table_type pl_table_types[] = {
    {"/arms/<arm>/timeline", timeline, NULL, NULL},
    {"/arms/<arm>/messages", messages, NULL, NULL},
    {"/arms/<arm>/memory", memory, NULL, NULL},
    {"/arms/<arm>/costs", costs, NULL, NULL},
    {"/arms/<arm>/links", links, NULL, NULL},
    {"/arms/<arm>/devices", devices, NULL, NULL},
    {"/arms/<arm>/stages", stages, "tau_mean", NULL},
    {"/arms/<arm>/versions", versions, NULL, NULL},
    {"/arms/<arm>/tau", delays, NULL, NULL},
    {"/arms/<arm>/segments", segments, NULL, NULL},
    {"/arms/<arm>/seeds/<seed>/rows", rows, "loss", "update"},
    {"/arms/<arm>/seeds/<seed>/evals", evals, "loss", "update"},
    {"/arms/<arm>/seeds/<seed>/scores", scores, "loss", "update"},
    {"/arms/<arm>/seeds/<seed>/diagnosis", diagnosis, "cos_update", "update"},
    {"/claims", claims, NULL, NULL},
    {"/table", result_table, NULL, NULL},
    {PL_SWEEP_TABLE, sweep, NULL, NULL},
    {NULL, NULL, NULL, NULL}};

/* A swept key is a column of its name: integers and reals as themselves, durations in
 * seconds (a list of them: their mean, and the list as text in NAME.stages), all else
 * as text. */
static int add_key(const struct pl_key *key, int n)
{
    bool time = key->type == PL_KEY_TIME || key->type == PL_KEY_TIMES;
    enum pl_column_type type = key->type == PL_KEY_INT            ? PL_COLUMN_I64
                               : key->type == PL_KEY_REAL || time ? PL_COLUMN_F64
                                                                  : PL_COLUMN_TEXT;
    const char *unit = type == PL_COLUMN_TEXT ? "" : *key->unit ? key->unit : "1";
    assert(n + 2 < MAX_SWEEP);
    sweep[n++] = (struct pl_column){key->name, type, unit, key->help, true};
    if (key->type == PL_KEY_TIMES)
        sweep[n++] = (struct pl_column){pl_printf("%s%s", key->name, PL_SWEEP_LIST),
                                        PL_COLUMN_TEXT, "", key->help, true};
    return n;
}

__attribute__((constructor)) static void fill_sweep(void)
{
#define COLUMN(name, unit, shown, text) {#name, PL_COLUMN_F64, unit, text, false},
    static const struct pl_column results[] = {
        PL_SWEEP_RESULTS(COLUMN){PL_SWEEP_STATUS, PL_COLUMN_TEXT, "",
                                 "ok, or why the point was refused", false}};
#undef COLUMN
    enum { N = sizeof results / sizeof *results };
    int n = 0;
    for (const struct pl_key *key = pl_keys; key->name; key++) n = add_key(key, n);
    assert(n + N < MAX_SWEEP);
    memcpy(sweep + n, results, sizeof results);
}

bool pl_schema_match(const char *pattern, const char *path)
{
    while (*pattern) {
        if (*pattern == '<') {
            size_t n = strcspn(path, "/");
            if (!n) return false;
            path += n;
            pattern = strchr(pattern, '>') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*path;
}

bool pl_schema_group(const char *path)
{
    static const char *const parents[] = {
        "/", "/arms", "/arms/<arm>", "/arms/<arm>/seeds", "/arms/<arm>/seeds/<seed>"};
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        if (pl_schema_match(parents[i], path)) return true;
    return pl_schema_table(path) != NULL;
}

const struct pl_table_type *pl_schema_table(const char *path)
{
    for (const struct pl_table_type *t = pl_table_types; t->pattern; t++)
        if (pl_schema_match(t->pattern, path)) return t;
    return NULL;
}

const struct pl_column *pl_schema_column(const struct pl_table_type *type,
                                         const char *name)
{
    for (const struct pl_column *c = type->columns; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}
