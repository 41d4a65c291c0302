#include "sim/schedules/emit.h"

#include <math.h>

#include "base/mem.h"

void pl_emit_begin(struct pl_emit *emit, struct pl_schedule *out)
{
    const struct pl_shape *shape = &out->shape;
    int64_t per_device = 2 * (int64_t)shape->m * shape->v * shape->updates;
    *emit = (struct pl_emit){out, shape->P * per_device, 0};
    out->n_ops = 0;
    out->first = PL_NEW(shape->P + 1, int64_t);
    out->ops = PL_NEW(emit->room, struct pl_op);
}

static void put(struct pl_emit *emit, struct pl_op op)
{
    struct pl_schedule *out = emit->out;
    if (out->n_ops == emit->room) {
        emit->room += emit->room / 2 + 1;
        out->ops = pl_grow(out->ops, (size_t)emit->room, sizeof *out->ops);
    }
    out->ops[out->n_ops++] = op;
}

void pl_emit_put(struct pl_emit *emit, int kind, int instance, int64_t micro)
{
    put(emit, (struct pl_op){micro, instance, (int16_t)kind, 0});
}

void pl_emit_pair(struct pl_emit *emit, int forward, int64_t forward_micro,
                  int backward, int64_t backward_micro)
{
    put(emit, (struct pl_op){forward_micro, forward, PL_OP_F, 1});
    put(emit, (struct pl_op){backward_micro, backward, PL_OP_BW, 0});
}

void pl_emit_device(struct pl_emit *emit)
{
    emit->out->first[++emit->device] = emit->out->n_ops;
}

void pl_emit_alternating(struct pl_emit *emit, int instance, int64_t first, int64_t n,
                         int64_t warm)
{
    int64_t ahead = warm < n ? warm : n;
    for (int64_t i = 0; i < ahead; i++) pl_emit_put(emit, PL_OP_F, instance, first + i);
    for (int64_t i = 0; i < n; i++) {
        if (i + ahead < n) pl_emit_put(emit, PL_OP_F, instance, first + i + ahead);
        pl_emit_put(emit, PL_OP_BW, instance, first + i);
    }
}

bool pl_op_alternating(int64_t n, int64_t warm, int64_t k, struct pl_op *out)
{
    int64_t ahead = warm < n ? warm : n, turn = k - ahead, both = 2 * (n - ahead);
    if (k < 0 || k >= 2 * n) return false;
    *out = (struct pl_op){k, 0, PL_OP_F, 0};
    if (turn < 0) return true;
    out->kind = turn >= both || turn % 2 ? PL_OP_BW : PL_OP_F;
    out->micro = turn >= both    ? turn - both / 2
                 : turn % 2 == 0 ? ahead + turn / 2
                                 : turn / 2;
    return true;
}

bool pl_op_no_flush(const struct pl_shape *shape, int device, int64_t k,
                    struct pl_op *out)
{
    if (!pl_op_alternating(shape->m * shape->updates, shape->P - 1 - device, k, out))
        return false;
    out->chunk = device;
    return true;
}

int pl_emit_no_flush(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    struct pl_emit emit;
    struct pl_op op;
    pl_emit_begin(&emit, out);
    for (int s = 0; s < out->shape.P; s++) {
        for (int64_t k = 0; pl_op_no_flush(&out->shape, s, k, &op); k++)
            pl_emit_put(&emit, op.kind, op.chunk, op.micro);
        pl_emit_device(&emit);
    }
    return 0;
}

