/* Discrete events on int64 ticks, ordered by (time, sequence): ends of ops and arrivals
 * of messages. All events of an instant are applied before any device picks its next
 * op, so the order among simultaneous events never decides what runs; the loop
 * allocates only when the heap grows. Semantics: timeline.h. */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/heap.h"
#include "sim/timeline.h"

enum { END = -1 }; /* event kind besides PL_OP_F and PL_OP_B of a message */

/* Bits of a microbatch on an instance. */
enum { F_HERE = 1, F_DONE = 2, B_HERE = 4, B_DONE = 8, W_DONE = 16 };

struct device {
    int64_t cursor;          /* next op of the issue order */
    struct pl_op running[2]; /* two when they are a pair */
    int n_running;
    bool dirty, due; /* due: a U of the device may be ready */
};

struct instance {
    int64_t started, ended; /* U */
    int chunk;              /* of the model */
    int next;               /* next instance of the same device, -1 after the last */
};

struct engine {
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    bool barrier;
    int64_t n_micro;
    struct device *device;
    struct instance *instance;
    int *first_instance;  /* [P] */
    unsigned char *state; /* [instances * n_micro] bits */
    int32_t *left;        /* [C * updates] weight gradients missing of a group */
    int64_t *left_all;    /* [updates] the same over all chunks */
    int32_t *dirty, n_dirty;
    struct heap heap;
    struct pl_timeline out;
    int64_t n_ops, n_messages; /* recorded */
    pl_tick now;
};

static int too_long(const struct engine *e, const struct pl_op *op)
{
    return pl_fail(
        PL_ECONFIG,
        "simulated time exceeds 106 days (int64 picoseconds) at %s %lld of stage "
        "%d: run fewer updates and extrapolate from the step time",
        pl_op_names[op->kind], (long long)op->micro, e->instance[op->chunk].chunk);
}

static inline void mark(struct engine *e, int device)
{
    if (e->device[device].dirty) return;
    e->device[device].dirty = true;
    e->dirty[e->n_dirty++] = device;
}

static inline unsigned char *bits(struct engine *e, int instance, int64_t micro)
{
    return &e->state[instance * e->n_micro + micro];
}

static inline void deliver(struct engine *e, int instance, int kind, int64_t micro)
{
    *bits(e, instance, micro) |= kind == PL_OP_F ? F_HERE : B_HERE;
    mark(e, e->sched->layout.device[instance]);
}

/* The result of op goes to the neighbouring chunk `to` of the same replica. */
static int send(struct engine *e, const struct pl_op *op, int to, int kind)
{
    int src = e->sched->layout.device[op->chunk], dst = e->sched->layout.device[to];
    if (src == dst) {
        deliver(e, to, kind, op->micro);
        return PL_OK;
    }
    pl_tick delay = pl_cost_flight(e->cost, src, dst), arrival;
    if (__builtin_add_overflow(e->now, delay, &arrival)) return too_long(e, op);
    int64_t i = e->n_messages++;
    e->out.src[i] = src;
    e->out.dst[i] = dst;
    e->out.msg_chunk[i] = op->chunk;
    e->out.msg_micro[i] = op->micro;
    e->out.msg_kind[i] = (int8_t)kind;
    e->out.sent[i] = e->now;
    e->out.arrived[i] = arrival;
    if (delay == 0)
        deliver(e, to, kind, op->micro);
    else
        heap_push(&e->heap, (struct event){arrival, 0, op->micro, to, kind});
    return PL_OK;
}

/* A U may now be ready on every copy of the chunk. */
static void mark_due(struct engine *e, int chunk)
{
    const struct pl_layout *layout = &e->sched->layout;
    for (int r = 0; r < layout->R; r++) {
        int device = layout->device[r * layout->C + chunk];
        e->device[device].due = true;
        mark(e, device);
    }
}

/* One weight gradient more: the last of a group frees its U, or, under a barrier, the
 * last of all. */
