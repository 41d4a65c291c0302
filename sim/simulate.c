#include "sim/simulate.h"

int pl_simulate(const struct pl_schedule_type *type, const struct pl_shape *shape,
                const struct pl_cost *cost, bool barrier, struct pl_simulation *out)
{
    struct pl_simulation made = {0};
    int rc = pl_schedule_new(type, shape, &made.schedule);
    if (!rc) rc = pl_schedule_check(&made.schedule);
    if (!rc) rc = pl_engine_run(&made.schedule, cost, barrier, &made.timeline);
    if (!rc) rc = pl_timeline_check(&made.timeline, &made.schedule, cost);
    if (!rc)
        rc = pl_versions_from_timeline(&made.timeline, &made.schedule, &made.versions);
    if (rc) {
        pl_simulation_free(&made);
        return rc;
    }
    pl_metrics_compute(&made.timeline, &made.schedule, &made.versions, &made.metrics);
    *out = made;
    return rc;
}

void pl_simulation_free(struct pl_simulation *simulation)
{
    if (!simulation) return;
    pl_metrics_free(&simulation->metrics);
    pl_versions_free(&simulation->versions);
    pl_timeline_free(&simulation->timeline);
    pl_schedule_free(&simulation->schedule);
}
