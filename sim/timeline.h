/* The executed run: columns of ops and messages in ticks. Made by pl_engine_run, owned
 * by the caller (pl_timeline_free). Ops are in order of (start, device, order on the
 * device), messages of (sent, sending device, order of sending); where F, B, W or BW
 * take no time, those that start at one instant are in causal order. */
#ifndef PL_SIM_TIMELINE_H
#define PL_SIM_TIMELINE_H

#include "sim/schedule.h"

struct pl_timeline {
    struct pl_shape shape;
    int64_t n_ops;
    int8_t *kind;         /* [n_ops] enum pl_op_kind */
    int32_t *device;      /* [n_ops] */
    int32_t *chunk;       /* [n_ops] instance */
    int64_t *micro;       /* [n_ops] */
    pl_tick *start, *end; /* [n_ops]; the two ops of a pair have equal ones */
    int64_t n_messages;   /* between devices; within one device nothing is sent */
    int32_t *src, *dst;   /* [n_messages] devices */
    int32_t *msg_chunk;   /* [n_messages] sending instance */
    int64_t *msg_micro;   /* [n_messages] */
    int8_t *msg_kind;     /* [n_messages] PL_OP_F activation, PL_OP_B gradient */
    pl_tick *sent, *arrived;
};

/* pl_engine_run - execute schedule under cost: discrete events on int64 ticks. A device
 * is free or busy; its ops run in issue order, except that a U runs as soon as it is
 * ready and the device is free, and a forward waits for the version it must read. A U
 * is ready when its chunk's gradients of the group are complete on all replicas; with
 * barrier, when those of all chunks are (global gradient norm). Links and variation are
 * those of cost. Errors: PL_EDEADLOCK naming the stuck
 * op; PL_ECONFIG on tick overflow; *out untouched. Cost: O(n log P). */
int pl_engine_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out);

/* The same where each device takes what is there: a backward that can run, else a
 * forward that can, within the activations of its issue order. The ops of schedule are
 * put in the order in which they ran. Errors: PL_EUNSUP unless the schedule is
 * asynchronous with F and BW of one chunk a device, and for rendezvous links. */
int pl_engine_run_free(struct pl_schedule *schedule, const struct pl_cost *cost,
                       bool barrier, struct pl_timeline *out);

/* Rows for every op of the schedule, every U and every message, to be filled. */
void pl_timeline_new(const struct pl_schedule *schedule, struct pl_timeline *out);

/* Invariants of an executed run against its schedule and costs: each op once and with
 * its duration, F before B before U, no overlap on a device but of a pair, no message
 * before its op ended or op before its message arrived, forward reads only written
 * versions. PL_ECHECK with the named complaint. */
int pl_timeline_check(const struct pl_timeline *timeline,
                      const struct pl_schedule *schedule, const struct pl_cost *cost);
void pl_timeline_free(struct pl_timeline *timeline);

#endif
