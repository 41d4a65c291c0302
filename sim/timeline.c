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
    /* not zeroed: every row will be written */
    out->n_ops = n;
    out->n_messages = n_messages;
    out->kind = pl_grow(NULL, (size_t)n, sizeof(int8_t));
    out->device = pl_grow(NULL, (size_t)n, sizeof(int32_t));
    out->chunk = pl_grow(NULL, (size_t)n, sizeof(int32_t));
    out->micro = pl_grow(NULL, (size_t)n, sizeof(int64_t));
    out->start = pl_grow(NULL, (size_t)n, sizeof(pl_tick));
    out->end = pl_grow(NULL, (size_t)n, sizeof(pl_tick));
    out->src = pl_grow(NULL, (size_t)n_messages, sizeof(int32_t));
    out->dst = pl_grow(NULL, (size_t)n_messages, sizeof(int32_t));
    out->msg_chunk = pl_grow(NULL, (size_t)n_messages, sizeof(int32_t));
    out->msg_micro = pl_grow(NULL, (size_t)n_messages, sizeof(int64_t));
    out->msg_kind = pl_grow(NULL, (size_t)n_messages, sizeof(int8_t));
    out->sent = pl_grow(NULL, (size_t)n_messages, sizeof(pl_tick));
    out->arrived = pl_grow(NULL, (size_t)n_messages, sizeof(pl_tick));
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
