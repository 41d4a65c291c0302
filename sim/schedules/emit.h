/* What the generators under sim/schedules/ share: writing one stage's ops in issue
 * order. Internal to sim/. */
#ifndef PL_SIM_SCHEDULES_EMIT_H
#define PL_SIM_SCHEDULES_EMIT_H

#include "sim/schedule.h"

/* The generators; pl_schedule_types lists them. */
extern const struct pl_schedule_type pl_schedule_gpipe, pl_schedule_1f1b,
    pl_schedule_pipedream, pl_schedule_2bw;

/* Allocate the arrays of a schedule with fused backward: 2 m + 1 ops a stage and
 * update. */
void pl_emit_begin(const struct pl_shape *shape, struct pl_schedule *out);

/* Append to stage: microbatches first .. first + n - 1, `warm` forwards (at most n),
 * then one forward one backward, then the remaining backwards. U follows the backward
 * that completes its group. *at is the write position, advanced. */
void pl_emit_alternating(struct pl_schedule *out, int stage, int64_t first, int64_t n,
                         int64_t warm, int64_t *at);

/* Whole run as one alternating stretch per stage, stage s P-1-s forwards ahead (2bw and
 * pipedream: no flush between updates). */
int pl_emit_no_flush(const struct pl_shape *shape, struct pl_schedule *out);

/* Closed forms of those under uniform costs: 2bw and pipedream take equal time. */
void pl_closed_no_flush(const struct pl_shape *shape, const struct pl_cost *cost,
                        struct pl_closed *out);
/* Closed forms of a flush schedule whose one update takes (m + P - 1)(F + BW) +
 * link_units * link.time, + U; link_units NaN: none known (unless link.time is 0). */
void pl_closed_flush(const struct pl_shape *shape, const struct pl_cost *cost,
                     double link_units, struct pl_closed *out);

/* Version rule of every synchronous schedule: group g reads version g. */
int64_t pl_reads_newest(const struct pl_shape *shape, int64_t group);

#endif
