/* GPipe: all m forwards, then all m backwards, then the update.
 *   T per update = (m + P - 1)(F + BW) + 2 (P - 1) c + U;  activations m
 * Source: Huang et al., NeurIPS 2019 (arXiv 1811.06965); backward order 0..m-1 as in
 * torch.distributed.pipelining (the order does not change the time). */
#include "sim/schedules/emit.h"

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    const struct pl_shape *shape = &out->shape;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int s = 0; s < shape->P; s++) {
        for (int64_t g = 0; g < shape->updates; g++)
            pl_emit_alternating(&emit, s, g * shape->m, shape->m, shape->m);
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    double units = 2 * pl_closed_link(shape, cost) + pl_closed_micro(shape, cost);
    pl_closed_excess(shape, cost, (shape->P - 1) * units, false, out);
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    (void)stage;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = shape->m;
}

const struct pl_schedule_type pl_schedule_gpipe = {
    .name = "gpipe",
    .summary = "all forwards, all backwards, update",
    .source = "arXiv 1811.06965",
    .global_version = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
