/* ZB-V (V-ZB in the controllable-memory paper): two chunks a device in a V, memory of
 * 1F1B: P activations, or schedule.max_activations. Without a bubble when F = B = W.
 * Every plan starts from the hand-made order (sim/schedules/v.c); the costs decide
 * where each W goes.
 *   F = B = W, c = 0, m >= 2P-1: m (F + B + W)
 * Source: Qi et al., arXiv 2401.10241v2, section 6. */
#include <math.h>

#include "sim/schedules/emit.h"
#include "sim/schedules/v.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    return pl_v_emit(cost, PL_V_ZERO, out);
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    pl_plan_closed(shape, cost, shape->m >= 2 * shape->P - 1 ? 0 : NAN, out);
}

const struct pl_schedule_type pl_schedule_zb_v = {
    .name = "zb-v",
    .summary = "two chunks in a V (V-ZB), no bubble with the memory of 1F1B",
    .source = "arXiv 2401.10241",
    .global_version = true,
    .post_validated = true,
    .default_v = 2,
    .place = pl_place_zigzag,
    .limited = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = pl_plan_closed_stage,
};
