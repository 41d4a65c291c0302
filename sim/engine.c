/* Discrete events on int64 ticks. All events of an instant are applied before any
 * device picks its next op, so the order among simultaneous events never decides what
 * runs; the loop allocates only when a window grows. engine.h has the structure,
 * timeline.h the semantics. */
#include "sim/engine.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/custom.h"

static int too_long(const struct engine *e, const struct pl_op *op)
{
    return pl_fail(
        PL_ECONFIG,
        "simulated time exceeds 106 days (int64 picoseconds) at %s %lld of stage "
        "%d: run fewer updates and extrapolate from the step time",
        pl_op_names[op->kind], (long long)op->micro, e->instance[op->chunk].chunk);
}

/* The device is to be dispatched at this instant. */
static inline void mark(struct engine *e, int device)
{
    int word = device / 64;
    e->dirty[word] |= UINT64_C(1) << device % 64;
    if (word < e->dirty_from) e->dirty_from = word;
    if (word > e->dirty_to) e->dirty_to = word;
}

/* The input `kind` of (instance, micro) will be there at `arrival`. */
static inline void deliver(struct engine *e, int instance, int kind, int64_t micro,
                           pl_tick arrival)
{
    struct cell *cell = pl_window_cell(e, instance, micro);
    int device = e->instance[instance].device;
    *(kind == PL_OP_F ? &cell->activation : &cell->gradient) = (pl_input)arrival + 1;
    if (!e->device[device].n_running) mark(e, device);
}

static inline void record_message(struct engine *e, const struct pl_op *op, int dst,
                                  int kind, pl_tick arrival)
{
    int64_t i = e->n_messages++;
    e->out.src[i] = e->instance[op->chunk].device;
    e->out.dst[i] = dst;
    e->out.msg_chunk[i] = op->chunk;
    e->out.msg_micro[i] = op->micro;
    e->out.msg_kind[i] = (int8_t)kind;
    e->out.sent[i] = e->now;
    e->out.arrived[i] = arrival;
}

/* The result of op goes to the neighbouring chunk `to` of the same replica. */
static inline int send(struct engine *e, const struct pl_op *op, int to,
                       const struct lane *lane, int kind)
{
    pl_tick arrival = e->now;
    if (lane->device != e->instance[op->chunk].device) {
        if (e->network) return pl_network_send(e, op, to, kind);
        if (lane->flight >= PL_NEVER - e->now) return too_long(e, op);
        arrival += lane->flight;
        record_message(e, op, lane->device, kind, arrival);
    }
    deliver(e, to, kind, op->micro, arrival);
    return PL_OK;
}

/* A U may now be ready on every copy of the chunk. */
static void mark_due(struct engine *e, int chunk)
{
    for (int q = chunk; q < e->Q; q += e->C) {
        int device = e->instance[q].device;
        e->device[device].due = true;
        mark(e, device);
    }
}

/* One weight gradient more: the last of a group frees its U, or, under a barrier, the
 * last of all. */
static inline void count_gradient(struct engine *e, struct instance *q, int64_t micro)
{
    int64_t m = e->sched->shape.m;
    if ((uint64_t)(micro - q->done_from) >= (uint64_t)m) {
        q->done_group = micro / m; /* divide only when the group changes */
        q->done_from = q->done_group * m;
    }
    int64_t group = q->done_group;
    int64_t *all = &e->window.left_all[group & (e->window.group_size - 1)];
    int32_t left = --*pl_window_left(e, q->chunk, group);
    --*all;
    if (!e->barrier && left == 0) mark_due(e, q->chunk);
    if (e->barrier && *all == 0)
        for (int c = 0; c < e->C; c++) mark_due(e, c);
    pl_window_count(e, micro);
}

