/* MODEL and CLUSTER into the configuration that all candidates start from. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/plan.h"
#include "sim/cluster.h"

/* Keys that plan decides by other means, or whose runs it cannot compare. */
static int check_keys(const struct pl_config *config)
{
    static const struct {
        const char *key, *instead;
    } refused[] = {
        {"segments", "one schedule a candidate"},
        {"schedule.updates", "as many as the schedule needs"},
        {"schedule.file", "the schedules of the table"},
        {"parallel.dp", "GPUs / (tp cp pp)"},
        {"cost.profile", "costs from MODEL and CLUSTER"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (pl_config_given(config, refused[i].key))
            return pl_fail(PL_EUSAGE, "%s: plan does not take %s: it uses %s",
                           pl_config_where(config, refused[i].key), refused[i].key,
                           refused[i].instead);
    return PL_OK;
}

static char *levels_text(const struct pl_cluster *cluster, int64_t outermost)
{
    char *text = pl_strdup("");
    for (int i = 0; i < cluster->n_levels; i++) {
        const struct pl_level *level = &cluster->level[i];
        char *longer = pl_printf("%s%s%s:%" PRId64, text, i ? " " : "", level->name,
                                 i ? (int64_t)level->count : outermost);
        free(text);
        text = longer;
    }
    return text;
}

/* More members of the outermost level, when a preset describes one. */
static int extend(struct pl_config *config, const struct pl_cluster *cluster,
                  int64_t gpus)
{
    const struct pl_level *out = &cluster->level[0];
    int64_t each = cluster->n_gpus / out->count, n = gpus / each;
    if (out->count > 1 || cluster->n_levels < 2)
        return pl_fail(PL_EUSAGE,
                       "--gpus %" PRId64 ": cluster %s has %d: set cluster.levels",
                       gpus, cluster->name, cluster->n_gpus);
    if (gpus % each)
        return pl_fail(PL_EUSAGE,
                       "--gpus %" PRId64 " is not a multiple of the %" PRId64
                       " GPUs of a %s, expected %" PRId64 " or %" PRId64,
                       gpus, each, out->name, n * each, (n + 1) * each);
    char *text = levels_text(cluster, n);
    int rc = pl_config_set_value(config, "cluster.levels", text, "--gpus");
    free(text);
    return rc ? rc : pl_config_resolve(config);
}

int pl_plan_setup(struct pl_config *config, const char *model, const char *cluster,
                  int64_t *gpus)
{
    struct pl_cluster c;
    int rc = check_keys(config);
    if (!rc) rc = pl_config_set_value(config, "model.preset", model, "MODEL");
    if (!rc) rc = pl_config_set_value(config, "cluster.preset", cluster, "CLUSTER");
    if (!rc) rc = pl_config_set_value(config, "cost.type", "roofline", "plan");
    if (!rc && !pl_config_given(config, "parallel.overlap"))
        rc = pl_config_set_value(config, "parallel.overlap", "yes", "plan");
    if (!rc) rc = pl_config_resolve(config);
    if (!rc) rc = pl_cluster_read(config, &c);
    if (rc) return rc;
    if (!*gpus) *gpus = c.n_gpus;
    if (*gpus > c.n_gpus) rc = extend(config, &c, *gpus);
    pl_cluster_free(&c);
    return rc;
}

int64_t pl_plan_default_batch(int64_t seq)
{
    int64_t batch = 1;
    while (2 * batch * seq <= 4 << 20) batch *= 2;
    return batch;
}

void pl_plan_apply(const struct pl_plan *plan, const struct pl_plan_row *row,
                   struct pl_config *config)
{
    static const char *const recomputes[] = {"none", "selective", "full"};
    const struct pl_plan_group *g = &plan->groups[row->group];
    const struct {
        const char *key;
        int value;
    } numbers[] = {
        {"parallel.tp", g->tp},      {"parallel.cp", g->cp},
        {"parallel.ep", g->ep},      {"parallel.dp", g->dp},
        {"parallel.zero", g->zero},  {"parallel.micro_batch", g->b},
        {"schedule.stages", g->pp},  {"schedule.microbatches", g->m},
        {"schedule.chunks", row->v},
    };
    const struct {
        const char *key, *value;
    } texts[] = {
        {"parallel.sp", g->sp ? "yes" : "no"},
        {"parallel.recompute", recomputes[g->recompute]},
        {"schedule.name", pl_schedule_types[row->type]->name},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !rc; i++) {
        char *text = pl_printf("%d", numbers[i].value);
        rc = pl_config_set_value(config, numbers[i].key, text, "plan");
        free(text);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !rc; i++)
        rc = pl_config_set_value(config, texts[i].key, texts[i].value, "plan");
    if (!rc && !pl_config_given(plan->ask->config, "model.split"))
        pl_config_set_value(config, "model.split", g->balanced ? "balanced" : "uniform",
                            "plan");
}
