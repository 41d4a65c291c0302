/* A schedule compiled for many costs: its steps in an order in which everything that a
 * step waits for stands before it, so that one pass over an array gives all times:
 *   end(step) = max(end of the device's step before, end(input) + transfer) + duration.
 * The order depends on the schedule alone, the times are those of pl_engine_run. Owned
 * by the caller (pl_program_free). */
#ifndef PL_SIM_PROGRAM_H
#define PL_SIM_PROGRAM_H

#include "sim/schedule.h"

struct pl_step {
    int32_t input; /* the step it waits for, -1: none */
    int32_t device;
    int32_t duration; /* class: kind * chunks + model chunk */
    int32_t transfer; /* class: device * 2 + (1: to the device before), -1: none */
};

struct pl_program {
    const struct pl_schedule *sched; /* borrowed */
    int64_t n;
    struct pl_step *step; /* [n] ops and updates; a pair is two steps */
    int64_t *op;          /* [n] place in sched->ops, or -1 - instance of a U */
    int64_t n_stops;      /* with a barrier: where all devices wait for each other */
    int64_t *stop;        /* [n_stops] the step before which they do */
};

/* PL_EUNSUP where the order of U and other ops depends on the times: asynchronous with
 * a barrier, two replicas without one, overlapped pairs; PL_ECHECK when the order
 * cannot be executed. Cost: O(n). */
int pl_program_new(const struct pl_schedule *schedule, bool barrier,
                   struct pl_program *out);

/* Ends of all steps, end[n], and the makespan under latency links. cost: of the
 * schedule's layout, without variation. Errors: PL_ECONFIG when the sum of all times
 * does not fit int64. Cost: O(n), about 2 ns a step. */
int pl_program_run(const struct pl_program *program, const struct pl_cost *cost,
                   pl_tick *end, pl_tick *makespan);
void pl_program_free(struct pl_program *program);

#endif
