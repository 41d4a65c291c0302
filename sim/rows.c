/* Order of the rows (timeline.h): updates that take no time make several rounds of one
 * instant; its rows are put in order here. */
#include <stdlib.h>

#include "sim/engine.h"

struct op_row {
    int64_t at, micro;
    pl_tick start, end;
    int32_t device, chunk;
    int8_t kind;
};

struct message_row {
    int64_t at, micro;
    pl_tick sent, arrived;
    int32_t src, dst, chunk;
    int8_t kind;
};

static int compare_ops(const void *a, const void *b)
{
    const struct op_row *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static int compare_messages(const void *a, const void *b)
{
    const struct message_row *x = a, *y = b;
    if (x->src != y->src) return x->src < y->src ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static int compare_sent(const void *a, const void *b)
{
    const struct message_row *x = a, *y = b;
    if (x->sent != y->sent) return x->sent < y->sent ? -1 : 1;
    return compare_messages(a, b);
}

static bool ascending(const int32_t *key, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (key[i] < key[i - 1]) return false;
    return true;
}

static void order_ops(struct pl_timeline *t, int64_t first, int64_t n)
{
    struct op_row *rows = PL_NEW(n, struct op_row);
    for (int64_t k = 0, i = first; k < n; k++, i++)
        rows[k] = (struct op_row){i,         t->micro[i],  t->start[i],
                                  t->end[i], t->device[i], t->chunk[i],
                                  t->kind[i]};
    qsort(rows, (size_t)n, sizeof *rows, compare_ops);
    for (int64_t k = 0, i = first; k < n; k++, i++) {
        t->micro[i] = rows[k].micro;
        t->start[i] = rows[k].start;
        t->end[i] = rows[k].end;
        t->device[i] = rows[k].device;
        t->chunk[i] = rows[k].chunk;
        t->kind[i] = rows[k].kind;
    }
    free(rows);
}

static void order_messages(struct pl_timeline *t, int64_t first, int64_t n,
                           int (*compare)(const void *, const void *))
{
    struct message_row *rows = PL_NEW(n, struct message_row);
    for (int64_t k = 0, i = first; k < n; k++, i++)
        rows[k] = (struct message_row){
            i,         t->msg_micro[i], t->sent[i],      t->arrived[i],
            t->src[i], t->dst[i],       t->msg_chunk[i], t->msg_kind[i]};
    qsort(rows, (size_t)n, sizeof *rows, compare);
    for (int64_t k = 0, i = first; k < n; k++, i++) {
        t->msg_micro[i] = rows[k].micro;
        t->sent[i] = rows[k].sent;
        t->arrived[i] = rows[k].arrived;
        t->src[i] = rows[k].src;
        t->dst[i] = rows[k].dst;
        t->msg_chunk[i] = rows[k].chunk;
        t->msg_kind[i] = rows[k].kind;
    }
    free(rows);
}

void pl_rows_order(struct pl_timeline *t, int64_t first_op, int64_t n_ops,
                   int64_t first_message, int64_t n_messages)
{
    if (!ascending(t->device + first_op, n_ops)) order_ops(t, first_op, n_ops);
    if (!ascending(t->src + first_message, n_messages))
        order_messages(t, first_message, n_messages, compare_messages);
}

void pl_rows_sort_messages(struct pl_timeline *t)
{
    order_messages(t, 0, t->n_messages, compare_sent);
}
