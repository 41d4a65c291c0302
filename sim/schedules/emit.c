#include "sim/schedules/emit.h"

#include <math.h>

#include "base/mem.h"

void pl_emit_begin(const struct pl_shape *shape, struct pl_schedule *out)
{
    int64_t per_stage = (2 * (int64_t)shape->m + 1) * shape->updates;
    out->n_ops = shape->P * per_stage;
    out->first = PL_NEW(shape->P + 1, int64_t);
    for (int s = 0; s <= shape->P; s++) out->first[s] = s * per_stage;
    out->ops = PL_NEW(out->n_ops, struct pl_op);
}

static void put(struct pl_schedule *out, int stage, int kind, int64_t micro,
                int64_t *at)
{
    out->ops[(*at)++] = (struct pl_op){micro, stage, kind};
}

void pl_emit_alternating(struct pl_schedule *out, int stage, int64_t first, int64_t n,
                         int64_t warm, int64_t *at)
{
    int m = out->shape.m;
    int64_t ahead = warm < n ? warm : n;
    for (int64_t i = 0; i < ahead; i++) put(out, stage, PL_OP_F, first + i, at);
    for (int64_t i = 0; i < n; i++) {
        if (i + ahead < n) put(out, stage, PL_OP_F, first + i + ahead, at);
        put(out, stage, PL_OP_BW, first + i, at);
        if ((first + i + 1) % m == 0) put(out, stage, PL_OP_U, (first + i) / m, at);
    }
}

int pl_emit_no_flush(const struct pl_shape *shape, struct pl_schedule *out)
{
    pl_emit_begin(shape, out);
    for (int s = 0; s < shape->P; s++) {
        int64_t at = out->first[s];
        pl_emit_alternating(out, s, 0, shape->m * shape->updates, shape->P - 1 - s,
                            &at);
    }
    return 0;
}

int64_t pl_reads_newest(const struct pl_shape *shape, int64_t group)
{
    (void)shape;
    return group;
}

void pl_closed_no_flush(const struct pl_shape *shape, const struct pl_cost *cost,
                        struct pl_closed *out)
{
    double P = shape->P, m = shape->m, updates = (double)shape->updates;
    double micro = pl_seconds(cost->forward[0] + cost->backward[0] + cost->weight[0]);
    double update = pl_seconds(cost->update[0]);
    double link = shape->P > 1 ? pl_seconds(cost->link[0]) : 0;
    *out = (struct pl_closed){NAN, NAN, NAN};
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

void pl_closed_flush(const struct pl_shape *shape, const struct pl_cost *cost,
                     double link_units, struct pl_closed *out)
{
    double P = shape->P, m = shape->m, updates = (double)shape->updates;
    double micro = pl_seconds(cost->forward[0] + cost->backward[0] + cost->weight[0]);
    double update = pl_seconds(cost->update[0]);
    double link = shape->P > 1 ? pl_seconds(cost->link[0]) : 0;
    double ideal = updates * (m * micro + update);
    double wait = link > 0 ? link_units * link : 0;
    out->makespan_s = updates * ((m + P - 1) * micro + wait + update);
    out->bubble_over_ideal = (out->makespan_s - ideal) / ideal;
    out->step_s = out->makespan_s / updates;
}
