/* DualPipeV ("cut in half"): one copy of the model in a V, chunk c < P on device c, the
 * way back on the same devices; order and time of dualpipe_order.c with R = P, so half
 * the devices of DualPipe at the same number of chunks.
 *   activations 2 P + 1 chunks of 1/(2P) of the model;  weight copies 1
 * Sources: github.com/deepseek-ai/DualPipe (dualpipev.py);
 * torch.distributed.pipelining, ScheduleDualPipeV. */
#include "base/err.h"
#include "sim/schedules/emit.h"

static int check(const struct pl_shape *shape)
{
    if (shape->m >= 2 * shape->P) return PL_OK;
    return pl_fail(PL_EUNSUP,
                   "dualpipev with m = %d microbatches on P = %d devices: expected at "
                   "least 2 P = %d",
                   shape->m, shape->P, 2 * shape->P);
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    int P = out->shape.P;
    int64_t m = out->shape.m;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < P; d++) {
        for (int64_t g = 0; g < out->shape.updates; g++)
            pl_emit_dual(&emit, &(struct pl_dual){.ranks = P,
                                                  .rank = d,
                                                  .n = m,
                                                  .instance = {d, 2 * P - 1 - d},
                                                  .first = {g * m, g * m}});
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    pl_closed_dual(shape, cost, shape->P, shape->m, out);
}

static void closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    (void)instance;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = 2 * shape->P + 1;
}

const struct pl_schedule_type pl_schedule_dualpipev = {
    .name = "dualpipev",
    .summary = "DualPipe folded: one copy of the model in a V, two chunks a device",
    .source = "arXiv 2412.19437",
    .global_version = true,
    .default_v = 2,
    .place = pl_place_zigzag,
    .check = check,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
