/* Base orders of plans, and the order that is written in the end. */
#include <assert.h>

#include "sim/schedules/emit.h"
#include "sim/schedules/plan.h"

void pl_plan_put(struct pl_plan *plan, int device, int kind, int instance,
                 int64_t micro)
{
    int64_t each = plan->n + plan->n / 2;
    assert(plan->filled[device] < each);
    plan->base[device * each + plan->filled[device]++] =
        (struct pl_op){micro, instance, (int16_t)kind, 0};
    if (kind == PL_OP_W) plan->fixed = true;
}

void pl_plan_clear(struct pl_plan *plan)
{
    for (int d = 0; d < plan->out->shape.P; d++) plan->filled[d] = 0;
    plan->fixed = false;
}

enum { POLICIES = 12, LARGE = 1000000 };

bool pl_plan_try_all(struct pl_plan *plan, const int *ahead,
                     struct pl_plan_policy *best)
{
    bool better = false;
    /* the one that wins most often comes first; large shapes try no other */
    static const enum pl_plan_fill fills[] = {PL_FILL_BEHIND, PL_FILL_ALWAYS,
                                              PL_FILL_NEVER};
    bool large = plan->out->shape.P * plan->n > LARGE;
    for (int i = 0; i < (large ? 1 : POLICIES); i++) {
        struct pl_plan_policy policy = {.fill = fills[i / 4],
                                        .weight_first = i & 1,
                                        .stretch = !(i & 2),
                                        .ahead = ahead};
        if (!pl_plan_try(plan, &policy)) continue;
        better = true;
        if (best) *best = policy;
    }
    return better;
}

void pl_plan_adopt(struct pl_plan *plan)
{
    int64_t each = plan->n + plan->n / 2;
    pl_plan_clear(plan);
    for (int d = 0; d < plan->out->shape.P; d++)
        for (int64_t i = 0; i < each; i++) {
            const struct pl_op *op = &plan->best[d * each + i];
            if (op->kind != PL_OP_W)
                pl_plan_put(plan, d, op->kind, op->chunk, op->micro);
        }
}

int64_t pl_plan_peak(const struct pl_plan *plan)
{
    int64_t peak = 0;
    for (int d = 0; d < plan->out->shape.P; d++) {
        const struct pl_op *base = pl_plan_base(plan, d);
        int64_t held = 0;
        for (int64_t i = 0; i < plan->filled[d]; i++) {
            held += base[i].kind == PL_OP_F ? 1 : base[i].kind == PL_OP_B ? -1 : 0;
            if (held > peak) peak = held;
        }
    }
    return peak;
}

void pl_plan_emit(const struct pl_plan *plan)
{
    const struct pl_shape *shape = &plan->out->shape;
    int64_t each = plan->n + plan->n / 2;
    struct pl_emit emit;
    pl_emit_begin(&emit, plan->out);
    for (int d = 0; d < shape->P; d++) {
        for (int64_t g = 0; g < shape->updates; g++)
            for (int64_t i = 0; i < each; i++) {
                const struct pl_op *op = &plan->best[d * each + i];
                pl_emit_put(&emit, op->kind, op->chunk, op->micro + g * shape->m);
            }
        pl_emit_device(&emit);
    }
}
