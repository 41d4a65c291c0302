/* V-Half: two chunks a device in a V, about half the memory of 1F1B: (P + 2) / 2
 * activations, or schedule.max_activations. Starts from a building block repeated every
 * 6 units (sim/schedules/v.c); what the costs leave idle is filled greedily.
 *   F = B = W of a chunk, c = 0, m >= P/2 + 2: 6 m F + (3P - 7) F; odd P: 3P - 4
 * Source: Qi et al., NeurIPS 2024 (arXiv 2405.15362), section 4. */
#include <math.h>

#include "sim/schedules/emit.h"
#include "sim/schedules/v.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    return pl_v_emit(cost, PL_V_HALF, out);
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    int P = shape->P;
    bool enough = P > 2 && shape->m >= (P + 4) / 2;
    pl_plan_closed(shape, cost, enough ? 3 * P - (P % 2 ? 4 : 7) : NAN, out);
}

const struct pl_schedule_type pl_schedule_v_half = {
    .name = "v-half",
    .summary = "two chunks in a V, about half the memory of 1F1B",
    .source = "arXiv 2405.15362",
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
