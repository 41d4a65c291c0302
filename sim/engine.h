/* Inside of the event engine, for the files that make it up. Internal to sim/.
 *
 *   engine.c  the loop: finish what ends now, then dispatch every device that may begin
 *   engine_run.c  set-up, runs in issue order and free ones
 *   window.c  state of the microbatches and updates in flight, in rings
 *   rows.c    the rows written, their order within an instant
 *   stream.c  runs of any length: ops made as they are needed, rows handed over
 *   network.h links that are more than a fixed flight time
 *   turns.h   the queue: each device has one pending instant, the end of what it runs,
 *             or, while it is idle, the arrival of what its next op waits for
 *
 * With plain latency links a message has no event of its own: its arrival time is known
 * when it is sent and is kept where its receiver looks for it (deliver).
 *
 * Hooks for other semantics: duration() is what an op takes, send() decides when a
 * result arrives, deliver() makes it known, finish() and start() are the two ends of an
 * op. */
#ifndef PL_SIM_ENGINE_H
#define PL_SIM_ENGINE_H

#include "sim/timeline.h"
#include "sim/turns.h"

enum { PL_EXCHANGING = -1 };

struct device {
    const struct pl_op *next, *stop; /* issue order */
    struct pl_op running[2];         /* two when they are a pair */
    int n_running;      /* PL_EXCHANGING: in a blocking exchange (exchange.c) */
    bool due;           /* a U of the device may be ready */
    struct pl_op *lent; /* stream: room of the ops from next to stop */
    int64_t issued;     /* stream: ops taken from the schedule */
};

/* A neighbouring chunk of the model, as a result gets there. */
struct lane {
    int device;
    pl_tick flight;
};

struct instance {
    int64_t started, ended; /* U */
    int64_t from, version;  /* group of the last F asked for: its first microbatch and
                             * the version that it reads */
    int64_t done_from, done_group; /* group of the last weight gradient */
    int chunk, device;             /* chunk of the model */
    int next; /* next instance of the same device, -1 after the last */
    struct lane ahead, behind;
    pl_tick time[PL_N_OP];
};

/* An input of (instance, microbatch): 0 absent, else 1 + its arrival time. */
typedef uint64_t pl_input;
#define PL_HAD_B UINT64_MAX /* the B has begun, its W may follow */

struct cell {
    pl_input activation, gradient;
};

/* Microbatches oldest .. newest - 1 and updates updated .. opened - 1 are in flight.
 * Sizes are powers of two and grow when there are more. */
struct window {
    int64_t oldest, newest, micro_size; /* 1 << micro_bits */
    int micro_bits;
    struct cell *cell; /* [instances * micro_size] */
    int32_t *pending;  /* [micro_size] chunks whose weight gradient is missing */
    int64_t updated, opened, group_size;
    int32_t *left;     /* [chunks * group_size] weight gradients missing of a group */
    int64_t *left_all; /* [group_size] the same over all chunks */
    int32_t *to_do;    /* [group_size] U missing of a group */
};

struct pl_stream;
struct network;     /* network.h */
struct free_device; /* engine_run.c */

struct engine {
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    bool barrier;
    int P, C, Q; /* devices, model chunks, instances */
    struct device *device;
    struct instance *instance;
    int *first_instance; /* [P] */
    struct turns turns;
    uint64_t *dirty; /* [P / 64] bits: devices to dispatch, in words dirty_from .. to */
    int dirty_from, dirty_to;
    struct window window;
    struct pl_timeline out;    /* columns with room for all rows */
    int64_t n_ops, n_messages; /* rows written */
    pl_tick now;
    struct pl_stream *stream; /* NULL: all ops and all rows are there */
    bool varies;              /* durations are not those of the instances */
    struct network *network;  /* NULL: plain latency */
    struct free_device *free; /* [P] NULL: ops run in issue order; borrowed */
    bool no_time; /* an op other than U that takes no time begins at this instant */
};

