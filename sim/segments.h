/* Mixed runs: several schedules one after another on one model, with a drain at each
 * switch. */
#ifndef PL_SIM_SEGMENTS_H
#define PL_SIM_SEGMENTS_H

#include "sim/simulate.h"

/* The type of the schedule of a whole mixed run; not in pl_schedule_types. Its metrics
 * have no steady window: delays are those of the whole run, step is makespan / updates.
 */
extern const struct pl_schedule_type pl_schedule_mixed;

/* next follows all after a drain: its times begin at all's end, its microbatches,
 * updates and versions where all's stop, so that its first group reads the newest
 * version. all: {0} or the result of this function. Metrics are left as they are.
 * Errors: PL_ECONFIG when P, m, chunks, replicas or their devices differ, PL_ECONFIG on
 * overflow of the time; *all is unchanged then. */
int pl_simulation_append(struct pl_simulation *all, const struct pl_simulation *next);

/* Simulate n schedules alone into parts[n] (owned by the caller, pl_simulation_free
 * each), then the whole run. Shapes are resolved. Errors: those of pl_simulate and
 * pl_simulation_append, PL_ECHECK when the whole breaks an invariant; nothing is left
 * then. */
int pl_simulate_segments(int n, const struct pl_schedule_type *const *types,
                         const struct pl_shape *shapes, const struct pl_cost *cost,
                         bool barrier, struct pl_simulation *parts,
                         struct pl_simulation *all);

#endif