static int finish_op(struct engine *e, const struct pl_op *op)
{
    struct instance *q = &e->instance[op->chunk];
    switch (op->kind) {
    case PL_OP_F:
        if (q->chunk + 1 < e->C) return send(e, op, op->chunk + 1, &q->ahead, PL_OP_F);
        deliver(e, op->chunk, PL_OP_B, op->micro, e->now);
        return PL_OK;
    case PL_OP_U:
        q->ended++;
        pl_window_update(e, op->micro);
        return PL_OK;
    case PL_OP_W:
        count_gradient(e, q, op->micro);
        return PL_OK;
    case PL_OP_BW:
        count_gradient(e, q, op->micro);
    }
    if (q->chunk == 0) return PL_OK;
    return send(e, op, op->chunk - 1, &q->behind, PL_OP_B);
}

/* What the device runs ends now, or what it waits for has arrived. */
static int finish(struct engine *e, int device)
{
    struct device *d = &e->device[device];
    int rc = PL_OK, n = d->n_running;
    d->n_running = 0;
    mark(e, device);
    for (int i = 0; i < n && !rc; i++) rc = finish_op(e, &d->running[i]);
    if (!rc && e->network) rc = pl_network_finished(e, device, n);
    return rc;
}

void pl_engine_deliver(struct engine *e, int instance, int kind, int64_t micro,
                       pl_tick arrival)
{
    deliver(e, instance, kind, micro, arrival);
}

/* When the inputs of op are there: PL_NEVER when that is not known yet. */
static inline pl_tick ready(struct engine *e, const struct pl_op *op)
{
    struct instance *q = &e->instance[op->chunk];
    pl_input input;
    if (op->kind == PL_OP_F) {
        if (!pl_engine_version(e, q, op->micro)) return PL_NEVER;
        if (q->chunk == 0) return 0;
    }
    if (!pl_window_holds(&e->window, op->micro)) return PL_NEVER;
    const struct cell *cell = pl_window_cell(e, op->chunk, op->micro);
    if (op->kind == PL_OP_W) return cell->gradient == PL_HAD_B ? 0 : PL_NEVER;
    input = op->kind == PL_OP_F ? cell->activation : cell->gradient;
    return input ? (pl_tick)(input - 1) : PL_NEVER;
}

pl_tick pl_engine_ready(struct engine *e, const struct pl_op *op)
{
    return ready(e, op);
}

/* The inputs are used: their place in the window is free again. */
static inline void consume(struct engine *e, const struct pl_op *op)
{
    const struct instance *q = &e->instance[op->chunk];
    if (op->kind == PL_OP_U) return;
    if (op->kind == PL_OP_F && q->chunk == 0) pl_window_open(e, op->micro);
    struct cell *cell = pl_window_cell(e, op->chunk, op->micro);
    if (op->kind == PL_OP_F)
        cell->activation = 0;
    else
        cell->gradient = op->kind == PL_OP_B ? PL_HAD_B : 0;
}

static bool update_ready(const struct engine *e, const struct instance *q)
{
    const struct window *w = &e->window;
    int64_t g = q->started;
    return g < w->opened && *pl_window_left(e, q->chunk, g) == 0 &&
           (!e->barrier || w->left_all[g & (w->group_size - 1)] == 0);
}

/* Begin n ops (two: a pair) that end together after `took`. */
static inline int start(struct engine *e, int device, const struct pl_op *ops, int n,
                        pl_tick took)
{
    if (took >= PL_NEVER - e->now) return too_long(e, ops);
    pl_tick end = e->now + took;
    if (e->varies) {
        if (took > PL_NEVER / 2) return too_long(e, ops);
        end = pl_cost_end(e->cost, device, e->now, took);
    }
    for (int k = 0; k < n; k++) {
        int64_t i = e->n_ops++;
        e->out.kind[i] = (int8_t)ops[k].kind;
        e->out.device[i] = device;
        e->out.chunk[i] = ops[k].chunk;
        e->out.micro[i] = ops[k].micro;
        e->out.start[i] = e->now;
        e->out.end[i] = end;
        e->device[device].running[k] = ops[k];
        consume(e, &ops[k]);
    }
    e->device[device].n_running = n;
    e->no_time |= took == 0 && ops->kind != PL_OP_U;
    turns_set(&e->turns, device, end);
    return PL_OK;
}

