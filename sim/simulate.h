/* One call from shape and costs to timeline, version map and metrics: what cli/ uses.
 */
#ifndef PL_SIM_SIMULATE_H
#define PL_SIM_SIMULATE_H

#include "sim/metrics.h"
#include "sim/stream.h"

struct pl_simulation { /* owned: pl_simulation_free */
    struct pl_schedule schedule;
    struct pl_timeline timeline;
    struct pl_versions versions;
    struct pl_metrics metrics;
    int64_t recorded; /* updates whose ops are there: all unless trimmed */
};

/* Generate, execute, check the invariants, map the versions, measure.
 * Errors: those of the steps; *out untouched. */
int pl_simulate(const struct pl_schedule_type *type, const struct pl_shape *shape,
                const struct pl_cost *cost, bool barrier, struct pl_simulation *out);
/* A run of any length: metrics alone, without ops, rows and versions; recorded is 0.
 * Errors: those of pl_stream_run; *out untouched. */
int pl_simulate_long(const struct pl_schedule_type *type, const struct pl_shape *shape,
                     const struct pl_cost *cost, bool barrier,
                     const struct pl_stream_sink *sink, struct pl_simulation *out);
/* Keep only the ops that start, and the messages sent, before the end of update
 * updates-1, and forget the schedule's ops; versions and metrics stay whole.
 * updates >= 1. */
void pl_simulation_trim(struct pl_simulation *simulation, int64_t updates);
void pl_simulation_free(struct pl_simulation *simulation);

#endif
