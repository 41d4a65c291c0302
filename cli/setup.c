#include "cli/setup.h"

#include <string.h>

#include "base/err.h"

int pl_setup_microbatches(const struct pl_config *config,
                          const struct pl_schedule_type *type, int P)
{
    int m = (int)pl_config_int(config, "schedule.microbatches");
    if (!m) m = type->default_m;
    return m ? m : type->async ? P : 2 * P;
}

int pl_setup_shape(const struct pl_config *config, const struct pl_schedule_type *type,
                   int m, int64_t updates, struct pl_shape *shape)
{
    struct pl_shape made = {.P = (int)pl_config_int(config, "schedule.stages")};
    made.m = m ? m : pl_setup_microbatches(config, type, made.P);
    made.updates = updates ? updates : pl_config_int(config, "schedule.updates");
    if (!made.updates) made.updates = pl_schedule_default_updates(type, made.P, made.m);
    made.v = (int)pl_config_int(config, "schedule.chunks");
    made.group = (int)pl_config_int(config, "schedule.group");
    made.limit = (int)pl_config_int(config, "schedule.max_activations");
    int rc = pl_shape_resolve(type, &made);
    if (!rc) *shape = made;
    return rc;
}

int pl_setup_cost(const struct pl_config *config, const struct pl_schedule_type *type,
                  const struct pl_shape *shape, struct pl_cost *cost)
{
    struct pl_cost_spec spec = {.overlap = pl_config_real(config, "cost.overlap")};
    const struct {
        const char *key;
        struct pl_times *times;
    } lists[] = {{"cost.forward", &spec.forward},
                 {"cost.backward", &spec.backward},
                 {"cost.weight", &spec.weight},
                 {"cost.update", &spec.update},
                 {"link.time", &spec.link}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        lists[i].times->t = pl_config_times(config, lists[i].key, &lists[i].times->n);
    struct pl_layout layout;
    pl_layout_new(type, shape, &layout);
    int rc = pl_cost_new(&layout, &spec, cost);
    pl_layout_free(&layout);
    return rc;
}

int pl_setup_barrier(const struct pl_config *config,
                     const struct pl_schedule_type *type, bool *barrier)
{
    const char *scope = pl_config_text(config, "clip.scope");
    bool global = !strcmp(scope, "global");
    if (global && !type->global_version)
        return pl_fail(PL_EUNSUP,
                       "%s: clip.scope global needs the same delay on all stages, "
                       "which %s does not have; use stage",
                       pl_config_where(config, "clip.scope"), type->name);
    bool by_default = type->global_version && !type->post_validated;
    *barrier = pl_config_real(config, "clip.norm") > 0 &&
               (global || (!strcmp(scope, "auto") && by_default));
    return 0;
}

int pl_setup_simulate(const struct pl_config *config, struct pl_setup *out)
{
    const struct pl_schedule_type *type =
        pl_schedule_find(pl_config_text(config, "schedule.name"));
    struct pl_setup made = {.barrier = false};
    struct pl_shape shape;
    int rc = pl_setup_shape(config, type, 0, 0, &shape);
    if (!rc) rc = pl_setup_barrier(config, type, &made.barrier);
    if (!rc) rc = pl_setup_cost(config, type, &shape, &made.cost);
    if (rc) return rc;
    rc = pl_simulate(type, &shape, &made.cost, made.barrier, &made.sim);
    if (rc)
        pl_cost_free(&made.cost);
    else
        *out = made;
    return rc;
}

void pl_setup_free(struct pl_setup *setup)
{
    pl_simulation_free(&setup->sim);
    pl_cost_free(&setup->cost);
}
