/* ZB-H1: 1F1B with the backward split. Stage s runs P-1-s forwards, then F and B in
 * turn; W stays s backwards behind its B, which fills the drain.
 *   T per update = m (F + B + W) + (P-1)(F + B - W + 4 c) + U
 *                  for c = 0, W <= min(F, B), m >= P, or
 *                  2 c <= W, W + 2 c <= min(F, B), m >= 2P - 1
 *   activations min(m, P) on every stage
 * The span is taken to the global end, as the source's own table does.
 * Source: Qi et al., ICLR 2024 (arXiv 2401.10241), section 2. */
#include <math.h>

#include "sim/schedules/emit.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    pl_emit_split(out, 1);
    return 0;
}

static bool exact(const struct pl_shape *shape, const struct pl_cost *cost)
{
    pl_tick F = cost->forward[0], B = cost->backward[0], W = cost->weight[0],
            c = cost->next[0], shorter = F < B ? F : B;
    if (shape->P == 1) return true;
    if (c == 0) return W <= shorter && shape->m >= shape->P;
    return 2 * c <= W && W + 2 * c <= shorter && shape->m >= 2 * shape->P - 1;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    double F = pl_seconds(cost->forward[0]), B = pl_seconds(cost->backward[0]),
           W = pl_seconds(cost->weight[0]), c = pl_closed_link(shape, cost);
    double excess = (shape->P - 1) * (F + B - W + 4 * c);
    pl_closed_excess(shape, cost, exact(shape, cost) ? excess : NAN, false, out);
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    (void)stage;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = shape->m < shape->P ? shape->m : shape->P;
}

const struct pl_schedule_type pl_schedule_zb_h1 = {
    .name = "zb-h1",
    .summary = "1F1B with split backward, memory of 1F1B",
    .source = "arXiv 2401.10241",
    .global_version = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
