/* Transfers between devices: which links they take, how long, what they share. */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/cluster.h"
#include "sim/cost.h"
#include "sim/schedule.h"

const char *const pl_semantics_names[] = {"latency", "occupancy", "rendezvous",
                                          "contention", NULL};

int pl_cost_hop(const struct pl_cost *cost, int src, int dst)
{
    int P = cost->devices, ahead = (dst - src + P) % P;
    bool forward = dst == src + 1 || (dst != src - 1 && 2 * ahead <= P);
    return (src + (forward ? 1 : P - 1)) % P;
}

/* Of the links between src and dst the largest entry, one way around the ring. */
static pl_tick along(const struct pl_cost *cost, const pl_tick *next,
                     const pl_tick *prev, int src, int dst)
{
    pl_tick most = 0;
    bool forward =
        pl_cost_hop(cost, src, dst) == (src + 1) % cost->devices && dst != src - 1;
    int P = cost->devices;
    for (int d = src; d != dst; d = (d + (forward ? 1 : P - 1)) % P) {
        pl_tick t = forward ? next[d] : prev[d];
        if (t > most) most = t;
    }
    return most;
}

pl_tick pl_cost_flight(const struct pl_cost *cost, int src, int dst)
{
    return along(cost, cost->next, cost->prev, src, dst);
}

pl_tick pl_cost_send(const struct pl_cost *cost, int src, int dst)
{
    return along(cost, cost->send_next, cost->send_prev, src, dst);
}

pl_tick pl_cost_transfer(const struct pl_cost *cost, int kind, int instance, int src,
                         int dst, int64_t micro)
{
    pl_tick t = pl_cost_flight(cost, src, dst);
    if (!cost->jitter) return t;
    return pl_jitter_time(cost->jitter,
                          kind == PL_OP_F ? PL_JITTER_LINK_F : PL_JITTER_LINK_B,
                          instance, micro, t);
}

bool pl_cost_has_network(const struct pl_cost *cost)
{
    if (cost->semantics != PL_LATENCY || cost->jitter) return true;
    for (int d = 0; d < cost->devices; d++)
        if (cost->send_next[d] || cost->send_prev[d]) return true;
    return false;
}

/* Entry d of a list for links (1, P-1 or P); the wrap of a line is the slowest. */
static double rate_of(const double *rate, int n, int d)
{
    double least = rate[0];
    if (n == 1) return rate[0];
    if (d < n) return rate[d];
    for (int i = 1; i < n; i++) least = fmin(least, rate[i]);
    return least;
}

static int add_bytes(struct pl_cost *cost, int link, double rate, double bytes,
                     pl_tick *time)
{
    double ticks = bytes / rate * 1e12;
    if (!(ticks + (double)*time < 0x1p61))
        return pl_fail(PL_ECONFIG,
                       "link.bytes over link.bandwidth of link %d takes more than 26 "
                       "days",
                       link % cost->devices);
    *time += (pl_tick)llround(ticks);
    cost->hop[link].bytes = bytes;
    if (isinf(rate)) return PL_OK; /* no limit, nothing to share */
    cost->hop[link].n = 1;
    cost->hop[link].use = PL_NEW(1, struct pl_use);
    cost->hop[link].use[0] = (struct pl_use){link, rate};
    return PL_OK;
}

int pl_cost_bandwidth(struct pl_cost *cost, const double *rate, int n, double bytes)
{
    int P = cost->devices, rc = PL_OK;
    if (n != 1 && n != P - 1 && n != P)
        return pl_fail(PL_ECONFIG,
                       "link.bandwidth has %d values, expected 1, %d (a line) or %d (a "
                       "ring)",
                       n, P - 1, P);
    cost->hop = PL_NEW(2 * P, struct pl_hop);
    for (int d = 0; d < P && !rc; d++) {
        int to = (d + 1) % P;
        double r = rate_of(rate, n, d);
        rc = add_bytes(cost, d, r, bytes, &cost->next[d]);
        if (!rc) rc = add_bytes(cost, P + to, r, bytes, &cost->prev[to]);
    }
    return rc;
}

int pl_cost_slow_link(struct pl_cost *cost, int link, double factor)
{
    int P = cost->devices, to = (link + 1) % P;
    pl_tick *const times[] = {&cost->next[link], &cost->prev[to]};
    for (int k = 0; k < 2; k++) {
        if (!((double)*times[k] * factor < 0x1p61))
            return pl_fail(PL_ECONFIG, "link %d times %g takes more than 26 days", link,
                           factor);
        *times[k] = (pl_tick)llround((double)*times[k] * factor);
    }
    if (!cost->slow_link) {
        cost->slow_link = PL_NEW(P, double);
        for (int d = 0; d < P; d++) cost->slow_link[d] = 1;
    }
    cost->slow_link[link] *= factor;
    if (!cost->hop) return PL_OK;
    cost->hop[link].bytes *= factor;
    cost->hop[P + to].bytes *= factor;
    return PL_OK;
}
