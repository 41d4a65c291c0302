/* WPipe: the model in two groups of chunks, group 0 the first P, group 1 the last P;
 * device d has chunks d and P + d. The next period's forwards of group 0 move ahead of
 * this period's backwards of group 0, group 1 keeps its order, and the groups update in
 * turn (double-grouped weights, 2GW). Steady state of a device, one for one:
 *   F0(t+1) with B1(t), then F1(t+1) with B0(t)
 * so group 0 reads version t - 1 for period t (delay 1, 2 versions) and group 1 version
 * t (delay 0, 1 version): 1.5 copies of the weights.
 *   device s is g + P-1-s chunk forwards ahead;  activations g + P - s chunks
 *   time per update m (F + BW) + U, whole run (P-1) (F + BW) / 2 more  (c = 0)
 * A period may run in rounds of g microbatches (schedule.group; P when it divides m, as
 * in the paper's figures, else m): g >= P; below P - 1 the forwards of group 1 would
 * wait for an update that waits for them.
 *
 * Source: Yang et al., ICLR 2022 (openreview cw-EmNq5zfD). Which block of forwards goes
 * before which backwards is theirs and fixes the versions; the order one for one inside
 * the blocks is ours. */
#include <math.h>

#include "base/err.h"
#include "sim/schedules/emit.h"

static int round_of(const struct pl_shape *shape)
{
    if (shape->group) return shape->group;
    return shape->m % shape->P ? shape->m : shape->P;
}

static int check(const struct pl_shape *shape)
{
    int g = round_of(shape);
    if (g < shape->P)
        return pl_fail(PL_EUNSUP,
                       "wpipe in rounds of %d microbatches on P = %d stages: expected "
                       "at least P (schedule.%s)",
                       g, shape->P, shape->group ? "group" : "microbatches");
    if (shape->m % g == 0) return PL_OK;
    return pl_fail(PL_EUNSUP,
                   "wpipe with m = %d microbatches per update: expected a multiple of "
                   "schedule.group = %d, such as %d",
                   shape->m, g, (shape->m + g - 1) / g * g);
}

/* Op k of the device's forwards, or of its backwards. */
static void put(struct pl_emit *emit, const struct pl_shape *shape, int device,
                int kind, int64_t k)
{
    int64_t g = round_of(shape), at = k % (2 * g);
    bool second = kind == PL_OP_F ? at >= g : at < g;
    pl_emit_put(emit, kind, second ? shape->P + device : device,
                k / (2 * g) * g + at % g);
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    const struct pl_shape *shape = &out->shape;
    int64_t all = 2 * (int64_t)shape->m * shape->updates;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < shape->P; d++) {
        int64_t ahead = round_of(shape) + shape->P - 1 - d;
        if (ahead > all) ahead = all;
        for (int64_t k = 0; k < ahead; k++) put(&emit, shape, d, PL_OP_F, k);
        for (int64_t k = 0; k < all; k++) {
            if (k + ahead < all) put(&emit, shape, d, PL_OP_F, k + ahead);
            put(&emit, shape, d, PL_OP_BW, k);
        }
        pl_emit_device(&emit);
    }
    return 0;
}

static bool op_at(const struct pl_shape *shape, int device, int64_t k,
                  struct pl_op *out)
{
    int64_t all = 2 * (int64_t)shape->m * shape->updates, g = round_of(shape);
    if (!pl_op_alternating(all, g + shape->P - 1 - device, k, out)) return false;
    int64_t at = out->micro % (2 * g);
    bool second = out->kind == PL_OP_F ? at >= g : at < g;
    out->chunk = second ? shape->P + device : device;
    out->micro = out->micro / (2 * g) * g + at % g;
    return true;
}

static int64_t reads(const struct pl_shape *shape, int chunk, int64_t group)
{
    return chunk < shape->P && group > 0 ? group - 1 : group;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    *out = (struct pl_closed){NAN, NAN, NAN, NAN};
    if (pl_closed_link(shape, cost) > 0) return;
    double micro = pl_closed_micro(shape, cost), update = pl_closed_update(shape, cost);
    double updates = (double)shape->updates;
    out->step_s = shape->m * micro + update;
    out->makespan_s = updates * out->step_s + (shape->P - 1) * micro / 2;
    out->bubble_over_ideal = (shape->P - 1) * micro / 2 / (updates * out->step_s);
}

static void closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int first = instance < shape->P;
    int64_t held = round_of(shape) + shape->P - instance % shape->P;
    int64_t all = 2 * (int64_t)shape->m * shape->updates;
    *tau_min = *tau_max = first;
    *weight_versions = 1 + first;
    *peak_activations = held < all ? held : all;
}

const struct pl_schedule_type pl_schedule_wpipe = {
    .name = "wpipe",
    .summary = "no flush, two groups of chunks: delay 1 on the first, 0 on the second",
    .source = "ICLR 2022, cw-EmNq5zfD",
    .async = true,
    .default_v = 2,
    .check = check,
    .grouped = true,
    .emit = emit,
    .op_at = op_at,
    .reads = reads,
    .closed = closed,
    .closed_stage = closed_stage,
};
