/* Chimera: two copies of the model on D = P devices, down (stage s on device s) and up
 * (on D-1-s), half of the microbatches each. In slots of one op device d runs
 *   F down at d + 2i and B up at D + d + 2i            (i < D/2), and
 *   F up at D-1-d + 2i and B down at 2D-1-d + 2i,
 * two sequences of different parity, so that they merge without a conflict; N > D
 * microbatches are basic units of D, 2D slots apart ("direct concatenation"). The last
 * unit may be smaller.
 *   F = B_full, D | N:  T = (2N + D - 2) F;  bubble (D-2)/(2N+D-2)
 *   B_full = 2F, N = D: bubble (D-2)/(3N/2+D-2)
 * both are cases of (D | N, no transfers; the last term measured on this order: the
 * bubbles in the middle that forward doubling would remove)
 *   T = N (F + B_full) + (D-2) max(F, B_full) + (N/D - 1)(D-2) |B_full - F|
 *   activations D/2+1 (ends) .. D (middle);  weight copies 2
 * Source: Li and Hoefler, SC 2021 (arXiv 2107.06925), Table 2 and section 3. */
#include <math.h>

#include "base/err.h"
#include "sim/schedules/emit.h"

static int check(const struct pl_shape *shape)
{
    if (shape->P % 2 == 0) return PL_OK;
    return pl_fail(PL_EUNSUP,
                   "chimera on P = %d devices: expected an even number, such as %d, or "
                   "the two directions want the same slots",
                   shape->P, shape->P + 1);
}

/* One of the two sequences of a device: D/2 F of one direction, D/2 backwards of the
 * other, and again for the next unit. */
struct sequence {
    int start;             /* slot of its first op */
    int forward, backward; /* instances */
    bool up_forward, up_backward;
};

/* Microbatch i of a direction in unit k of an update of m, or -1: there is none. */
static int64_t micro_of(const struct pl_shape *shape, int64_t unit, int i, bool up)
{
    int64_t D = shape->P, left = shape->m - unit * D, n = left < D ? left : D;
    int64_t down = (n + 1) / 2, mine = up ? n - down : down;
    if (i >= mine) return -1;
    return unit * D + (up ? down : 0) + i;
}

/* Op j of the sequence in an update whose first microbatch is `first`. */
static void put(struct pl_emit *emit, const struct sequence *s, int64_t j,
                int64_t first)
{
    const struct pl_shape *shape = &emit->out->shape;
    int D = shape->P, i = (int)(j % D);
    bool forward = i < D / 2;
    int64_t micro = micro_of(shape, j / D, forward ? i : i - D / 2,
                             forward ? s->up_forward : s->up_backward);
    if (micro >= 0)
        pl_emit_put(emit, forward ? PL_OP_F : PL_OP_BW,
                    forward ? s->forward : s->backward, first + micro);
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    int D = out->shape.P;
    int64_t units = (out->shape.m + D - 1) / D;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < D; d++) {
        int down = d, up = D + (D - 1 - d);
        struct sequence a = {d, down, up, false, true},
                        b = {D - 1 - d, up, down, true, false};
        for (int64_t g = 0; g < out->shape.updates; g++)
            for (int64_t slot = 0; slot < (2 * units + 1) * D; slot++) {
                bool first = (slot - a.start) % 2 == 0;
                const struct sequence *s = first ? &a : &b;
                int64_t j = (slot - s->start) / 2;
                if (slot >= s->start && j < units * D)
                    put(&emit, s, j, g * out->shape.m);
            }
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    *out = (struct pl_closed){NAN, NAN, NAN, NAN};
    if (cost->update[0] > 0 || pl_closed_link(shape, cost) > 0 || shape->m % shape->P)
        return;
    double f = pl_seconds(cost->forward[0]), b = pl_seconds(cost->both[0]);
    double middle = (shape->m / shape->P - 1) * fabs(b - f);
    pl_closed_excess(shape, cost, (shape->P - 2) * (fmax(f, b) + middle), false, out);
}

static void closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int D = shape->P, s = instance % D, end = s < D - 1 - s ? s : D - 1 - s;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = shape->m >= D ? D / 2 + 1 + end : -1;
}

const struct pl_schedule_type pl_schedule_chimera = {
    .name = "chimera",
    .summary = "two opposite 1F1B pipelines on two copies of the model",
    .source = "arXiv 2107.06925",
    .global_version = true,
    .replicas = 2,
    .place = pl_place_zigzag,
    .check = check,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
