/* Which GPU does what in a job of TP x CP x EP x DP x PP, numbered as Megatron-Core
 * does (parallel_state.py, RankGenerator): the first axis of the order varies fastest.
 * EP lives inside CP x DP: expert layers divide the same ranks into TP x EP x the rest,
 * so the job has TP CP DP PP ranks. Plain data; rank r runs on GPU r of the cluster. */
#ifndef PL_SIM_CLUSTER_PLACE_H
#define PL_SIM_CLUSTER_PLACE_H

#include "sim/collective.h"

enum pl_axis {
    PL_AXIS_TP,
    PL_AXIS_CP,
    PL_AXIS_EP,
    PL_AXIS_DP,
    PL_AXIS_PP,
    PL_AXIS_DP_CP, /* gradients of dense layers are reduced over both */
    PL_AXIS_EDP,   /* replicas of an expert: TP CP DP PP / (TP EP PP) ranks */
    PL_AXES
};

struct pl_place {
    int size[PL_AXES], stride[PL_AXES]; /* a group is first, first + stride, ...; the
                                           stride of DP_CP is 0 when it is irregular */
    int n_ranks;
};

/* order: "tp-cp-ep-dp-pp" or another order of these five; n_gpus: of the cluster, 0:
 * not checked. Errors: PL_ECONFIG naming the sizes: more ranks than GPUs, EP not a
 * divisor of CP x DP, bad order. */
int pl_place_init(int tp, int cp, int ep, int dp, int pp, const char *order, int n_gpus,
                  struct pl_place *out);

/* Rank of pipeline stage s in replica dp, context slice cp, tensor slice tp. */
int pl_place_rank(const struct pl_place *place, int tp, int cp, int dp, int s);

/* The group of rank along axis, for pl_collective_time; all groups of the axis work at
 * the same time (siblings). ranks: [size of the axis], used where a stride does not do.
 */
struct pl_group pl_place_group(const struct pl_place *place, enum pl_axis axis,
                               int rank, int *ranks);

/* Route of a message from stage s to stage t when all TP CP DP ranks of s send theirs
 * at the same time: the slowest of these messages, its capacities divided by how many
 * of them share each; the first such rank when they are equal. What a simulation of one
 * pipeline charges for a transfer. O(ranks of a stage x levels). Errors: PL_ECONFIG
 * when the job has more ranks than the cluster GPUs. */
int pl_place_route(const struct pl_cluster *cluster, const struct pl_place *place,
                   int s, int t, struct pl_route *route);

#endif
