/* A schedule of the user's own: the ops of a PyTorch schedule CSV (sim/custom.h),
 * repeated for every update. Synchronous: group g reads version g. Source:
 * torch.distributed.pipelining, PipelineScheduleMulti._load_csv. */
#include "sim/custom.h"

#include "base/err.h"
#include "sim/schedules/emit.h"

static int place(const struct pl_shape *shape, int chunk, int replica)
{
    (void)replica;
    return shape->custom->device[chunk];
}

static int check(const struct pl_shape *shape)
{
    const struct pl_custom *c = shape->custom;
    if (!c)
        return pl_fail(PL_EUNSUP,
                       "schedule custom has no ops of its own: set schedule.file to a "
                       "PyTorch schedule CSV");
    int v = c->C / c->P;
    if (shape->P == c->P && shape->m == c->m && shape->v == v) return PL_OK;
    return pl_fail(PL_EUNSUP,
                   "P = %d, m = %d and %d chunks a device, but %s has %d ranks, %d "
                   "microbatches and %d stages a rank",
                   shape->P, shape->m, shape->v, c->path, c->P, c->m, v);
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    const struct pl_custom *c = out->shape.custom;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < c->P; d++) {
        for (int64_t g = 0; g < out->shape.updates; g++)
            for (int64_t i = c->first[d]; i < c->first[d + 1]; i++) {
                const struct pl_op *op = &c->ops[i];
                int64_t first = g * c->m;
                if (op->pair) {
                    pl_emit_pair(&emit, op->chunk, first + op->micro, op[1].chunk,
                                 first + op[1].micro);
                    i++;
                } else {
                    pl_emit_put(&emit, op->kind, op->chunk, first + op->micro);
                }
            }
        pl_emit_device(&emit);
    }
    return 0;
}

const struct pl_schedule_type pl_schedule_custom = {
    .name = "custom",
    .summary = "the ops of a PyTorch schedule CSV (schedule.file)",
    .source = "torch.distributed.pipelining",
    .global_version = true,
    .from_file = true,
    .any_v = true,
    .place = place,
    .check = check,
    .emit = emit,
    .reads = pl_reads_newest,
};
