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

/* Bits of a microbatch on a stage. */
enum { F_HERE = 1, F_DONE = 2, B_HERE = 4, B_DONE = 8, W_DONE = 16 };

struct stage {
    int64_t cursor;  /* next op of the issue order */
    int64_t updates; /* U started */
    int64_t version; /* U ended */
    struct pl_op running;
    bool busy, dirty;
};

struct engine {
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    bool barrier;
    int64_t n_micro;
    struct stage *stage;
    unsigned char *state; /* [P * n_micro] bits */
    int32_t *left;        /* [P * updates] weight gradients missing of a group */
    int64_t *left_all;    /* [updates] the same over all stages */
    int32_t *dirty, n_dirty;
    struct heap heap;
    struct pl_timeline out;
    int64_t n_ops, n_messages; /* recorded */
    pl_tick now;
};

static int too_long(const struct pl_op *op)
{
    return pl_fail(
        PL_ECONFIG,
        "simulated time exceeds 106 days (int64 picoseconds) at %s %lld of stage "
        "%d: run fewer updates and extrapolate from the step time",
        pl_op_names[op->kind], (long long)op->micro, op->chunk);
}

static int duration(const struct pl_cost *cost, const struct pl_op *op, pl_tick *out)
{
    int s = op->chunk;
    switch (op->kind) {
    case PL_OP_F:
        *out = cost->forward[s];
        return 0;
    case PL_OP_B:
        *out = cost->backward[s];
        return 0;
    case PL_OP_W:
        *out = cost->weight[s];
        return 0;
    case PL_OP_U:
        *out = cost->update[s];
        return 0;
    default:
        if (__builtin_add_overflow(cost->backward[s], cost->weight[s], out))
            return too_long(op);
        return 0;
    }
}

static inline void mark(struct engine *e, int device)
{
    if (e->stage[device].dirty) return;
    e->stage[device].dirty = true;
    e->dirty[e->n_dirty++] = device;
}

static inline unsigned char *bits(struct engine *e, int stage, int64_t micro)
{
    return &e->state[stage * e->n_micro + micro];
}

static void deliver(struct engine *e, int device, int kind, int64_t micro)
{
    *bits(e, device, micro) |= kind == PL_OP_F ? F_HERE : B_HERE;
    mark(e, device);
}

static int send(struct engine *e, const struct pl_op *op, int dst, int kind)
{
    int src = op->chunk;
    pl_tick delay = e->cost->link[src < dst ? src : dst], arrival;
    if (__builtin_add_overflow(e->now, delay, &arrival)) return too_long(op);
    int64_t i = e->n_messages++;
    e->out.src[i] = src;
    e->out.dst[i] = dst;
    e->out.msg_micro[i] = op->micro;
    e->out.msg_kind[i] = (int8_t)kind;
    e->out.sent[i] = e->now;
    e->out.arrived[i] = arrival;
    if (delay == 0)
        deliver(e, dst, kind, op->micro);
    else
        heap_push(&e->heap, (struct event){arrival, 0, op->micro, dst, kind});
    return PL_OK;
}

/* One weight gradient more; the last one may free a barrier that all stages wait at. */
static void count_gradient(struct engine *e, int stage, int64_t micro)
{
    int64_t group = micro / e->sched->shape.m;
    e->left[stage * e->sched->shape.updates + group]--;
    if (--e->left_all[group] == 0 && e->barrier)
        for (int s = 0; s < e->sched->shape.P; s++) mark(e, s);
}

static int finish(struct engine *e, int device)
{
    struct stage *stage = &e->stage[device];
    const struct pl_op *op = &stage->running;
    stage->busy = false;
    mark(e, device);
    if (op->kind == PL_OP_U) {
        stage->version++;
        return PL_OK;
    }
    static const unsigned char sets[] = {F_DONE, B_DONE, W_DONE, B_DONE | W_DONE};
    *bits(e, device, op->micro) |= sets[op->kind];
    if (sets[op->kind] & W_DONE) count_gradient(e, device, op->micro);
    if (op->kind == PL_OP_F && device + 1 < e->sched->shape.P)
        return send(e, op, device + 1, PL_OP_F);
    if ((sets[op->kind] & B_DONE) && device > 0)
        return send(e, op, device - 1, PL_OP_B);
    return PL_OK;
}

static bool ready(struct engine *e, int device, const struct pl_op *op)
{
    const struct pl_shape *shape = &e->sched->shape;
    unsigned state = *bits(e, device, op->micro);
    if (op->kind == PL_OP_F) {
        if (device > 0 && !(state & F_HERE)) return false;
        int64_t version = e->sched->type->reads(shape, op->micro / shape->m);
        return version <= e->stage[device].version; /* -1: the live one, always there */
    }
    if (op->kind == PL_OP_W) return state & B_DONE;
    return (state & F_DONE) && (device == shape->P - 1 || (state & B_HERE));
}

static bool update_ready(const struct engine *e, int device)
{
    int64_t updates = e->sched->shape.updates, g = e->stage[device].updates;
    return g < updates && e->left[device * updates + g] == 0 &&
           (!e->barrier || e->left_all[g] == 0);
}

