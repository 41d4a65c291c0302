/* The executed run: columns of ops and messages in ticks. Made by pl_engine_run, owned
 * by the caller (pl_timeline_free). */
#ifndef PL_SIM_TIMELINE_H
#define PL_SIM_TIMELINE_H

#include "sim/schedule.h"

struct pl_timeline {
    struct pl_shape shape;
    int64_t n_ops;        /* in order of (start, sequence) */
    int8_t *kind;         /* [n_ops] enum pl_op_kind */
    int32_t *device;      /* [n_ops] */
    int32_t *chunk;       /* [n_ops] */
    int64_t *micro;       /* [n_ops] */
    pl_tick *start, *end; /* [n_ops] */
    int64_t n_messages;
    int32_t *src, *dst; /* [n_messages] devices */
    int64_t *msg_micro; /* [n_messages] */
    int8_t *msg_kind;   /* [n_messages] PL_OP_F activation, PL_OP_B gradient */
    pl_tick *sent, *arrived;
};

/* pl_engine_run - execute schedule under cost: discrete events on int64 ticks, ordered
 * by (time, sequence). A device is free or busy; its ops run in issue order, except
 * that a U runs as soon as it is ready and the device is free (its barrier may come
 * late), and a forward waits for the version it must read. Links are `latency`: a
 * message arrives link ticks after its op ends. With barrier every U waits for all
 * stages' gradients (global gradient norm). Errors: PL_EDEADLOCK naming the stuck op;
 * PL_ECONFIG on tick overflow; *out untouched. Cost: O(n log P). */
int pl_engine_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out);

/* Invariants of an executed run against its schedule and costs: each op once and with
 * its duration, F before B before U, no overlap on a device, no message before its op
 * ended or op before its message arrived, forward reads only written versions.
 * PL_ECHECK with the named complaint. */
int pl_timeline_check(const struct pl_timeline *timeline,
                      const struct pl_schedule *schedule, const struct pl_cost *cost);
void pl_timeline_free(struct pl_timeline *timeline);

#endif