static void count_gradient(struct engine *e, int chunk, int64_t micro)
{
    int64_t group = micro / e->sched->shape.m;
    int32_t left = --e->left[chunk * e->sched->shape.updates + group];
    int64_t left_all = --e->left_all[group];
    if (!e->barrier && left == 0) mark_due(e, chunk);
    if (e->barrier && left_all == 0)
        for (int c = 0; c < e->sched->layout.C; c++) mark_due(e, c);
}

static int finish_op(struct engine *e, const struct pl_op *op)
{
    struct instance *instance = &e->instance[op->chunk];
    int chunk = instance->chunk;
    if (op->kind == PL_OP_U) {
        instance->ended++;
        return PL_OK;
    }
    static const unsigned char sets[] = {F_DONE, B_DONE, W_DONE, B_DONE | W_DONE};
    *bits(e, op->chunk, op->micro) |= sets[op->kind];
    if (sets[op->kind] & W_DONE) count_gradient(e, chunk, op->micro);
    if (op->kind == PL_OP_F && chunk + 1 < e->sched->layout.C)
        return send(e, op, op->chunk + 1, PL_OP_F);
    if ((sets[op->kind] & B_DONE) && chunk > 0)
        return send(e, op, op->chunk - 1, PL_OP_B);
    return PL_OK;
}

static int finish(struct engine *e, int device)
{
    struct device *d = &e->device[device];
    int rc = PL_OK, n = d->n_running;
    d->n_running = 0;
    mark(e, device);
    for (int i = 0; i < n && !rc; i++) rc = finish_op(e, &d->running[i]);
    return rc;
}

static bool ready(struct engine *e, const struct pl_op *op)
{
    const struct pl_shape *shape = &e->sched->shape;
    const struct instance *instance = &e->instance[op->chunk];
    unsigned state = *bits(e, op->chunk, op->micro);
    if (op->kind == PL_OP_F) {
        if (instance->chunk > 0 && !(state & F_HERE)) return false;
        int64_t version =
            e->sched->type->reads(shape, instance->chunk, op->micro / shape->m);
        return version <= instance->ended; /* PL_READS_*: always there */
    }
    if (op->kind == PL_OP_W) return state & B_DONE;
    return (state & F_DONE) &&
           (instance->chunk == e->sched->layout.C - 1 || (state & B_HERE));
}

static bool update_ready(const struct engine *e, const struct instance *instance)
{
    int64_t updates = e->sched->shape.updates, g = instance->started;
    return g < updates && e->left[instance->chunk * updates + g] == 0 &&
           (!e->barrier || e->left_all[g] == 0);
}

/* Begin n ops (two: a pair) that end together after `cost`. */
static int start(struct engine *e, int device, const struct pl_op *ops, int n,
                 pl_tick cost)
{
    pl_tick end;
    if (__builtin_add_overflow(e->now, cost, &end)) return too_long(e, ops);
    for (int k = 0; k < n; k++) {
        int64_t i = e->n_ops++;
        e->out.kind[i] = (int8_t)ops[k].kind;
        e->out.device[i] = device;
        e->out.chunk[i] = ops[k].chunk;
        e->out.micro[i] = ops[k].micro;
        e->out.start[i] = e->now;
        e->out.end[i] = end;
        e->device[device].running[k] = ops[k];
    }
    e->device[device].n_running = n;
    heap_push(&e->heap, (struct event){end, 0, ops->micro, device, END});
    return PL_OK;
}

static inline pl_tick duration(const struct engine *e, const struct pl_op *op)
{
    return pl_cost_time(e->cost, op->kind, e->instance[op->chunk].chunk);
}

/* The ready U of the lowest instance of a device, if any; *ran tells. */
static int start_update(struct engine *e, int device, bool *ran)
{
    for (int q = e->first_instance[device]; q >= 0; q = e->instance[q].next) {
        if (!update_ready(e, &e->instance[q])) continue;
        struct pl_op update = {e->instance[q].started++, q, PL_OP_U, 0};
        *ran = true;
        return start(e, device, &update, 1, duration(e, &update));
    }
    e->device[device].due = false;
    return PL_OK;
}

