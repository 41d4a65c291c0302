/* V-Min: two chunks a device in a V, about a third of the memory of 1F1B: (P + 4) / 3
 * activations, or schedule.max_activations. Starts from a building block repeated every
 * 6 units (sim/schedules/v.c); what the costs leave idle is filled greedily. Unequal F,
 * B and W, or long links, cost it much. Source: Qi et al., NeurIPS 2024 (arXiv
 * 2405.15362), section 4. */
#include <math.h>

#include "sim/schedules/emit.h"
#include "sim/schedules/v.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    return pl_v_emit(cost, PL_V_MIN, out);
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    int P = shape->P;
    bool known = P > 2 && P != 5 && shape->m >= P;
    pl_plan_closed(shape, cost, known ? 4 * P - (P % 3 ? 5 : 7) : NAN, out);
}

const struct pl_schedule_type pl_schedule_v_min = {
    .name = "v-min",
    .summary = "two chunks in a V, about a third of the memory of 1F1B",
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
