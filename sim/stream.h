/* Runs of any length in memory that does not depend on it: the ops of a schedule are
 * made as they are needed (pl_schedule_type.op_at), the rows are handed over and
 * forgotten. Same rows and metrics as of pl_simulate. */
#ifndef PL_SIM_STREAM_H
#define PL_SIM_STREAM_H

#include "sim/metrics.h"

/* Receives rows; whole instants at a time, in order, borrowed for the call. Messages
 * that leave later than their op ends come when their times are known. A code other
 * than 0 ends the run and is what pl_stream_run returns. */
struct pl_stream_sink {
    int (*rows)(void *context, const struct pl_timeline *rows);
    void *context;
};

/* Can runs of the type be streamed? */
bool pl_stream_can(const struct pl_schedule_type *type);

/* Run shape (pl_shape_resolve_stream) under cost; sink may be NULL, as may metrics.
 * Errors: PL_EUNSUP for a type without op_at, those of pl_engine_run, PL_ECHECK when a
 * forward reads a version not yet written. Cost: O(n log P). */
int pl_stream_run(const struct pl_schedule_type *type, const struct pl_shape *shape,
                  const struct pl_cost *cost, bool barrier,
                  const struct pl_stream_sink *sink, struct pl_metrics *metrics);

/* The metrics of a run from its rows as they come. */
struct pl_metrics_stream;
/* PL_EMEM when there is no room for them. */
int pl_metrics_fit(const struct pl_schedule *schedule);
struct pl_metrics_stream *pl_metrics_begin(const struct pl_schedule *schedule);
/* Errors: PL_ECHECK; PL_EUNSUP when a delay is so long that the window of versions, a
 * few periods of the schedule, does not hold it. */
int pl_metrics_rows(struct pl_metrics_stream *stream, const struct pl_timeline *rows);
/* Ends and releases the stream; out may be NULL. */
void pl_metrics_end(struct pl_metrics_stream *stream, struct pl_metrics *out);

#endif
