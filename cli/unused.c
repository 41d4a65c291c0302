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

void pl_unused_warn(const struct pl_config *config)
{
    static const char planned[] =
        "only zb-1p, zb-2p, zb-v, v-half and v-min plan under a memory limit";
    struct uses uses = uses_of_run(config);
    if (!uses.grouped)
        warn(config, "schedule.group", "only interleaved and wpipe have groups");
    if (!uses.limited) {
        warn(config, "schedule.max_activations", planned);
        warn(config, "schedule.released", planned);
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

/* Of a router: read by models with experts, and not all of it by all of them. NULL, or
 * why a value has no effect. */
static const char *router_unread(const struct pl_config *config, const char *key)
{
    static const char router[] =
        "scoring_func norm_topk_prob routed_scaling_factor aux_loss_coef z_loss_coef "
        "seq_aux router_bias_rate";
    if (strncmp(key, "model.", 6) || !pl_has_word(router, key + 6)) return NULL;
    if (!pl_config_int(config, "model.experts")) return "model.experts is 0";
    if (!strcmp(key, "model.seq_aux") &&
        !(pl_config_real(config, "model.aux_loss_coef") > 0))
        return "model.aux_loss_coef is 0";
    if (!strcmp(key, "model.router_bias_rate") &&
        !pl_config_bool(config, "model.router_bias"))
        return "model.router_bias is no";
    return NULL;
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
    return type->on_data || (strncmp(key, "model.", 6) && strncmp(key, "data.", 5) &&
                             strncmp(key, "eval.", 5) && strcmp(key, "train.seq") &&
                             strcmp(key, "train.precision"));
}

void pl_unused_warn_run(const struct pl_experiment *e)
{
    for (const struct pl_key *key = pl_keys; key->name; key++) {
        const struct pl_config *given = NULL;
        const char *router = NULL;
        bool read = false;
        for (int i = 0; i < e->n_arms && !read; i++) {
            const struct pl_config *config = e->arms[i].config;
            if (!pl_config_given(config, key->name)) continue;
            given = config;
            router = router_unread(config, key->name);
            read = !router && trained_with(config, key->name);
        }
        if (given && router) {
            warn(given, key->name, router);
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
