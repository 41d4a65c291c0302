/* Columns of the executed run: room for what a schedule will fill. */
#include "sim/timeline.h"

#include <stdlib.h>

#include "base/mem.h"

/* Results that go to another device. */
static int64_t count_messages(const struct pl_schedule *sched)
{
    const struct pl_layout *layout = &sched->layout;
    int64_t n = 0;
    for (int64_t i = 0; i < sched->n_ops; i++) {
        const struct pl_op *op = &sched->ops[i];
        int chunk = op->chunk % layout->C, here = layout->device[op->chunk];
        if (op->kind == PL_OP_F)
            n += chunk + 1 < layout->C && layout->device[op->chunk + 1] != here;
        else if (op->kind != PL_OP_W)
            n += chunk > 0 && layout->device[op->chunk - 1] != here;
    }
    return n;
}

void pl_timeline_new(const struct pl_schedule *sched, struct pl_timeline *out)
{
    int64_t n_updates = sched->layout.C * sched->layout.R * sched->shape.updates;
    int64_t n = sched->n_ops + n_updates, n_messages = count_messages(sched);
    *out = (struct pl_timeline){.shape = sched->shape};
    out->n_ops = n;
    out->n_messages = n_messages;
    out->kind = PL_NEW(n, int8_t);
    out->device = PL_NEW(n, int32_t);
    out->chunk = PL_NEW(n, int32_t);
    out->micro = PL_NEW(n, int64_t);
    out->start = PL_NEW(n, pl_tick);
    out->end = PL_NEW(n, pl_tick);
    out->src = PL_NEW(n_messages, int32_t);
    out->dst = PL_NEW(n_messages, int32_t);
    out->msg_chunk = PL_NEW(n_messages, int32_t);
    out->msg_micro = PL_NEW(n_messages, int64_t);
    out->msg_kind = PL_NEW(n_messages, int8_t);
    out->sent = PL_NEW(n_messages, pl_tick);
    out->arrived = PL_NEW(n_messages, pl_tick);
}

void pl_timeline_free(struct pl_timeline *t)
{
    if (!t) return;
    free(t->kind);
    free(t->device);
    free(t->chunk);
    free(t->micro);
    free(t->start);
    free(t->end);
    free(t->src);
    free(t->dst);
    free(t->msg_chunk);
    free(t->msg_micro);
    free(t->msg_kind);
    free(t->sent);
    free(t->arrived);
    *t = (struct pl_timeline){0};
}
