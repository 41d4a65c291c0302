/* The automatic scheduler of zero bubble, one chunk a device: F, B and W placed by the
 * costs of every stage and link under a memory limit. The plan of the shortest
 * parallelogram span out of a family is taken: how many forwards stage s may be ahead
 * of its backwards (1 + slope (P-1-s) + more), what goes into a wait. ZB-H1 and ZB-H2
 * are members where they fit, so one update is never longer than theirs.
 * Source: Qi et al., ICLR 2024 (arXiv 2401.10241), section 3. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sim/schedules/emit.h"
#include "sim/schedules/plan.h"

/* 1F1B: the order that every plan starts from. */
static void put_base(struct pl_plan *plan)
{
    const struct pl_shape *shape = &plan->out->shape;
    for (int s = 0; s < shape->P; s++) {
        int64_t warm = shape->P - 1 - s, m = shape->m;
        if (warm > plan->limit - 1) warm = plan->limit - 1;
        if (warm > m) warm = m;
        for (int64_t i = 0; i < warm; i++) pl_plan_put(plan, s, PL_OP_F, s, i);
        for (int64_t i = 0; i < m; i++) {
            if (warm + i < m) pl_plan_put(plan, s, PL_OP_F, s, warm + i);
            pl_plan_put(plan, s, PL_OP_B, s, i);
        }
    }
}

/* Stage s may run up to 1 + slope (P-1-s) + more forwards ahead of its backwards. */
struct lead {
    double slope, more;
};

static void set_ahead(const struct pl_plan *plan, struct lead lead, int *ahead)
{
    int P = plan->out->shape.P;
    for (int s = 0; s < P; s++) {
        double most = 1 + lead.slope * (P - 1 - s) + lead.more;
        ahead[s] = most < (double)plan->limit ? (int)most : (int)plan->limit;
    }
}

/* A coarse grid over all policies, then steps around the best of it. */
static void search(struct pl_plan *plan)
{
    static const double slopes[] = {1, 1.5, 2, 2.5, 1e9};
    int *ahead = PL_NEW(plan->out->shape.P, int);
    struct pl_plan_policy best = {.ahead = ahead};
    struct lead lead = {1, 0};
    for (int k = 0; k < 5; k++) {
        set_ahead(plan, (struct lead){slopes[k], 0}, ahead);
        if (pl_plan_try_all(plan, ahead, &best)) lead.slope = slopes[k];
    }
    for (double step = 0.25; step > 0.01; step /= 2) {
        struct lead from = lead;
        for (int side = -1; side <= 1; side++)
            for (int more = 0; more < 3; more++) {
                struct lead to = {from.slope + side * step, more};
                set_ahead(plan, to, ahead);
                if (pl_plan_try(plan, &best)) lead = to;
            }
    }
    free(ahead);
}

/* ZB-H1 (k = 1) or ZB-H2 (2), if it fits. */
static void try_hand(struct pl_plan *plan, int k)
{
    struct pl_schedule hand = {.shape = plan->out->shape};
    int P = hand.shape.P;
    int64_t peak = 1 + (int64_t)k * (P - 1);
    if ((hand.shape.m < peak ? hand.shape.m : peak) > plan->limit) return;
    hand.shape.updates = 1;
    pl_emit_split(&hand, k);
    pl_plan_clear(plan);
    for (int s = 0; s < P; s++)
        for (int64_t i = hand.first[s]; i < hand.first[s + 1]; i++)
            pl_plan_put(plan, s, hand.ops[i].kind, hand.ops[i].chunk,
                        hand.ops[i].micro);
    pl_plan_try(plan, NULL);
    pl_schedule_free(&hand);
}

int pl_zb_auto_emit(const struct pl_cost *cost, int limit, struct pl_schedule *out)
{
    struct pl_plan plan;
    pl_plan_begin(&plan, cost, out->shape.limit ? out->shape.limit : limit, out);
    try_hand(&plan, 1);
    try_hand(&plan, 2);
    pl_plan_clear(&plan);
    put_base(&plan);
    search(&plan);
    pl_plan_emit(&plan);
    pl_plan_end(&plan);
    return 0;
}

void pl_plan_closed(const struct pl_shape *shape, const struct pl_cost *cost,
                    double units, struct pl_closed *out)
{
    pl_tick F = cost->forward[0];
    bool equal = cost->backward[0] == F && cost->weight[0] == F &&
                 cost->update[0] == 0 && pl_closed_link(shape, cost) == 0 &&
                 shape->limit == 0 && shape->released == 0;
    double excess = shape->P == 1 ? 0 : equal ? units * pl_seconds(F) : NAN;
    pl_closed_excess(shape, cost, excess, true, out);
}

void pl_plan_closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                          int64_t *tau_max, int64_t *weight_versions,
                          int64_t *peak_activations)
{
    (void)shape;
    (void)instance;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = -1; /* depends on the costs */
}