static inline pl_tick duration(const struct engine *e, const struct pl_op *op)
{
    const struct instance *q = &e->instance[op->chunk];
    if (e->varies)
        return pl_cost_op(e->cost, op->kind, op->chunk, q->device, op->micro);
    return q->time[op->kind];
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

/* A U goes first, as soon as its gradients are there; the issue order has the rest. An
 * idle device looks again when the input of its next op arrives. */
static int dispatch(struct engine *e, int device)
{
    struct device *d = &e->device[device];
    bool ran = false;
    if (d->n_running) return PL_OK;
    if (d->due) {
        int rc = start_update(e, device, &ran);
        if (rc || ran) return rc;
    }
    if (d->next == d->stop && !(e->stream && pl_stream_refill(e, device))) return PL_OK;
    if (e->free) pl_free_choose(e, device);
    const struct pl_op *op = d->next;
    int n = 1 + op->pair;
    pl_tick at = ready(e, op);
    if (op->pair) {
        pl_tick other = ready(e, op + 1);
        if (other > at) at = other;
    }
    if (at > e->now) {
        if (at != PL_NEVER)
            turns_set(&e->turns, device, at);
        else if (e->network)
            return pl_network_wants(e, device);
        return PL_OK;
    }
    pl_tick took = duration(e, op);
    if (op->pair) took = pl_cost_pair(e->cost, took, duration(e, op + 1));
    d->next += n;
    __builtin_prefetch(d->next + 8);
    return start(e, device, op, n, took);
}

static int dispatch_all(struct engine *e)
{
    int rc = PL_OK;
    for (int word = e->dirty_from; word <= e->dirty_to; word++)
        while (e->dirty[word] && !rc) {
            int device = word * 64 + __builtin_ctzll(e->dirty[word]);
            e->dirty[word] &= e->dirty[word] - 1;
            rc = dispatch(e, device);
        }
    e->dirty_from = (e->P - 1) / 64;
    e->dirty_to = 0;
    return rc;
}

int pl_engine_stuck(struct engine *e)
{
    const char *name = e->sched->type->name;
    int rc = e->network ? pl_network_stuck(e) : PL_OK;
    if (rc) return rc;
    for (int d = 0; d < e->P; d++) {
        const struct pl_op *op = e->device[d].next;
        if (op == e->device[d].stop) continue;
        if (e->sched->shape.custom)
            return pl_fail(PL_ECONFIG,
                           "%s: ranks wait for each other: rank %d waits forever to "
                           "start %s %lld",
                           e->sched->shape.custom->path, d, pl_op_names[op->kind],
                           (long long)op->micro);
        return pl_fail(PL_EDEADLOCK,
                       "schedule %s cannot execute: stage %d waits forever to start %s "
                       "%lld",
                       name, d, pl_op_names[op->kind], (long long)op->micro);
    }
    return pl_fail(PL_EDEADLOCK,
                   "schedule %s cannot execute: an update is never complete", name);
}

/* Instant after instant, each in as many rounds as ops that take no time ask for. */
int pl_engine_loop(struct engine *e)
{
    int64_t first_op = 0, first_message = 0;
    int rounds = 1, rc;
    for (int d = 0; d < e->P; d++) mark(e, d);
    if (e->stream) pl_stream_room(e);
    rc = dispatch_all(e);
    while (!rc) {
        pl_tick next = turns_time(&e->turns);
        if (next != e->now || e->no_time) {
            if (rounds > 1)
                pl_rows_order(&e->out, first_op, e->n_ops - first_op, first_message,
                              e->n_messages - first_message);
            if (e->stream) rc = pl_stream_flush(e);
            if (next == PL_NEVER || rc) break;
            e->now = next;
            e->no_time = false;
            first_op = e->n_ops;
            first_message = e->n_messages;
            rounds = 0;
        }
        if (e->stream) pl_stream_room(e);
        while (!rc && turns_time(&e->turns) == next) {
            int device = turns_device(&e->turns);
            turns_set(&e->turns, device, PL_NEVER);
            rc = device == e->P ? pl_network_turn(e) : finish(e, device);
        }
        if (!rc) rc = dispatch_all(e);
        rounds++;
    }
    return rc;
}
