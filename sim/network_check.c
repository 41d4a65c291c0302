#include "sim/network_check.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

struct check {
    const struct pl_timeline *t;
    const struct pl_cost *cost;
    const int64_t *rows;
    bool paired_calls;
    pl_tick *free_at;        /* [2 * P] occupancy */
    int64_t *first, *of_row; /* rendezvous: rows of device d are of_row[first[d]..] */
};

static int complain(const struct check *x, int64_t i, const char *what)
{
    const struct pl_timeline *t = x->t;
    return pl_fail(PL_ECHECK, "message %lld (%s %lld, stage %d to %d): %s",
                   (long long)i, t->msg_kind[i] == PL_OP_F ? "activation" : "gradient",
                   (long long)t->msg_micro[i], t->src[i], t->dst[i], what);
}

/* Occupancy: the links on its way are taken from sent to arrived. */
static int check_way(const struct check *x, int64_t i, pl_tick ready)
{
    int P = x->cost->devices, dst = x->t->dst[i];
    pl_tick sent = x->t->sent[i], earliest = ready;
    for (int d = x->t->src[i], to; d != dst; d = to) {
        to = pl_cost_hop(x->cost, d, dst);
        pl_tick *at = &x->free_at[d == (to + 1) % P && (P > 2 || d) ? P + d : d];
        if (sent < *at) return complain(x, i, "on a link that another one is on");
        if (*at > earliest) earliest = *at;
        *at = x->t->arrived[i];
    }
    return sent > earliest ? complain(x, i, "sent later than it could be") : PL_OK;
}

/* The device's last row that starts before `time`, -1: none. */
static int64_t last_before(const struct check *x, int device, pl_tick time)
{
    int64_t low = x->first[device], high = x->first[device + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (x->t->start[x->of_row[middle]] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low == x->first[device] ? -1 : x->of_row[low - 1];
}

static int check_blocked(const struct check *x, int64_t i)
{
    const struct pl_timeline *t = x->t;
    int64_t from = x->rows[i], here = last_before(x, t->src[i], t->arrived[i]),
            there = last_before(x, t->dst[i], t->arrived[i]);
    bool paired = here >= 0 && t->start[here] == t->start[from];
    if (x->paired_calls && here >= 0 && t->kind[here] == PL_OP_BW)
        paired |= t->start[here] == t->end[from];
    if (here > from && !paired)
        return complain(x, i, "the sender went on before it was taken");
    if (there >= 0 && t->end[there] > t->sent[i])
        return complain(x, i, "the receiver was busy when it was taken");
    return PL_OK;
}

static int check_message(const struct check *x, int64_t i)
{
    const struct pl_timeline *t = x->t;
    enum pl_link_semantics semantics = x->cost->semantics;
    pl_tick ended = t->end[x->rows[i]];
    pl_tick ready = ended + pl_cost_send(x->cost, t->src[i], t->dst[i]);
    pl_tick flight = t->arrived[i] - t->sent[i];
    pl_tick alone = pl_cost_transfer(x->cost, t->msg_kind[i], t->msg_chunk[i],
                                     t->src[i], t->dst[i], t->msg_micro[i]);
    if (t->sent[i] < ended) return complain(x, i, "sent before its op ended");
    if (t->sent[i] < ready) return complain(x, i, "sent before the sender's part");
    if (semantics == PL_CONTENTION ? flight < alone : flight != alone)
        return complain(x, i, "flight time differs from link.time");
    switch (semantics) {
    case PL_OCCUPANCY:
        return check_way(x, i, ready);
    case PL_RENDEZVOUS:
        return check_blocked(x, i);
    default:
        return t->sent[i] > ready ? complain(x, i, "sent later than it could be")
                                  : PL_OK;
    }
}

static void list_rows(struct check *x)
{
    const struct pl_timeline *t = x->t;
    int P = x->cost->devices;
    x->first = PL_NEW(P + 1, int64_t);
    x->of_row = PL_NEW(t->n_ops, int64_t);
    int64_t *at = PL_NEW(P, int64_t);
    for (int64_t i = 0; i < t->n_ops; i++) x->first[t->device[i] + 1]++;
    for (int d = 0; d < P; d++) at[d] = x->first[d + 1] += x->first[d];
    for (int64_t i = t->n_ops - 1; i >= 0; i--) x->of_row[--at[t->device[i]]] = i;
    free(at);
}

int pl_network_check(const struct pl_timeline *timeline,
                     const struct pl_schedule *schedule, const struct pl_cost *cost,
                     const int64_t *rows)
{
    struct check x = {timeline, cost, rows, schedule->type->paired_calls, 0, 0, 0};
    int rc = PL_OK;
    if (cost->semantics == PL_OCCUPANCY) x.free_at = PL_NEW(2 * cost->devices, pl_tick);
    if (cost->semantics == PL_RENDEZVOUS) list_rows(&x);
    for (int64_t i = 0; i < timeline->n_messages && !rc; i++) rc = check_message(&x, i);
    free(x.free_at);
    free(x.first);
    free(x.of_row);
    return rc;
}
