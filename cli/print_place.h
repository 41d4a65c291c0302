/* Where the ranks of a job lie on a cluster, for `pipelag cluster`. */
#ifndef PL_CLI_PRINT_PLACE_H
#define PL_CLI_PRINT_PLACE_H

#include <stdio.h>

#include "base/config.h"
#include "base/json.h"
#include "sim/cluster_place.h"

struct pl_place_axis {
    const char *name;
    int size, stride, level; /* level: the outermost that rank 0's group crosses */
    enum pl_collective op;
    double seconds;
};

struct pl_place_view {
    bool given; /* some key of the placement is set */
    const char *order;
    double bytes;
    struct pl_place place;
    int n;
    struct pl_place_axis axis[PL_AXES];
    double alone_s, together_s; /* slowest message to the next stage; NaN: one stage */
};

/* From parallel.* and schedule.stages; view->order is borrowed from config. Errors:
 * PL_ECONFIG. */
int pl_place_view_fill(const struct pl_config *config, const struct pl_cluster *cluster,
                       double bytes, struct pl_place_view *view);
void pl_print_place_text(const struct pl_place_view *view,
                         const struct pl_cluster *cluster, FILE *out);
void pl_print_place_json(const struct pl_place_view *view,
                         const struct pl_cluster *cluster, struct pl_json *json);

#endif
