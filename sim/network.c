/* A message leaves when its op has ended and the sender has done its part:
 *   latency    at once,
 *   occupancy  when all links on its way are free; each of them carries one message at
 *              a time in each direction, in the order in which the ops ended;
 *   contention at once (flows.c);
 * and arrives one transfer later. */
#include "sim/network.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/flows.h"

struct network *pl_network_new(const struct engine *e)
{
    if (!pl_cost_has_network(e->cost)) return NULL;
    struct network *network = PL_NEW(1, struct network);
    network->semantics = e->cost->semantics;
    if (network->semantics == PL_OCCUPANCY)
        network->free_at = PL_NEW(2 * e->P, pl_tick);
    if (network->semantics == PL_RENDEZVOUS) pl_exchange_new(network, e);
    if (network->semantics == PL_CONTENTION) network->flows = pl_flows_new(e);
    return network;
}

void pl_network_free(struct network *network)
{
    if (!network) return;
    free(network->free_at);
    free(network->exchange);
    pl_flows_free(network->flows);
    free(network);
}

int pl_network_later(const struct message *m, pl_tick from, pl_tick delay, pl_tick *out)
{
    if (delay >= PL_NEVER - from)
        return pl_fail(PL_ECONFIG,
                       "simulated time exceeds 106 days (int64 picoseconds) at a "
                       "transfer of %s %lld from stage %d to %d: run fewer updates",
                       m->kind == PL_OP_F ? "activation" : "gradient",
                       (long long)m->micro, m->src, m->dst);
    *out = from + delay;
    return PL_OK;
}

int pl_network_carry(struct engine *e, const struct message *m, pl_tick sent,
                     pl_tick arrived)
{
    if (e->stream) pl_stream_room(e);
    int64_t i = e->n_messages++;
    e->out.src[i] = m->src;
    e->out.dst[i] = m->dst;
    e->out.msg_chunk[i] = m->from;
    e->out.msg_micro[i] = m->micro;
    e->out.msg_kind[i] = (int8_t)m->kind;
    e->out.sent[i] = sent;
    e->out.arrived[i] = arrived;
    pl_engine_deliver(e, m->to, m->kind, m->micro, arrived);
    return PL_OK;
}

static int link_of(const struct engine *e, int from, int to, int dst)
{
    return to == (from + 1) % e->P && dst != from - 1 ? from : e->P + from;
}

/* When the links on the way are free; they are taken until `arrived` then. */
static pl_tick way_free(const struct engine *e, const struct message *m)
{
    pl_tick latest = 0;
    for (int d = m->src, to; d != m->dst; d = to) {
        to = pl_cost_hop(e->cost, d, m->dst);
        pl_tick at = e->network->free_at[link_of(e, d, to, m->dst)];
        if (at > latest) latest = at;
    }
    return latest;
}

static void take_way(const struct engine *e, const struct message *m, pl_tick until)
{
    for (int d = m->src, to; d != m->dst; d = to) {
        to = pl_cost_hop(e->cost, d, m->dst);
        e->network->free_at[link_of(e, d, to, m->dst)] = until;
    }
}

static int leave(struct engine *e, const struct message *m)
{
    pl_tick sent = 0, arrived = 0;
    int rc = pl_network_later(m, e->now, pl_cost_send(e->cost, m->src, m->dst), &sent);
    if (rc) return rc;
    if (e->network->flows) return pl_flows_add(e, m, sent);
    if (e->network->free_at) {
        pl_tick free_at = way_free(e, m);
        if (free_at > sent) sent = free_at;
    }
    pl_tick flight =
        pl_cost_transfer(e->cost, m->kind, m->from, m->src, m->dst, m->micro);
    rc = pl_network_later(m, sent, flight, &arrived);
    if (rc) return rc;
    if (e->network->free_at) take_way(e, m, arrived);
    return pl_network_carry(e, m, sent, arrived);
}

int pl_network_send(struct engine *e, const struct pl_op *op, int to, int kind)
{
    struct message m = {.from = op->chunk,
                        .to = to,
                        .src = e->instance[op->chunk].device,
                        .dst = e->instance[to].device,
                        .micro = op->micro,
                        .kind = kind};
    if (e->network->semantics != PL_RENDEZVOUS) return leave(e, &m);
    pl_exchange_put(e, &m);
    return PL_OK;
}

int pl_network_finished(struct engine *e, int device, int n)
{
    if (e->network->semantics != PL_RENDEZVOUS) return PL_OK;
    if (n > 0 && e->device[device].running[0].kind == PL_OP_U) return PL_OK;
    return pl_exchange_call(e, device, n);
}

int pl_network_wants(struct engine *e, int device)
{
    if (e->network->semantics != PL_RENDEZVOUS) return PL_OK;
    return pl_exchange_call(e, device, 0);
}

int pl_network_turn(struct engine *e)
{
    return pl_flows_turn(e);
}

int pl_network_stuck(const struct engine *e)
{
    return e->network->semantics == PL_RENDEZVOUS ? pl_exchange_stuck(e) : PL_OK;
}