/* A U goes first, as soon as its gradients are there; the issue order has the rest. */
static int dispatch(struct engine *e, int device)
{
    struct device *d = &e->device[device];
    bool ran = false;
    d->dirty = false;
    if (d->n_running) return PL_OK;
    if (d->due) {
        int rc = start_update(e, device, &ran);
        if (rc || ran) return rc;
    }
    if (d->cursor == e->sched->first[device + 1]) return PL_OK;
    const struct pl_op *op = &e->sched->ops[d->cursor];
    if (!ready(e, op) || (op->pair && !ready(e, op + 1))) return PL_OK;
    int n = 1 + op->pair;
    pl_tick cost = duration(e, op);
    if (op->pair) cost = pl_cost_pair(e->cost, cost, duration(e, op + 1));
    d->cursor += n;
    return start(e, device, op, n, cost);
}

static int stuck(struct engine *e)
{
    const char *name = e->sched->type->name;
    for (int d = 0; d < e->sched->shape.P; d++) {
        if (e->device[d].cursor == e->sched->first[d + 1]) continue;
        const struct pl_op *op = &e->sched->ops[e->device[d].cursor];
        return pl_fail(PL_EDEADLOCK,
                       "schedule %s cannot execute: stage %d waits forever to start %s "
                       "%lld",
                       name, d, pl_op_names[op->kind], (long long)op->micro);
    }
    return pl_fail(PL_EDEADLOCK,
                   "schedule %s cannot execute: an update is never complete", name);
}

static int run(struct engine *e)
{
    int rc = PL_OK;
    for (int d = 0; d < e->sched->shape.P; d++) mark(e, d);
    for (;;) {
        for (int i = 0; i < e->n_dirty && !rc; i++) rc = dispatch(e, e->dirty[i]);
        e->n_dirty = 0;
        if (rc || e->heap.n == 0) break;
        e->now = e->heap.item[0].time;
        while (e->heap.n && e->heap.item[0].time == e->now && !rc) {
            struct event event = heap_pop(&e->heap);
            if (event.kind == END)
                rc = finish(e, event.device);
            else
                deliver(e, event.device, event.kind, event.micro);
        }
    }
    if (!rc && e->n_ops < e->out.n_ops) rc = stuck(e);
    return rc;
}

static void prepare_state(struct engine *e)
{
    const struct pl_shape *shape = &e->sched->shape;
    const struct pl_layout *layout = &e->sched->layout;
    int n_instances = layout->C * layout->R;
    e->device = PL_NEW(shape->P, struct device);
    e->first_instance = PL_NEW(shape->P, int);
    e->instance = PL_NEW(n_instances, struct instance);
    for (int d = 0; d < shape->P; d++) {
        e->device[d].cursor = e->sched->first[d];
        e->first_instance[d] = -1;
    }
    for (int q = n_instances - 1; q >= 0; q--) {
        int *first = &e->first_instance[layout->device[q]];
        e->instance[q].chunk = q % layout->C;
        e->instance[q].next = *first;
        *first = q;
    }
    e->state = PL_NEW(n_instances * e->n_micro, unsigned char);
    e->left = PL_NEW(layout->C * shape->updates, int32_t);
    e->left_all = PL_NEW(shape->updates, int64_t);
    for (int64_t i = 0; i < layout->C * shape->updates; i++) e->left[i] = shape->m;
    for (int64_t g = 0; g < shape->updates; g++)
        e->left_all[g] = (int64_t)layout->C * shape->m;
    e->dirty = PL_NEW(shape->P, int32_t);
    e->heap.room = 4 * (int64_t)n_instances;
    e->heap.item = PL_NEW(e->heap.room, struct event);
}

int pl_engine_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out)
{
    assert(cost->devices == schedule->shape.P && cost->chunks == schedule->layout.C);
    struct engine e = {.sched = schedule, .cost = cost, .barrier = barrier};
    e.n_micro = schedule->shape.m * schedule->shape.updates;
    prepare_state(&e);
    pl_timeline_new(schedule, &e.out);
    int rc = run(&e);
    free(e.device);
    free(e.instance);
    free(e.first_instance);
    free(e.state);
    free(e.left);
    free(e.left_all);
    free(e.dirty);
    free(e.heap.item);
    if (rc)
        pl_timeline_free(&e.out);
    else
        *out = e.out;
    return rc;
}
