/* ZB-H2: twice the warm-up of ZB-H1. Stage s runs 2 (P-1-s) forwards, then F and B in
 * turn; W stays 2 s backwards behind its B. Without a bubble when F = B = W.
 *   longest of one device = m (F + B + W) + (P-1)(F + B - 2 W + 2 c) + U
 *                           for W + c <= min(F, B), m >= 2P - 1, one update
 *   activations min(m, 2P - 1) on every stage
 * The span is that of one device (parallelogram): the source validates the global
 * norm after the step, so that no device waits for the others at an update.
 * Source: Qi et al., ICLR 2024 (arXiv 2401.10241), sections 2 and 4. */
#include <math.h>

#include "sim/schedules/emit.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    pl_emit_split(out, 2);
    return 0;
}

static bool exact(const struct pl_shape *shape, const struct pl_cost *cost)
{
    pl_tick most = cost->weight[0] + cost->next[0];
    if (shape->P == 1) return true;
    return most <= cost->forward[0] && most <= cost->backward[0] &&
           shape->m >= 2 * shape->P - 1;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    double F = pl_seconds(cost->forward[0]), B = pl_seconds(cost->backward[0]),
           W = pl_seconds(cost->weight[0]), c = pl_closed_link(shape, cost);
    double excess = (shape->P - 1) * (F + B - 2 * W + 2 * c);
    pl_closed_excess(shape, cost, exact(shape, cost) ? excess : NAN, true, out);
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    (void)stage;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = shape->m < 2 * shape->P - 1 ? shape->m : 2 * shape->P - 1;
}

const struct pl_schedule_type pl_schedule_zb_h2 = {
    .name = "zb-h2",
    .summary = "zero bubble by twice the memory of 1F1B",
    .source = "arXiv 2401.10241",
    .global_version = true,
    .post_validated = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
