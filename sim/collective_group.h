/* A group of GPUs seen level by level; for sim/collective*.c only. */
#ifndef PL_SIM_COLLECTIVE_GROUP_H
#define PL_SIM_COLLECTIVE_GROUP_H

#include "sim/collective.h"

struct pl_span {
    int n;
    int *ranks; /* [n] ascending; owned */
    bool siblings;
    int members[PL_CLUSTER_LEVELS]; /* of each level that hold GPUs of the group */
    bool crossed[PL_CLUSTER_LEVELS];
    bool regular; /* every member of a level holds equally many */
    bool nvlink;  /* the innermost crossed level runs over NVLink */
};

/* Errors: PL_ECONFIG. The caller frees with pl_span_free, also after an error. */
int pl_span_init(const struct pl_cluster *cluster, const struct pl_group *group,
                 struct pl_span *span);
void pl_span_free(struct pl_span *span);

/* Bytes/s in one direction through the narrowest member of any level that a ring over
 * the group passes. */
double pl_span_bus(const struct pl_cluster *cluster, const struct pl_span *span);

/* Seconds for the busiest port when every GPU sends `bytes` to each other GPU. */
double pl_span_exchange(const struct pl_cluster *cluster, const struct pl_span *span,
                        double bytes);

#endif