static void split_update(struct pl_emit *emit, int stage, int64_t first, int k)
{
    const struct pl_shape *shape = &emit->out->shape;
    int64_t m = shape->m, warm = (int64_t)k * (shape->P - 1 - stage);
    int64_t behind = (int64_t)k * stage;
    if (warm > m) warm = m;
    if (behind > m) behind = m;
    for (int64_t i = 0; i < warm; i++) pl_emit_put(emit, PL_OP_F, stage, first + i);
    for (int64_t i = 0; i < m; i++) {
        if (warm + i < m) pl_emit_put(emit, PL_OP_F, stage, first + warm + i);
        pl_emit_put(emit, PL_OP_B, stage, first + i);
        if (i >= behind) pl_emit_put(emit, PL_OP_W, stage, first + i - behind);
    }
    for (int64_t i = m - behind; i < m; i++)
        pl_emit_put(emit, PL_OP_W, stage, first + i);
}

void pl_emit_split(struct pl_schedule *out, int k)
{
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int s = 0; s < out->shape.P; s++) {
        for (int64_t g = 0; g < out->shape.updates; g++)
            split_update(&emit, s, g * out->shape.m, k);
        pl_emit_device(&emit);
    }
}

int pl_place_zigzag(const struct pl_shape *shape, int chunk, int replica)
{
    int at = chunk % shape->P;
    return (chunk / shape->P + replica) % 2 ? shape->P - 1 - at : at;
}

int64_t pl_reads_newest(const struct pl_shape *shape, int chunk, int64_t group)
{
    (void)shape;
    (void)chunk;
    return group;
}

int64_t pl_reads_live(const struct pl_shape *shape, int chunk, int64_t group)
{
    (void)shape;
    (void)chunk;
    (void)group;
    return PL_READS_LIVE;
}

double pl_closed_micro(const struct pl_shape *shape, const struct pl_cost *cost)
{
    return shape->v *
           pl_seconds(cost->forward[0] + cost->backward[0] + cost->weight[0]);
}

double pl_closed_update(const struct pl_shape *shape, const struct pl_cost *cost)
{
    return shape->v * pl_seconds(cost->update[0]);
}

double pl_closed_link(const struct pl_shape *shape, const struct pl_cost *cost)
{
    return shape->P > 1 ? pl_seconds(cost->next[0]) : 0;
}

void pl_closed_no_flush(const struct pl_shape *shape, const struct pl_cost *cost,
                        struct pl_closed *out)
{
    double P = shape->P, m = shape->m, updates = (double)shape->updates;
    double micro = pl_closed_micro(shape, cost), update = pl_closed_update(shape, cost);
    double link = pl_closed_link(shape, cost);
    *out = (struct pl_closed){NAN, NAN, NAN, NAN};
    if (link == 0) {
        double ideal = updates * (m * micro + update);
        out->makespan_s = (m * updates + P - 1) * micro + updates * update;
        out->bubble_over_ideal = (out->makespan_s - ideal) / ideal;
        out->step_s = m * micro + update;
    } else if (update == 0 && (shape->P % shape->m == 0 || shape->m % shape->P == 0)) {
        /* P in flight at stage 0: every P microbatches cost one round trip */
        out->step_s = m * micro + 2 * link * (P - 1) * m / P;
    }
}

void pl_closed_lead(const struct pl_shape *shape, int64_t lead, int64_t *tau_min,
                    int64_t *tau_max)
{
    *tau_min = lead / shape->m;
    *tau_max = (lead + shape->m - 1) / shape->m;
}

int64_t pl_closed_held(const struct pl_shape *shape, int64_t lead)
{
    int64_t all = shape->m * shape->updates;
    return lead + 1 < all ? lead + 1 : all;
}

void pl_closed_excess(const struct pl_shape *shape, const struct pl_cost *cost,
                      double excess_s, bool parallelogram, struct pl_closed *out)
{
    double m = shape->m, updates = (double)shape->updates;
    double ideal = m * pl_closed_micro(shape, cost) + pl_closed_update(shape, cost);
    double span = ideal + excess_s;
    *out = (struct pl_closed){NAN, NAN, NAN, NAN};
    if (parallelogram) {
        if (shape->updates == 1) out->span_s = span;
        return;
    }
    out->makespan_s = updates * span;
    out->bubble_over_ideal = excess_s / ideal;
    out->step_s = span;
}
