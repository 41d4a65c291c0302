/* Links that are more than a fixed flight time. Internal to sim/.
 *
 *   network.c   latency with variation or a sender's part, and occupancy: when a
 *               message leaves is known when its op ends
 *   exchange.c  rendezvous: known when both sides have called
 *   flows.c     contention: its end is known when it comes
 */
#ifndef PL_SIM_NETWORK_H
#define PL_SIM_NETWORK_H

#include "sim/engine.h"

/* A result on its way to another device. */
struct message {
    int32_t from, to; /* instances */
    int32_t src, dst; /* devices */
    int64_t micro;
    int kind; /* PL_OP_F activation, PL_OP_B gradient */
};

struct network {
    enum pl_link_semantics semantics;
    pl_tick *free_at;          /* occupancy: [2 * P] link d to d + 1, P + d to d - 1 */
    struct exchange *exchange; /* rendezvous: [P] */
    struct flows *flows;       /* contention, where something is shared */
};

/* Write the row of a message and let its receiver know. Errors: PL_ECONFIG beyond 106
 * days. */
int pl_network_carry(struct engine *e, const struct message *m, pl_tick sent,
                     pl_tick arrived);
/* now + delay into *out; PL_ECONFIG beyond 106 days. */
int pl_network_later(const struct message *m, pl_tick from, pl_tick delay,
                     pl_tick *out);

void pl_exchange_new(struct network *network, const struct engine *e);
/* The result of an op waits for the device's next call. */
void pl_exchange_put(struct engine *e, const struct message *m);
/* The next call of a device, if there is anything to send or to ask for; `ended` of its
 * ops have ended before it (0: it was idle, PL_EXCHANGING: another call). */
int pl_exchange_call(struct engine *e, int device, int ended);
int pl_exchange_stuck(const struct engine *e);

#endif
