/* List scheduling of a split backward under a memory limit, for the automatic
 * schedules. A base order of F and B is given for each device; the plan decides where
 * each W goes and which F or B may run ahead of the base order, by the costs. It cannot
 * deadlock: the base order can execute, an op moves ahead only when its input is there
 * and the rest of the order still fits into the memory. Internal to sim/. */
#ifndef PL_SIM_SCHEDULES_PLAN_H
#define PL_SIM_SCHEDULES_PLAN_H

#include "sim/schedule.h"

/* A W into a wait that is shorter than the W. */
enum pl_plan_fill {
    PL_FILL_NEVER,
    PL_FILL_BEHIND, /* when the device would wait more than any has so far */
    PL_FILL_ALWAYS
};

struct pl_plan_policy {
    enum pl_plan_fill fill;
    bool weight_first; /* in a wait a W rather than an F or B ahead of its order */
    bool stretch;      /* run ahead even into a wait that is shorter than the op */
    const int *ahead; /* [P] most forwards without a B that running ahead may lead to */
};

/* One update. Owned: pl_plan_end. */
struct pl_plan {
    struct pl_schedule *out;    /* borrowed */
    const struct pl_cost *cost; /* borrowed */
    int64_t limit;              /* activations of chunks on a device, from F to the end
                                 * of W, after B less shape.released */
    int64_t n;                  /* F and B of a device */
    struct pl_op *base;         /* [P * 3 n / 2] */
    int64_t *filled;            /* [P] entries of base */
    bool fixed;                 /* base has W */
    struct pl_op *best;         /* [P * 3 n / 2], the shortest plan so far */
    int64_t budget;             /* ops that may still be planned: large shapes end */
    pl_tick work;               /* of the busiest device, known once a plan was tried */
    pl_tick span, makespan;     /* of it: longest device, global end */
    struct plan_state *state;   /* scratch */
};

/* Of a device. */
static inline struct pl_op *pl_plan_base(const struct pl_plan *plan, int device)
{
    return plan->base + device * (plan->n + plan->n / 2);
}

void pl_plan_begin(struct pl_plan *plan, const struct pl_cost *cost, int64_t limit,
                   struct pl_schedule *out);
/* Append to the base order of a device: F and B, or all three: then the order is taken
 * as it is and must keep to the limit. */
void pl_plan_put(struct pl_plan *plan, int device, int kind, int instance,
                 int64_t micro);
/* Forget the base order. */
void pl_plan_clear(struct pl_plan *plan);
/* F and B of the shortest plan become the base order. */
void pl_plan_adopt(struct pl_plan *plan);
/* Most chunks a device holds in the base order when every W follows its B. */
int64_t pl_plan_peak(const struct pl_plan *plan);
/* Plan by a policy; true when it is the shortest so far, which is kept. */
bool pl_plan_try(struct pl_plan *plan, const struct pl_plan_policy *policy);
/* Plan by all policies with `ahead`; the policy of the shortest plan goes to *best if
 * one of them is. best may be NULL. */
bool pl_plan_try_all(struct pl_plan *plan, const int *ahead,
                     struct pl_plan_policy *best);
/* Write the shortest plan once per update. */
void pl_plan_emit(const struct pl_plan *plan);
void pl_plan_end(struct pl_plan *plan);

/* ZB-1p and ZB-2p: plan under a limit (shape.limit when given) and write it. */
int pl_zb_auto_emit(const struct pl_cost *cost, int limit, struct pl_schedule *out);
/* Closed form of an automatic schedule where F = B = W on all chunks, no transfer or
 * update takes time and memory is the schedule's own: the longest device takes `units`
 * times F of a chunk more than its work. NaN elsewhere or when units is. P = 1: always
 * its work. */
void pl_plan_closed(const struct pl_shape *shape, const struct pl_cost *cost,
                    double units, struct pl_closed *out);
/* No delay; peaks depend on the costs. */
void pl_plan_closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                          int64_t *tau_max, int64_t *weight_versions,
                          int64_t *peak_activations);

#endif
