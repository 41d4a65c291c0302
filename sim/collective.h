/* How long a collective takes on a group of GPUs: start + steps + bytes over the bus
 * bandwidth of the narrowest level (formulas in collective.c). Sizes follow NCCL-tests:
 * `bytes` is the buffer of one GPU, for all-gather the output and for reduce-scatter
 * the input; busbw = algbw x 2(n-1)/n for all-reduce, (n-1)/n for the others. */
#ifndef PL_SIM_COLLECTIVE_H
#define PL_SIM_COLLECTIVE_H

#include "sim/cluster.h"

enum pl_collective { PL_ALL_REDUCE, PL_REDUCE_SCATTER, PL_ALL_GATHER, PL_ALL_TO_ALL };

enum pl_algorithm {
    PL_ALGORITHM_AUTO, /* the fastest of those below, as NCCL chooses */
    PL_ALGORITHM_RING,
    PL_ALGORITHM_TREE,   /* all-reduce over more than one node */
    PL_ALGORITHM_SWITCH, /* NVLS: all-reduce inside one switch that can reduce */
    PL_ALGORITHM_LEVELS, /* hierarchical: reduce-scatter inside, all-reduce outside,
                            all-gather inside; groups with equal parts only */
    PL_ALGORITHM_PAIRS,  /* all-to-all */
};

/* GPUs first, first + stride, ... or, when ranks is not NULL, ranks[0..size-1]. */
struct pl_group {
    int size, first, stride;
    const int *ranks;
    bool siblings; /* the other GPUs do the same in groups of their own at this time, so
                      that a port (NIC, uplink) is divided by all it serves */
};

struct pl_collective_cost {
    double seconds;
    double bus; /* bytes/s: what NCCL-tests print as busbw */
    enum pl_algorithm algorithm;
    enum pl_protocol protocol;
};

/* Time of one collective. Errors: PL_ECONFIG when the group leaves the cluster or names
 * a GPU twice; PL_EUNSUP when the algorithm does not fit the collective or group. */
int pl_collective_time(const struct pl_cluster *cluster, enum pl_collective op,
                       enum pl_algorithm algorithm, const struct pl_group *group,
                       double bytes, struct pl_collective_cost *out);

const char *pl_collective_name(enum pl_collective op);
const char *pl_algorithm_name(enum pl_algorithm algorithm);
const char *pl_protocol_name(enum pl_protocol protocol);

#endif
