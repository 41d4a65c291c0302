/* What the metrics of a whole timeline and those of a stream share. Internal to sim/.
 */
#ifndef PL_SIM_METRICS_PARTS_H
#define PL_SIM_METRICS_PARTS_H

#include "sim/metrics.h"

/* Per device, one pass over the rows. */
struct walk {
    pl_tick first, last, busy;
    int64_t active, peak;
    bool begun;
};

/* Empty metrics of a schedule with its steady window. */
void pl_metrics_prepare(const struct pl_schedule *sched, struct pl_metrics *out);
/* Times and activations of row i, in order; active: [stages] slots in use. */
void pl_metrics_walk(const struct pl_timeline *t, int64_t i, struct walk *walk,
                     int64_t *active, struct pl_metrics *out);
/* Times of the run from the walks; ends of the U of stage 0 before the steady window
 * and of its last. */
void pl_metrics_time(const struct pl_schedule *sched, const struct walk *walk,
                     pl_tick window_begin, pl_tick window_end, struct pl_metrics *out);

#endif
