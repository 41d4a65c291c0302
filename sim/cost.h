/* What things take: the cost of each op on each model chunk, and of each transfer in a
 * ring of P equal devices. Owned by the caller; released with pl_cost_free. */
#ifndef PL_SIM_COST_H
#define PL_SIM_COST_H

#include <stdint.h>

#include "base/units.h"
#include "sim/jitter.h"

struct pl_layout;
struct pl_use; /* sim/cluster.h */

enum pl_link_semantics {
    PL_LATENCY, /* a message arrives its flight time after it left; links never fill */
    PL_OCCUPANCY,  /* a link carries one message at a time in each direction */
    PL_RENDEZVOUS, /* Megatron's blocking exchange: sender and receiver both wait */
    PL_CONTENTION, /* messages in flight share bandwidth, max-min fairly */
    PL_N_SEMANTICS
};
extern const char *const pl_semantics_names[]; /* NULL-terminated */

/* A list of durations: 1 entry for all, or one each. Borrowed. */
struct pl_times {
    const pl_tick *t;
    int n;
};

struct pl_cost_spec {
    struct pl_times forward, backward, weight; /* per microbatch */
    struct pl_times update;                    /* per update */
    struct pl_times link; /* 1, P-1 (a line; the wrap as the slowest) or P (a ring) */
    struct pl_times send; /* 1, P-1 or P: on the sender before a transfer leaves */
    double overlap; /* 0..1: part of the shorter op that a pair of F and BW hides */
};

/* What a transfer over one hop shares with others. */
struct pl_hop {
    double bytes;
    int n;
    struct pl_use *use; /* [n] owned */
};

struct pl_cost {
    int chunks, devices;
    double overlap;
    enum pl_link_semantics semantics;
    struct pl_jitter *jitter; /* NULL: nothing varies; owned */
    double *slow;             /* [devices] factor on all ops of a device; NULL; owned */
    double *slow_link;        /* [devices] already in next and prev; NULL; owned */
    pl_tick *time;            /* [PL_N_OP * chunks] the op kinds' columns, below: */
    pl_tick *forward, *backward, *weight, *both, *update; /* [chunks], inside time */
    pl_tick *next; /* [devices] transfer from device d to d + 1 mod P */
    pl_tick *prev; /* [devices] transfer from device d to d - 1 mod P */
    pl_tick *send_next, *send_prev; /* [devices] on the sender before that leaves */
    /* [2 * devices] link d to d + 1, devices + d to d - 1 mod P, for contention; next
     * and prev are the times of a transfer alone, its bytes included. NULL: nothing is
     * shared. Owned. */
    struct pl_hop *hop;
};

/* Per-stage values (1 or P) are those of a whole device: each of its chunks gets an
 * equal part, rounded to the picosecond; C values are per chunk in model order. Errors:
 * PL_ECONFIG naming the key (cost.forward, ...) and both lengths, or the overflow of a
 * sum. On error *out is untouched. */
int pl_cost_new(const struct pl_layout *layout, const struct pl_cost_spec *spec,
                struct pl_cost *out);
/* A microbatch that is factor times larger: F, B, W and transfers (its bytes) times
 * factor, the update stays. Errors: PL_ECONFIG on tick overflow; nothing is changed
 * then. */
int pl_cost_scale(struct pl_cost *cost, int64_t factor);
/* Recompute the columns that follow from others, after a change of one in place. */
void pl_cost_refresh(struct pl_cost *cost);
void pl_cost_free(struct pl_cost *cost);

/* Nominal duration of an op (enum pl_op_kind) of a model chunk. */
static inline pl_tick pl_cost_time(const struct pl_cost *cost, int kind, int chunk)
{
    return cost->time[kind * cost->chunks + chunk];
}

/* Duration of an overlapped pair whose ops take a and b alone. */
static inline pl_tick pl_cost_pair(const struct pl_cost *cost, pl_tick a, pl_tick b)
{
    pl_tick hidden = a < b ? a : b;
    return a + b - (pl_tick)(cost->overlap * (double)hidden);
}

/* Nominal transfer between two devices; not neighbours in the ring: the slowest link on
 * the shorter way. pl_cost_send: the sender's part before it, found alike. */
pl_tick pl_cost_flight(const struct pl_cost *cost, int src, int dst);
pl_tick pl_cost_send(const struct pl_cost *cost, int src, int dst);

/* Each direction of each link is a resource of `rate` bytes/s (1, P-1 or P entries;
 * INFINITY: no limit), a transfer is `bytes`: their quotient is added to next and prev.
 * Errors: PL_ECONFIG naming link.bandwidth; free cost then. */
int pl_cost_bandwidth(struct pl_cost *cost, const double *rate, int n, double bytes);
/* Transfers over link (to link + 1 mod P and back) take factor times as long; their
 * bytes count that often. Errors: PL_ECONFIG beyond 26 days. */
int pl_cost_slow_link(struct pl_cost *cost, int link, double factor);

/* First hop of a message from src to dst, the way that pl_cost_flight takes: to device
 * src + 1 or src - 1 mod P. */
int pl_cost_hop(const struct pl_cost *cost, int src, int dst);

/* Do durations of ops or transfers differ from the nominal ones? */
static inline bool pl_cost_varies(const struct pl_cost *cost)
{
    return cost->jitter || cost->slow;
}
/* Are links more than a fixed flight time for each direction of each? */
bool pl_cost_has_network(const struct pl_cost *cost);
/* Duration of one op of an instance (replica * chunks + chunk) on its device, and of
 * the transfer of its result (kind F: an activation, else a gradient), variation
 * included. */
pl_tick pl_cost_op(const struct pl_cost *cost, int kind, int instance, int device,
                   int64_t micro);
pl_tick pl_cost_transfer(const struct pl_cost *cost, int kind, int instance, int src,
                         int dst, int64_t micro);
/* When an op that takes `length` and is begun at start ends, outages included. */
static inline pl_tick pl_cost_end(const struct pl_cost *cost, int device, pl_tick start,
                                  pl_tick length)
{
    return cost->jitter ? pl_jitter_end(cost->jitter, device, start, length)
                        : start + length;
}

#endif