/* Set up devices, instances, queue and window; release them. */
void pl_engine_prepare(struct engine *e);
void pl_engine_release(struct engine *e);
/* Run until nothing more can happen. Errors: those of pl_engine_run but a deadlock. */
int pl_engine_loop(struct engine *e);
/* Some op has not run: PL_EDEADLOCK naming the first. */
int pl_engine_stuck(struct engine *e);

/* Of a stream: the next ops of a device, false after the last; room for the rows of one
 * more round; at the end of an instant, perhaps, hand the rows over. */
bool pl_stream_refill(struct engine *e, int device);
void pl_stream_room(struct engine *e);
int pl_stream_flush(struct engine *e);

void pl_window_new(struct engine *e);
void pl_window_free(struct window *window);
/* The forward of micro begins on the first chunk: micro and its group are in flight. */
void pl_window_open(struct engine *e, int64_t micro);

static inline bool pl_window_holds(const struct window *w, int64_t micro)
{
    return (uint64_t)(micro - w->oldest) < (uint64_t)(w->newest - w->oldest);
}

static inline struct cell *pl_window_cell(const struct engine *e, int instance,
                                          int64_t micro)
{
    const struct window *w = &e->window;
    return &w->cell[((int64_t)instance << w->micro_bits) +
                    (micro & (w->micro_size - 1))];
}

static inline int32_t *pl_window_left(const struct engine *e, int chunk, int64_t group)
{
    const struct window *w = &e->window;
    return &w->left[chunk * w->group_size + (group & (w->group_size - 1))];
}

/* A weight gradient of micro is there. */
static inline void pl_window_count(struct engine *e, int64_t micro)
{
    struct window *w = &e->window;
    int64_t mask = w->micro_size - 1;
    w->pending[micro & mask]--;
    while (w->oldest < w->newest && w->pending[w->oldest & mask] == 0) w->oldest++;
}

/* A U of the group has ended. */
static inline void pl_window_update(struct engine *e, int64_t group)
{
    struct window *w = &e->window;
    int64_t mask = w->group_size - 1;
    w->to_do[group & mask]--;
    while (w->updated < w->opened && w->to_do[w->updated & mask] == 0) w->updated++;
}

/* Is the version there that a forward reads? PL_READS_*: always. */
static inline bool pl_engine_version(struct engine *e, struct instance *q,
                                     int64_t micro)
{
    const struct pl_shape *shape = &e->sched->shape;
    if ((uint64_t)(micro - q->from) >= (uint64_t)shape->m) {
        int64_t group = micro / shape->m;
        q->from = group * shape->m;
        q->version = e->sched->type->reads(shape, q->chunk, group);
    }
    return q->version <= q->ended;
}

/* When the inputs of op are there: PL_NEVER when that is not known yet. */
pl_tick pl_engine_ready(struct engine *e, const struct pl_op *op);
/* A free run: make the op that the device takes up next its next one. */
void pl_free_choose(struct engine *e, int device);

/* The input `kind` of (instance, micro) will be there at `arrival`. */
void pl_engine_deliver(struct engine *e, int instance, int kind, int64_t micro,
                       pl_tick arrival);

/* What links do beyond a fixed flight time (network.h): the result of op goes to
 * instance `to`; n ops of a device have ended, or, PL_EXCHANGING, its exchange; the
 * input of its next op is not there; the network's own turn; why nothing goes on, or
 * PL_OK. */
struct network *pl_network_new(const struct engine *e);
void pl_network_free(struct network *network);
int pl_network_send(struct engine *e, const struct pl_op *op, int to, int kind);
int pl_network_finished(struct engine *e, int device, int n);
int pl_network_wants(struct engine *e, int device);
int pl_network_turn(struct engine *e);
int pl_network_stuck(const struct engine *e);

/* Rows of one instant come in rounds when a U takes no time: order the op rows from
 * first_op and the messages from first_message by device, keeping the order of each. */
void pl_rows_order(struct pl_timeline *t, int64_t first_op, int64_t n_ops,
                   int64_t first_message, int64_t n_messages);
/* All messages in order of (sent, sending device, row), where they left later than
 * their rows were written. */
void pl_rows_sort_messages(struct pl_timeline *t);

#endif
