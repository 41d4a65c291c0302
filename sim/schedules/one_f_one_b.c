/* 1F1B with flush (PipeDream-Flush, DAPPLE, Megatron's non-interleaved schedule): per
 * update stage s runs min(P-1-s, m) forwards, then one forward one backward, then
 * drains.
 *   T per update = (m + P - 1)(F + BW) + 2 c [(P-1) m / P + P - 2] + U  for P | m
 *                  or c = 0
 *   activations min(m, P - s)
 * Sources: Narayanan et al., ICML 2021 (arXiv 2006.09503); Fan et al., PPoPP 2021. */
#include <math.h>

#include "sim/schedules/emit.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    const struct pl_shape *shape = &out->shape;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int s = 0; s < shape->P; s++) {
        for (int64_t g = 0; g < shape->updates; g++)
            pl_emit_alternating(&emit, s, g * shape->m, shape->m, shape->P - 1 - s);
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    double P = shape->P, m = shape->m, link = pl_closed_link(shape, cost), wait = 0;
    if (link > 0)
        wait = shape->m % shape->P ? NAN : 2 * link * ((P - 1) * m / P + P - 2);
    pl_closed_excess(shape, cost, (P - 1) * pl_closed_micro(shape, cost) + wait, false,
                     out);
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int in_flight = shape->P - stage;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = shape->m < in_flight ? shape->m : in_flight;
}

const struct pl_schedule_type pl_schedule_1f1b = {
    .name = "1f1b",
    .summary = "one forward one backward, flush at every update",
    .source = "arXiv 2006.09503",
    .global_version = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
