/* DualPipe: two copies of the model on P devices, stage s of the first on device s, of
 * the second on device P-1-s; half of the microbatches enter at each end and meet in
 * the middle, where F of one direction runs together with the backward of the other.
 * Order: dualpipe_order.c, with R = P/2 and r the distance from the nearer end.
 *   idle (P/2-1)(F&B + B_full - 3W) as printed, for F = B; see there for other costs
 *   activations P + 1;  weight copies 2 (both directions)
 * F&B is the time of an overlapped pair (cost.overlap; F + B_full at 0), B_full = B +
 * W: DeepSeek's table calls that B. Source: DeepSeek-V3, arXiv 2412.19437, Table 2;
 * github.com/deepseek-ai/DualPipe. */
#include "base/err.h"
#include "sim/schedules/emit.h"

static int check(const struct pl_shape *shape)
{
    int P = shape->P, m = shape->m;
    if (P % 2)
        return pl_fail(PL_EUNSUP,
                       "dualpipe on P = %d devices: expected an even number, such as "
                       "%d, so that the directions meet between two devices",
                       P, P + 1);
    if (m % 2 || m < 2 * P)
        return pl_fail(PL_EUNSUP,
                       "dualpipe with m = %d microbatches on P = %d devices: expected "
                       "an even m of at least 2 P, such as %d",
                       m, P, m < 2 * P ? 2 * P : m + 1);
    return PL_OK;
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    int P = out->shape.P;
    int64_t m = out->shape.m;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < P; d++) {
        bool late = d >= P / 2; /* the nearer end is the last device: replica 1 first */
        int down = d, up = P + (P - 1 - d);
        for (int64_t g = 0; g < out->shape.updates; g++)
            pl_emit_dual(&emit, &(struct pl_dual){
                                    .ranks = P / 2,
                                    .rank = late ? P - 1 - d : d,
                                    .n = m / 2,
                                    .instance = {late ? up : down, late ? down : up},
                                    .first = {g * m + (late ? m / 2 : 0),
                                              g * m + (late ? 0 : m / 2)},
                                });
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    pl_closed_dual(shape, cost, shape->P / 2, shape->m / 2, out);
}

static void closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    (void)instance;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = shape->P + 1;
}

const struct pl_schedule_type pl_schedule_dualpipe = {
    .name = "dualpipe",
    .summary = "two opposite pipelines, F of one with the backward of the other",
    .source = "arXiv 2412.19437",
    .global_version = true,
    .replicas = 2,
    .place = pl_place_zigzag,
    .check = check,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
