#include "cli/unused.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/segments.h"
#include "cli/setup_optim.h"
#include "cli/setup_problem.h"
#include "sim/schedule.h"

struct uses {
    bool grouped, limited;
};

static void add(struct uses *uses, const struct pl_schedule_type *type)
{
    uses->grouped |= type->grouped;
    uses->limited |= type->limited;
}

static struct uses uses_of_run(const struct pl_config *config)
{
    struct uses uses = {false, false};
    struct pl_stretch segments[PL_MAX_SEGMENTS];
    int n = 0;
    char *text = pl_strdup(pl_config_text(config, "segments"));
    if (pl_segments_parse(config, text, segments, &n)) n = 0; /* said elsewhere */
    for (int i = 0; i < n; i++) add(&uses, segments[i].type);
    free(text);
    if (!n) add(&uses, pl_schedule_find(pl_config_text(config, "schedule.name")));
    return uses;
}

static void warn(const struct pl_config *config, const char *key, const char *reason)
{
    if (!pl_config_given(config, key)) return;
    char *value = pl_config_value(config, key);
    if (strcmp(value, "0"))
        pl_log(PL_LOG_WARN, "%s: %s has no effect: %s", pl_config_where(config, key),
               key, reason);
    free(value);
}

/* Models are also trained, so those of a file say nothing about costs. */
static bool for_roofline(const struct pl_config *config, const char *key)
{
    if (!pl_config_given(config, key)) return false;
    return !strncmp(key, "cluster.", 8) || !strncmp(key, "parallel.", 9) ||
           (!strncmp(key, "model.", 6) &&
            !strcmp(pl_config_where(config, key), "--set"));
}

/* Do transfers of given costs take time? */
static bool links_take_time(const struct pl_config *config)
{
    int n;
    const pl_tick *time = pl_config_times(config, "link.time", &n);
    bool any = *pl_config_text(config, "cost.profile") ||
               *pl_config_text(config, "link.bandwidth");
    for (int i = 0; i < n; i++) any |= time[i] > 0;
    return any;
}

static const char only_grouped[] = "only interleaved and wpipe have groups";
static const char only_planned[] =
    "only zb-1p, zb-2p, zb-v, v-half and v-min plan under a memory limit";

void pl_unused_warn_twice(const struct pl_config *config)
{
    if (!pl_setup_optim_twice(config)) return;
    pl_log(PL_LOG_WARN,
           "%s: optimizer.exact: simulated times do not have the second gradient of an "
           "update, F, B and W of as many microbatches again",
           pl_config_where(config, "optimizer.exact"));
}

void pl_unused_warn(const struct pl_config *config)
{
    pl_unused_warn_twice(config);
    struct uses uses = uses_of_run(config);
    if (!uses.grouped) warn(config, "schedule.group", only_grouped);
    if (!uses.limited) {
        warn(config, "schedule.max_activations", only_planned);
        warn(config, "schedule.released", only_planned);
    }
    if (strcmp(pl_config_text(config, "cost.type"), "given")) return;
    if (!links_take_time(config)) warn(config, "jitter.slow_links", "link.time is 0");
    for (const struct pl_key *key = pl_keys; key->name; key++) {
        if (!for_roofline(config, key->name)) continue;
        pl_log(PL_LOG_WARN,
               "%s: %s has no effect on the costs, which are given: set cost.type "
               "roofline to take them from model.*, parallel.* and cluster.*",
               pl_config_where(config, key->name), key->name);
        return;
    }
}

/* Numbers of a spectrum belong to some kinds of it. */
static bool spectrum_reads(const char *kind, const char *setting)
{
    if (!strcmp(setting, "values")) return !strcmp(kind, "list");
    if (!strcmp(setting, "power")) return !strcmp(kind, "power");
    if (!strcmp(setting, "largest")) return strcmp(kind, "list") != 0;
    if (!strcmp(setting, "kappa"))
        return !strcmp(kind, "log") || !strcmp(kind, "linear");
    return true;
}

/* Keys that are read only where another has, or has not, a value ("": is not given).
 */
static const struct condition {
    const char *key, *other, *value;
    bool equal;
} conditions[] = {
    {"model.scoring_func", "model.experts", "0", false},
    {"model.norm_topk_prob", "model.experts", "0", false},
    {"model.routed_scaling_factor", "model.experts", "0", false},
    {"model.aux_loss_coef", "model.experts", "0", false},
    {"model.z_loss_coef", "model.experts", "0", false},
    {"model.seq_aux", "model.experts", "0", false},
    {"model.seq_aux", "model.aux_loss_coef", "0", false},
    {"model.router_bias_rate", "model.experts", "0", false},
    {"model.router_bias_rate", "model.router_bias", "false", false},
    {"data.valid_fraction", "data.valid", "", true},
    {"eval.texts", "train.eval_sequences", "0", false},
    {"eval.questions", "train.eval_sequences", "0", false},
    {"train.diagnose", "train.eval_sequences", "0", false},
    {"train.eval_every", "train.eval_sequences", "0", false},
    {"corrector.c", "corrector.stage_c", "", true},
    {"model.split", "cost.type", "given", false},
    {"rate.floor", "rate.schedule", "constant", false},
    {"rate.decay_fraction", "rate.schedule", "wsd", true},
    {"rate.delay_updates", "rate.delay_power", "0", false},
    {"clip.scope", "clip.norm", "0", false},
    {"optimizer.ns_steps", "optimizer.coefficients", "svd", false},
    {"optimizer.ns_eps", "optimizer.coefficients", "svd", false},
    {"optimizer.ns_clamp", "optimizer.coefficients", "svd", false},
    {"optimizer.ns_precision", "optimizer.coefficients", "svd", false},
    {"delay.seed", "delay.tau", "", false},
    {"corrector.land", "segments", "", false},
};

