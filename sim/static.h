/* The fast path: where issue order and durations are fixed, the times of all ops follow
 * in one sweep without an event queue (longest path):
 *   start(op) = max(end of the op before it on the device, arrival of its inputs),
 * and a U takes the device as soon as its gradients are there. Same times as
 * pl_engine_run, to the tick, and the same rows in the same order. */
#ifndef PL_SIM_STATIC_H
#define PL_SIM_STATIC_H

#include "sim/timeline.h"

/* Ends of ops by place in the schedule. Zero it before the first use: the room is kept
 * and reused from call to call; pl_ends_free. */
struct pl_ends {
    pl_tick *op;     /* [n_ops] of schedule->ops[i]; it starts its duration before */
    pl_tick *update; /* [instances * updates] of U in the order in which they ran, the
                      * devices one after another */
    int32_t *who;    /* same: the instance */
    pl_tick makespan;
    struct pl_static_room *room; /* scratch */
};

/* Does the sweep apply: latency links, nothing random, and F, B, W and BW that take
 * time? */
bool pl_static_can(const struct pl_schedule *schedule, const struct pl_cost *cost);

/* Times only, without rows: for sweeps over many costs or shapes. The schedule has
 * passed pl_schedule_check and pl_static_can. Errors: as pl_engine_run; *ends stays
 * usable. Cost: O(n). */
int pl_static_ends(const struct pl_schedule *schedule, const struct pl_cost *cost,
                   bool barrier, struct pl_ends *ends);
void pl_ends_free(struct pl_ends *ends);

/* The whole timeline, as pl_engine_run makes it. */
int pl_static_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out);

#endif
