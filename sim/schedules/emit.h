/* What the generators under sim/schedules/ share. Internal to sim/. */
#ifndef PL_SIM_SCHEDULES_EMIT_H
#define PL_SIM_SCHEDULES_EMIT_H

#include "sim/schedule.h"

/* The generators; pl_schedule_types lists them. */
extern const struct pl_schedule_type pl_schedule_gpipe, pl_schedule_1f1b,
    pl_schedule_pipedream, pl_schedule_2bw, pl_schedule_interleaved, pl_schedule_zb_h1,
    pl_schedule_zb_h2;
extern const struct pl_schedule_type pl_schedule_zb_1p, pl_schedule_zb_2p,
    pl_schedule_zb_v, pl_schedule_v_half, pl_schedule_v_min;
extern const struct pl_schedule_type pl_schedule_dualpipe, pl_schedule_dualpipev,
    pl_schedule_chimera, pl_schedule_hanayo, pl_schedule_custom;
extern const struct pl_schedule_type pl_schedule_pipedream_vertical, pl_schedule_wpipe,
    pl_schedule_pipemare, pl_schedule_spectrain, pl_schedule_xpipe, pl_schedule_paci,
    pl_schedule_amdp;

/* Writing: pl_emit_begin, then the ops of device 0 in issue order, pl_emit_device, the
 * ops of device 1, ..., pl_emit_device after the last. The arrays grow as needed. */
struct pl_emit {
    struct pl_schedule *out;
    int64_t room;
    int device;
};

void pl_emit_begin(struct pl_emit *emit, struct pl_schedule *out);
void pl_emit_put(struct pl_emit *emit, int kind, int instance, int64_t micro);
/* F of one microbatch and BW of another, overlapped. */
void pl_emit_pair(struct pl_emit *emit, int forward, int64_t forward_micro,
                  int backward, int64_t backward_micro);
void pl_emit_device(struct pl_emit *emit);

/* Append on an instance: microbatches first .. first + n - 1, `warm` forwards (at most
 * n), then one forward one backward (BW), then the remaining backwards. */
void pl_emit_alternating(struct pl_emit *emit, int instance, int64_t first, int64_t n,
                         int64_t warm);

/* One update of DualPipe's order on one device (dualpipe_order.c). */
struct pl_dual {
    int ranks, rank;  /* R, and r from 0 */
    int64_t n;        /* microbatches of each chunk */
    int instance[2];  /* the chunk met first, and the other */
    int64_t first[2]; /* number of the first microbatch on it */
};
void pl_emit_dual(struct pl_emit *emit, const struct pl_dual *rank);
/* Closed forms of that order for R ranks and n microbatches of each chunk; NaN with
 * transfers or U. */
void pl_closed_dual(const struct pl_shape *shape, const struct pl_cost *cost, int R,
                    int64_t n, struct pl_closed *out);

/* Device of chunk c in a V (v = 2) or more waves: 0 .. P-1, P-1 .. 0, 0 .. P-1, ...; a
 * second replica starts at the other end. */
int pl_place_zigzag(const struct pl_shape *shape, int chunk, int replica);

/* Whole run as one alternating stretch per stage, stage s P-1-s forwards ahead (2bw and
 * pipedream: no flush between updates). */
int pl_emit_no_flush(const struct pl_cost *cost, struct pl_schedule *out);
/* The same, op by op (pl_schedule_type.op_at); of one alternating stretch of
 * microbatches 0 .. n - 1, on instance 0. */
bool pl_op_alternating(int64_t n, int64_t warm, int64_t k, struct pl_op *out);
bool pl_op_no_flush(const struct pl_shape *shape, int device, int64_t k,
                    struct pl_op *out);

/* Whole run of a split backward: stage s runs k (P-1-s) forwards, then F and B in turn,
 * W k s backwards behind its B; flush at every update (zb-h1: k = 1, zb-h2: 2). */
void pl_emit_split(struct pl_schedule *out, int k);

/* Closed forms of those under uniform costs: 2bw and pipedream take equal time. */
void pl_closed_no_flush(const struct pl_shape *shape, const struct pl_cost *cost,
                        struct pl_closed *out);
/* Closed forms of a synchronous schedule whose one update (without U) takes work_s + U
 * where the busiest device works for m (F + B + W): excess_s beyond it. NaN: unknown.
 * parallelogram: the excess is of the longest single device, not of the global end. */
void pl_closed_excess(const struct pl_shape *shape, const struct pl_cost *cost,
                      double excess_s, bool parallelogram, struct pl_closed *out);
/* A stage whose forwards run `lead` microbatches before their backwards, update every
 * m: delay floor(lead / m) to ceil(lead / m); it holds lead + 1 activations. */
void pl_closed_lead(const struct pl_shape *shape, int64_t lead, int64_t *tau_min,
                    int64_t *tau_max);
int64_t pl_closed_held(const struct pl_shape *shape, int64_t lead);
/* F + B + W (+ U) of a whole device and one transfer, in seconds, of uniform costs. */
double pl_closed_micro(const struct pl_shape *shape, const struct pl_cost *cost);
double pl_closed_update(const struct pl_shape *shape, const struct pl_cost *cost);
double pl_closed_link(const struct pl_shape *shape, const struct pl_cost *cost);

/* Version rules: every synchronous schedule: group g reads version g; the live one. */
int64_t pl_reads_newest(const struct pl_shape *shape, int chunk, int64_t group);
int64_t pl_reads_live(const struct pl_shape *shape, int chunk, int64_t group);

#endif