/* Next op of the issue order but for the U, which are not bound to it; NULL at the end.
 */
static const struct pl_op *next_issued(const struct engine *e, int device)
{
    int64_t *cursor = &e->stage[device].cursor, end = e->sched->first[device + 1];
    while (*cursor < end && e->sched->ops[*cursor].kind == PL_OP_U) ++*cursor;
    return *cursor < end ? &e->sched->ops[*cursor] : NULL;
}

static int start(struct engine *e, int device, const struct pl_op *op)
{
    pl_tick cost, end;
    int rc = duration(e->cost, op, &cost);
    if (rc) return rc;
    if (__builtin_add_overflow(e->now, cost, &end)) return too_long(op);
    int64_t i = e->n_ops++;
    e->out.kind[i] = (int8_t)op->kind;
    e->out.device[i] = device;
    e->out.chunk[i] = op->chunk;
    e->out.micro[i] = op->micro;
    e->out.start[i] = e->now;
    e->out.end[i] = end;
    e->stage[device].running = *op;
    e->stage[device].busy = true;
    heap_push(&e->heap, (struct event){end, 0, op->micro, device, END});
    return PL_OK;
}

/* A U goes first, as soon as its gradients are there; the issue order has the rest. */
static int dispatch(struct engine *e, int device)
{
    struct stage *stage = &e->stage[device];
    stage->dirty = false;
    if (stage->busy) return PL_OK;
    if (update_ready(e, device)) {
        struct pl_op update = {stage->updates++, device, PL_OP_U};
        return start(e, device, &update);
    }
    const struct pl_op *op = next_issued(e, device);
    if (!op || !ready(e, device, op)) return PL_OK;
    stage->cursor++;
    return start(e, device, op);
}

static int stuck(struct engine *e)
{
    for (int s = 0; s < e->sched->shape.P; s++) {
        const struct pl_op *op = next_issued(e, s);
        if (op)
            return pl_fail(
                PL_EDEADLOCK,
                "schedule %s cannot execute: stage %d waits forever to start %s "
                "%lld",
                e->sched->type->name, s, pl_op_names[op->kind], (long long)op->micro);
    }
    return pl_fail(PL_EDEADLOCK,
                   "schedule %s cannot execute: an update is never complete",
                   e->sched->type->name);
}

static int run(struct engine *e)
{
    int rc = PL_OK;
    for (int s = 0; s < e->sched->shape.P; s++) mark(e, s);
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
    if (!rc && e->n_ops < e->sched->n_ops) rc = stuck(e);
    return rc;
}

static int64_t count_messages(const struct pl_schedule *sched)
{
    int64_t n = 0;
    for (int s = 0; s < sched->shape.P; s++)
        for (int64_t i = sched->first[s]; i < sched->first[s + 1]; i++) {
            int kind = sched->ops[i].kind;
            n += kind == PL_OP_F && s + 1 < sched->shape.P;
            n += (kind == PL_OP_B || kind == PL_OP_BW) && s > 0;
        }
    return n;
}

static void prepare(struct engine *e)
{
    const struct pl_shape *shape = &e->sched->shape;
    struct pl_timeline *out = &e->out;
    int64_t n = e->sched->n_ops, n_messages = count_messages(e->sched);
    *out = (struct pl_timeline){.shape = *shape, .n_ops = n, .n_messages = n_messages};
    out->kind = PL_NEW(n, int8_t);
    out->device = PL_NEW(n, int32_t);
    out->chunk = PL_NEW(n, int32_t);
    out->micro = PL_NEW(n, int64_t);
    out->start = PL_NEW(n, pl_tick);
    out->end = PL_NEW(n, pl_tick);
    out->src = PL_NEW(n_messages, int32_t);
    out->dst = PL_NEW(n_messages, int32_t);
    out->msg_micro = PL_NEW(n_messages, int64_t);
    out->msg_kind = PL_NEW(n_messages, int8_t);
    out->sent = PL_NEW(n_messages, pl_tick);
    out->arrived = PL_NEW(n_messages, pl_tick);
    e->stage = PL_NEW(shape->P, struct stage);
    e->state = PL_NEW(shape->P * e->n_micro, unsigned char);
    e->left = PL_NEW(shape->P * shape->updates, int32_t);
    e->left_all = PL_NEW(shape->updates, int64_t);
    e->dirty = PL_NEW(shape->P, int32_t);
    e->heap.room = 4 * (int64_t)shape->P;
    e->heap.item = PL_NEW(e->heap.room, struct event);
    for (int s = 0; s < shape->P; s++) e->stage[s].cursor = e->sched->first[s];
    for (int64_t i = 0; i < shape->P * shape->updates; i++) e->left[i] = shape->m;
    for (int64_t g = 0; g < shape->updates; g++)
        e->left_all[g] = (int64_t)shape->P * shape->m;
}

int pl_engine_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out)
{
    assert(cost->P == schedule->shape.P);
    struct engine e = {.sched = schedule, .cost = cost, .barrier = barrier};
    e.n_micro = schedule->shape.m * schedule->shape.updates;
    prepare(&e);
    int rc = run(&e);
    free(e.stage);
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
