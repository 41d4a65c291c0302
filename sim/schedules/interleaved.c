/* Interleaved 1F1B (Megatron): device r has model chunks r, r + P, ..., r + (v-1) P.
 * Microbatches go in groups of N (schedule.group; Megatron Core's
 * microbatch-group-size-per-vp-stage, P when not given): N forwards of the first chunk,
 * N of the second, ..., then the next group; backwards the same with the chunks
 * reversed. Device r is 2 (P-1-r) + (v-1) N forwards ahead, then one forward one
 * backward.
 *   T per update = m (F + BW) + (P-1)(F + BW) / v + 2 c (P v - 1) + U
 *                  for N = P and c = 0, or U = 0 and v c <= min(F, BW)
 *   activations of device r in chunks: min(m v, 2 (P-1-r) + (v-1) N + 1)
 * with F, BW of a whole device. v = 1 keeps the warm-up of 2 (P-1-r), twice that of
 * plain 1F1B, as Megatron's formula has it.
 * The 1F1B-I column of arXiv 2401.10241 is smaller by exactly P c: its evaluator lets
 * only the first microbatch of a group wait for the transfer from device P-1 back to
 * device 0 (and 0 to P-1 for gradients), here all of them wait.
 * Sources: Narayanan et al., SC 2021 (arXiv 2104.04473), section 2.2; Megatron Core,
 * pipeline_parallel/schedules.py (warm-up, groups, refusals). */
#include <math.h>

#include "base/err.h"
#include "sim/schedules/emit.h"

static int group_of(const struct pl_shape *shape)
{
    return shape->group ? shape->group : shape->P;
}

/* Megatron Core: N from P to m; a last, smaller group has at least P. */
static int check(const struct pl_shape *shape)
{
    int P = shape->P, m = shape->m, N = group_of(shape);
    if (m < P)
        return pl_fail(PL_EUNSUP,
                       "interleaved with m = %d microbatches on P = %d stages: "
                       "expected m >= P, nearest %d",
                       m, P, P);
    if (N < P || N > m)
        return pl_fail(PL_EUNSUP,
                       "interleaved with schedule.group %d: expected from P = %d to m "
                       "= %d",
                       N, P, m);
    int rest = m % N;
    if (rest == 0 || rest >= P) return PL_OK;
    if (!shape->group)
        return pl_fail(PL_EUNSUP,
                       "interleaved with m = %d microbatches on P = %d stages: "
                       "expected a multiple of P, nearest %d or %d (or a "
                       "schedule.group N with m mod N = 0 or >= P)",
                       m, P, m - rest, m - rest + P);
    return pl_fail(PL_EUNSUP,
                   "interleaved with m = %d and schedule.group %d: the last group has "
                   "%d microbatches, expected 0 or at least P = %d; nearest m %d or %d",
                   m, N, rest, P, m - rest, m - rest + P);
}

/* Where the k-th forward of a device is: groups of N microbatches, the last one may be
 * smaller. Backwards: the same k with the chunks reversed. */
static void place_of(const struct pl_shape *shape, int64_t k, int *chunk,
                     int64_t *micro)
{
    int N = group_of(shape);
    int64_t group = k / ((int64_t)N * shape->v), first = group * N;
    int64_t n = shape->m - first < N ? shape->m - first : N;
    int64_t within = k - first * shape->v;
    *chunk = (int)(within / n);
    *micro = first + within % n;
}

static void put(struct pl_emit *emit, int kind, int device, int64_t first, int64_t k)
{
    const struct pl_shape *shape = &emit->out->shape;
    int chunk;
    int64_t micro;
    place_of(shape, k, &chunk, &micro);
    if (kind != PL_OP_F) chunk = shape->v - 1 - chunk;
    pl_emit_put(emit, kind, chunk * shape->P + device, first + micro);
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    const struct pl_shape *shape = &out->shape;
    int64_t n = (int64_t)shape->m * shape->v;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < shape->P; d++) {
        int64_t warm =
            2 * (shape->P - 1 - d) + (int64_t)(shape->v - 1) * group_of(shape);
        if (warm > n) warm = n;
        for (int64_t g = 0; g < shape->updates; g++) {
            int64_t first = g * shape->m;
            for (int64_t k = 0; k < warm; k++) put(&emit, PL_OP_F, d, first, k);
            for (int64_t k = 0; k < n; k++) {
                if (warm + k < n) put(&emit, PL_OP_F, d, first, warm + k);
                put(&emit, PL_OP_BW, d, first, k);
            }
        }
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    double P = shape->P, v = shape->v, link = pl_closed_link(shape, cost);
    bool short_link = cost->update[0] == 0 && cost->next[0] <= cost->forward[0] &&
                      cost->next[0] <= cost->both[0];
    double excess = (P - 1) * pl_closed_micro(shape, cost) / v + 2 * link * (P * v - 1);
    if (group_of(shape) != shape->P || (link > 0 && !short_link)) excess = NAN;
    pl_closed_excess(shape, cost, excess, false, out);
}

static void closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int64_t n = (int64_t)shape->m * shape->v;
    int64_t ahead = 2 * (shape->P - 1 - instance % shape->P) +
                    (int64_t)(shape->v - 1) * group_of(shape) + 1;
    *tau_min = *tau_max = 0;
    *weight_versions = 1;
    *peak_activations = n < ahead ? n : ahead;
}

const struct pl_schedule_type pl_schedule_interleaved = {
    .name = "interleaved",
    .summary = "interleaved 1F1B, v model chunks per device",
    .source = "arXiv 2104.04473",
    .global_version = true,
    .paired_calls = true,
    .default_v = 2,
    .any_v = true,
    .check = check,
    .grouped = true,
    .emit = emit,
    .reads = pl_reads_newest,
    .closed = closed,
    .closed_stage = closed_stage,
};
