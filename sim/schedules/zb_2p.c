/* ZB-2p: the automatic zero-bubble schedule under a limit of 2 P activations a device
 * (F until the end of W; B frees schedule.released of it), or schedule.max_activations.
 * Bubble rates are of the parallelogram span.
 *   F = B = W, c = 0: m (F + B + W) + max(0, 2P-1-m) F: no bubble for m >= 2P-1
 * Source: Qi et al., ICLR 2024 (arXiv 2401.10241), section 3 and its tables. */
#include "sim/schedules/emit.h"
#include "sim/schedules/plan.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    return pl_zb_auto_emit(cost, 2 * out->shape.P, out);
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    int fewer = 2 * shape->P - 1 - shape->m;
    pl_plan_closed(shape, cost, fewer > 0 ? fewer : 0, out);
}

const struct pl_schedule_type pl_schedule_zb_2p = {
    .name = "zb-2p",
    .summary = "automatic zero bubble, twice the memory of 1F1B",
    .source = "arXiv 2401.10241",
    .global_version = true,
    .post_validated = true,
    .limited = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = pl_plan_closed_stage,
};