/* What a condition cannot say. */
static char *unread_here(const struct pl_arm *arm, const char *key)
{
    const enum pl_fidelity f = pl_arm_fidelity(arm);
    if (!strcmp(key, "delay.seed") &&
        !strstr(pl_config_text(arm->config, "delay.tau"), ".."))
        return pl_strdup("delay.tau has no range A..B to draw from");
    if (!strcmp(key, "schedule.updates"))
        return pl_strdup("a run has train.updates of them");
    if ((!strncmp(key, "cluster.", 8) || !strncmp(key, "parallel.", 9)) &&
        !strcmp(pl_config_text(arm->config, "cost.type"), "given"))
        return pl_strdup("costs are given, cost.type roofline takes them from it");
    if (!strcmp(key, "schedule.group") && !uses_of_run(arm->config).grouped)
        return pl_strdup(only_grouped);
    if ((!strcmp(key, "schedule.max_activations") ||
         !strcmp(key, "schedule.released")) &&
        !uses_of_run(arm->config).limited)
        return pl_strdup(only_planned);
    if (strcmp(key, "corrector.name") || f == PL_FIDELITY_NOSTASH) return NULL;
    for (int k = 0; k < arm->n_segments; k++)
        if (strcmp(arm->segments[k].corrector.type->name, "discrepancy")) return NULL;
    return pl_printf("discrepancy corrects what a backward without stash reads, the "
                     "fidelity is %s",
                     pl_config_choices("delay.fidelity")[f + 1]);
}

/* Why a value has no effect in the arm, caller frees; NULL: it may have one. */
static char *unread(const struct pl_arm *arm, const char *key)
{
    char *reason = NULL;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions && !reason; i++) {
        const struct condition *c = &conditions[i];
        if (strcmp(c->key, key)) continue;
        const bool given = pl_config_given(arm->config, c->other);
        char *value = pl_config_value(arm->config, c->other);
        bool is = *c->value ? !strcmp(value, c->value) : !given;
        if (is != c->equal)
            reason = pl_printf("%s is %s", c->other,
                               *c->value ? value
                               : given   ? "given"
                                         : "not given");
        free(value);
    }
    if (!reason) reason = unread_here(arm, key);
    if (reason || strncmp(key, "corrector.", 10)) return reason;
    for (int k = 0; k < arm->n_segments; k++)
        if (pl_corrector_reads(arm->segments[k].corrector.type, key + 10)) return NULL;
    return pl_printf("corrector %s does not read it",
                     arm->segments[arm->n_segments - 1].corrector.type->name);
}

/* Does training under this configuration read the key? Of model.* it may be the costs
 * that do. */
static bool trained_with(const struct pl_config *config, const char *key)
{
    const struct pl_problem_type *type = pl_setup_problem_type(config);
    if (!strncmp(key, "optimizer.", 10)) return pl_setup_optim_reads(config, key);
    if (!strncmp(key, "problem.", 8))
        return !strcmp(key, "problem.name") ||
               (pl_has_word(type->settings, key + 8) &&
                spectrum_reads(pl_config_text(config, "problem.spectrum"), key + 8));
    if (!strncmp(key, "model.", 6) &&
        strcmp(pl_config_text(config, "cost.type"), "given"))
        return true;
    return type->on_data ||
           (strncmp(key, "model.", 6) && strncmp(key, "data.", 5) &&
            strncmp(key, "eval.", 5) && strcmp(key, "train.seq") &&
            strcmp(key, "train.precision") && strcmp(key, "train.at_once"));
}

void pl_unused_warn_run(const struct pl_experiment *e, const char *read_too)
{
    for (const struct pl_key *key = pl_keys; key->name; key++) {
        if (read_too && !strncmp(key->name, read_too, strlen(read_too))) continue;
        const struct pl_config *given = NULL;
        char *reason = NULL;
        bool read = false;
        for (int i = 0; i < e->n_arms && !read; i++) {
            const struct pl_config *config = e->arms[i].config;
            if (!pl_config_given(config, key->name)) continue;
            given = config;
            free(reason);
            reason = unread(&e->arms[i], key->name);
            read = !reason && trained_with(config, key->name);
        }
        if (reason) {
            warn(given, key->name, reason);
            free(reason);
            continue;
        }
        const char *rule = "optimizer.name", *problem = "problem.name";
        const char *name = strncmp(key->name, rule, 10) ? problem : rule;
        if (given && !read)
            pl_log(PL_LOG_WARN, "%s: %s has no effect on %s %s",
                   pl_config_where(given, key->name), key->name, name,
                   pl_config_text(given, name));
    }
}
