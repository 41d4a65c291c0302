/* The timeline of a static run: the rows of each device in its own order, merged by
 * (start, device), which is the order of timeline.h. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/static_parts.h"

/* Where each device is. */
struct place {
    int64_t op, op_stop, update, update_stop;
    pl_tick op_start, update_start; /* PL_NEVER after the last */
};

struct merge {
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    const struct pl_ends *ends;
    struct pl_timeline *out;
    struct place *place;
    struct turns turns;
    int64_t *number; /* [instances] U done */
    int64_t rows;
};

static pl_tick duration(const struct merge *x, int kind, int instance)
{
    return pl_cost_time(x->cost, kind, instance % x->sched->layout.C);
}

/* Look up what comes next on the device and when. */
static void look(struct merge *x, int device)
{
    struct place *p = &x->place[device];
    p->op_start = p->update_start = PL_NEVER;
    if (p->op < p->op_stop) {
        const struct pl_op *op = &x->sched->ops[p->op];
        pl_tick took = duration(x, op->kind, op->chunk);
        if (op->pair)
            took = pl_cost_pair(x->cost, took, duration(x, op[1].kind, op[1].chunk));
        p->op_start = x->ends->op[p->op] - took;
    }
    if (p->update < p->update_stop)
        p->update_start =
            x->ends->update[p->update] - duration(x, PL_OP_U, x->ends->who[p->update]);
    turns_set(&x->turns, device,
              p->op_start < p->update_start ? p->op_start : p->update_start);
}

static void put(struct merge *x, int device, const struct pl_op *op, pl_tick start,
                pl_tick end)
{
    int64_t i = x->rows++;
    x->out->kind[i] = (int8_t)op->kind;
    x->out->device[i] = device;
    x->out->chunk[i] = op->chunk;
    x->out->micro[i] = op->micro;
    x->out->start[i] = start;
    x->out->end[i] = end;
}

static void merge_ops(struct merge *x)
{
    const struct pl_schedule *sched = x->sched;
    while (turns_time(&x->turns) != PL_NEVER) {
        int device = turns_device(&x->turns);
        struct place *p = &x->place[device];
        if (p->update_start <= p->op_start) { /* a U comes first */
            int who = x->ends->who[p->update];
            struct pl_op op = {x->number[who]++, who, PL_OP_U, 0};
            put(x, device, &op, p->update_start, x->ends->update[p->update++]);
        } else {
            const struct pl_op *op = &sched->ops[p->op];
            for (int n = 1 + op->pair; n > 0; n--, op++)
                put(x, device, op, p->op_start, x->ends->op[p->op++]);
        }
        look(x, device);
    }
}

/* Does the result of op leave its device, and to which instance? */
static bool leaves(const struct pl_schedule *sched, const struct pl_op *op, int *to)
{
    const struct pl_layout *layout = &sched->layout;
    int side = op->kind == PL_OP_F ? 1 : -1, other = op->chunk % layout->C + side;
    if (op->kind == PL_OP_W || other < 0 || other >= layout->C) return false;
    *to = op->chunk + side;
    return layout->device[*to] != layout->device[op->chunk];
}

/* Messages in order of (end of the op, device, order on the device). */
static void merge_messages(struct merge *x)
{
    const struct pl_schedule *sched = x->sched;
    const int *device_of = sched->layout.device;
    struct pl_timeline *out = x->out;
    int64_t i = 0;
    for (int d = 0; d < sched->layout.P; d++) {
        x->place[d].op = sched->first[d];
        turns_set(&x->turns, d,
                  sched->first[d] < sched->first[d + 1] ? x->ends->op[sched->first[d]]
                                                        : PL_NEVER);
    }
    while (turns_time(&x->turns) != PL_NEVER) {
        int d = turns_device(&x->turns), to;
        int64_t at = x->place[d].op++;
        const struct pl_op *op = &sched->ops[at];
        turns_set(&x->turns, d,
                  at + 1 < sched->first[d + 1] ? x->ends->op[at + 1] : PL_NEVER);
        if (!leaves(sched, op, &to)) continue;
        out->src[i] = d;
        out->dst[i] = device_of[to];
        out->msg_chunk[i] = op->chunk;
        out->msg_micro[i] = op->micro;
        out->msg_kind[i] = op->kind == PL_OP_F ? PL_OP_F : PL_OP_B;
        out->sent[i] = x->ends->op[at];
        out->arrived[i] = out->sent[i] + pl_cost_flight(x->cost, d, device_of[to]);
        i++;
    }
}

static void fill(const struct pl_schedule *sched, const struct pl_cost *cost,
                 const struct pl_ends *ends, struct pl_timeline *out)
{
    int P = sched->layout.P, Q = sched->layout.C * sched->layout.R;
    struct merge x = {.sched = sched, .cost = cost, .ends = ends, .out = out};
    int64_t *updates = PL_NEW(P + 1, int64_t);
    x.place = PL_NEW(P, struct place);
    x.number = PL_NEW(Q, int64_t);
    turns_new(&x.turns, P);
    for (int q = 0; q < Q; q++)
        updates[sched->layout.device[q] + 1] += sched->shape.updates;
    for (int d = 0; d < P; d++) {
        updates[d + 1] += updates[d];
        x.place[d] = (struct place){.op = sched->first[d],
                                    .op_stop = sched->first[d + 1],
                                    .update = updates[d],
                                    .update_stop = updates[d + 1]};
        look(&x, d);
    }
    merge_ops(&x);
    merge_messages(&x);
    turns_free(&x.turns);
    free(x.place);
    free(x.number);
    free(updates);
}

int pl_static_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out)
{
    struct pl_ends ends = {0};
    int rc = pl_static_ends(schedule, cost, barrier, &ends);
    if (rc) return rc;
    pl_static_room_free(&ends);
    pl_timeline_new(schedule, out);
    fill(schedule, cost, &ends, out);
    pl_ends_free(&ends);
    return PL_OK;
}
