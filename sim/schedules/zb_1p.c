/* ZB-1p: the automatic zero-bubble schedule under a limit of P activations a device
 * (F until the end of W; B frees schedule.released of it), or schedule.max_activations.
 * Bubble rates are of the parallelogram span.
 *   F = B = W, c = 0: m (F + B + W) + max(P-1, 2P-1-m) F, as ZB-H1 for m >= P
 * Source: Qi et al., ICLR 2024 (arXiv 2401.10241), section 3 and its tables. */
#include "sim/schedules/emit.h"
#include "sim/schedules/plan.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    return pl_zb_auto_emit(cost, out->shape.P, out);
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    int P = shape->P, fewer = 2 * P - 1 - shape->m;
    pl_plan_closed(shape, cost, fewer > P - 1 ? fewer : P - 1, out);
}

const struct pl_schedule_type pl_schedule_zb_1p = {
    .name = "zb-1p",
    .summary = "automatic zero bubble, memory of 1F1B",
    .source = "arXiv 2401.10241",
    .global_version = true,
    .post_validated = true,
    .limited = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = pl_plan_closed_stage,
};
