/* How `pipelag cluster` shows a cluster; for cli/cmd_cluster.c. */
#ifndef PL_CLI_PRINT_CLUSTER_H
#define PL_CLI_PRINT_CLUSTER_H

#include <stdio.h>

#include "cli/print_place.h"

/* A row of the table of all-reduces: n_sizes costs for one group. */
enum { PL_CLUSTER_SIZES = 4 };
extern const double pl_cluster_sizes[PL_CLUSTER_SIZES]; /* bytes */

struct pl_cluster_row {
    struct pl_group group;
    char what[64]; /* "all 32 GPUs" */
    struct pl_collective_cost cost[PL_CLUSTER_SIZES];
};

struct pl_cluster_view {
    const struct pl_cluster *cluster;
    double bytes; /* of the message */
    int n_pairs;  /* a pair of GPUs for each level that can be crossed, innermost first
                   */
    int pair[PL_CLUSTER_LEVELS]; /* the other one is GPU 0 */
    pl_tick time[PL_CLUSTER_LEVELS];
    int n_rows;
    struct pl_cluster_row row[2 * PL_CLUSTER_LEVELS];
    struct pl_place_view place;
};

void pl_print_cluster_text(const struct pl_cluster_view *view, FILE *out);
void pl_print_cluster_json(const struct pl_cluster_view *view, FILE *out);

/* "rack:2 node:4 gpu:8" into buf; returns buf. */
char *pl_cluster_shape(const struct pl_cluster *cluster, char *buf, int n);

#endif
