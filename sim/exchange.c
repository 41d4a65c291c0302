/* Megatron's point-to-point calls (p2p_communication.py: send_forward_recv_backward and
 * its kin), which block. Between one op and the next a device sends the result of the
 * first and receives what the second needs: in one call when both are with the same
 * neighbour, a pair is involved or devices have several chunks, else first the send,
 * then the receive. Interleaved, a forward and the backward behind it make one call
 * (send_forward_backward_recv_forward_backward). A message
 *   leaves at max(sender's call + its part, receiver's call), arrives one transfer
 * later, and a call ends when all its messages have arrived. The sender's part holds up
 * all of its call. What an op needs is asked for when the version that it reads is
 * there: after the flush, not before. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/network.h"

enum { MOST = 4 }; /* messages of a call: two ops, one way each */

struct exchange {
    int n_waiting, n, n_missing;
    struct message waiting[2]; /* results to send */
    struct message call[MOST];
    bool met[MOST];
    pl_tick called; /* with the sender's part */
    pl_tick until;  /* latest arrival so far */
};

void pl_exchange_new(struct network *network, const struct engine *e)
{
    network->exchange = PL_NEW(e->P, struct exchange);
}

void pl_exchange_put(struct engine *e, const struct message *m)
{
    struct exchange *x = &e->network->exchange[m->src];
    x->waiting[x->n_waiting++] = *m;
}

/* The message that op needs from another device and that is not there. */
static bool missing(const struct engine *e, const struct pl_op *op, struct message *m)
{
    const struct instance *q = &e->instance[op->chunk];
    int from = op->chunk + (op->kind == PL_OP_F ? -1 : 1);
    if (op->kind == PL_OP_W) return false;
    if (op->kind == PL_OP_F ? q->chunk == 0 : q->chunk == e->C - 1) return false;
    *m = (struct message){.from = from,
                          .to = op->chunk,
                          .src = e->instance[from].device,
                          .dst = q->device,
                          .micro = op->micro,
                          .kind = op->kind == PL_OP_F ? PL_OP_F : PL_OP_B};
    if (m->src == m->dst) return false;
    if (!pl_window_holds(&e->window, op->micro)) return true;
    const struct cell *cell = pl_window_cell(e, op->chunk, op->micro);
    return !(op->kind == PL_OP_F ? cell->activation : cell->gradient);
}

/* Is op a forward that communicates together with the backward behind it: one of the
 * steady phase, in which they alternate? */
static bool together(const struct engine *e, int device, const struct pl_op *op)
{
    if (!e->sched->type->paired_calls || e->stream) return false;
    const struct pl_op *begin = e->sched->ops + e->sched->first[device];
    const struct pl_op *end = e->sched->ops + e->sched->first[device + 1];
    if (op < begin || op + 1 >= end) return false;
    if (op->kind != PL_OP_F || op[1].kind != PL_OP_BW) return false;
    return (op + 2 < end && op[2].kind == PL_OP_F) ||
           (op > begin && op[-1].kind == PL_OP_BW);
}

/* What the device's next op, or pair, needs; nothing while a version is missing. */
static int wanted(struct engine *e, int device, struct message *out)
{
    const struct device *d = &e->device[device];
    int n = 0;
    if (d->next == d->stop && !(e->stream && pl_stream_refill(e, device))) return 0;
    int last = d->next->pair || together(e, device, d->next);
    for (int k = 0; k <= last; k++) {
        const struct pl_op *op = &d->next[k];
        struct instance *q = &e->instance[op->chunk];
        if (op->kind == PL_OP_F && !pl_engine_version(e, q, op->micro)) return 0;
        if (missing(e, op, &out[n])) n++;
    }
    return n;
}

static bool same(const struct message *a, const struct message *b)
{
    return a->to == b->to && a->micro == b->micro && a->kind == b->kind;
}

/* Message k of the device's call, if its other side has called too. */
static int meet(struct engine *e, int device, int k)
{
    struct exchange *x = &e->network->exchange[device];
    struct message *m = &x->call[k];
    int peer = m->src == device ? m->dst : m->src, j = 0;
    struct exchange *y = &e->network->exchange[peer];
    if (e->device[peer].n_running != PL_EXCHANGING) return PL_OK;
    while (j < y->n && (y->met[j] || !same(m, &y->call[j]))) j++;
    if (j == y->n) return PL_OK;
    pl_tick sent = x->called > y->called ? x->called : y->called;
    pl_tick arrived = 0;
    pl_tick flight =
        pl_cost_transfer(e->cost, m->kind, m->from, m->src, m->dst, m->micro);
    int rc = pl_network_later(m, sent, flight, &arrived);
    if (rc) return rc;
    x->met[k] = y->met[j] = true;
    x->n_missing--;
    if (arrived > x->until) x->until = arrived;
    if (arrived > y->until) y->until = arrived;
    if (--y->n_missing == 0) turns_set(&e->turns, peer, y->until);
    return pl_network_carry(e, m, sent, arrived);
}

static int call(struct engine *e, int device)
{
    struct exchange *x = &e->network->exchange[device];
    int rc = PL_OK;
    x->called = x->until = e->now;
    x->n_missing = x->n;
    for (int k = 0; k < x->n && !rc; k++) {
        const struct message *m = &x->call[k];
        x->met[k] = false;
        if (m->src == device)
            rc = pl_network_later(m, x->called, pl_cost_send(e->cost, m->src, m->dst),
                                  &x->called);
    }
    e->device[device].n_running = PL_EXCHANGING;
    for (int k = 0; k < x->n && !rc; k++) rc = meet(e, device, k);
    if (!rc && !x->n_missing) turns_set(&e->turns, device, x->until);
    return rc;
}

int pl_exchange_call(struct engine *e, int device, int ended)
{
    struct exchange *x = &e->network->exchange[device];
    const struct device *d = &e->device[device];
    struct message in[2];
    if (ended == 1 && together(e, device, d->next - 1)) return PL_OK;
    bool all = e->C > e->P || e->sched->type->paired_calls;
    int n_in = wanted(e, device, in);
    x->n = 0;
    for (int k = 0; k < x->n_waiting; k++) x->call[x->n++] = x->waiting[k];
    x->n_waiting = 0;
    if (n_in &&
        (!x->n || all || ended == 2 || d->next->pair || x->call[0].dst == in[0].src))
        for (int k = 0; k < n_in; k++) x->call[x->n++] = in[k];
    return x->n ? call(e, device) : PL_OK;
}

int pl_exchange_stuck(const struct engine *e)
{
    for (int d = 0; d < e->P; d++) {
        const struct exchange *x = &e->network->exchange[d];
        if (e->device[d].n_running != PL_EXCHANGING) continue;
        int k = 0;
        while (x->met[k]) k++;
        const struct message *m = &x->call[k];
        bool sends = m->src == d;
        return pl_fail(PL_EDEADLOCK,
                       "schedule %s cannot execute with rendezvous links: stage %d "
                       "waits forever to %s the %s of microbatch %lld %s stage %d",
                       e->sched->type->name, d, sends ? "send" : "receive",
                       m->kind == PL_OP_F ? "activation" : "gradient",
                       (long long)m->micro, sends ? "to" : "from",
                       sends ? m->dst : m->src);
    }
    return PL_OK;
}
