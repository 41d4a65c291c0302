/* The event engine on ops that are made in batches and rows that are handed over in
 * batches; what is in flight is in the rings of window.c. */
#include "sim/stream.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/engine.h"

enum { OPS = 64, ROWS = 16384 };

struct pl_stream {
    const struct pl_stream_sink *sink;
    struct pl_metrics_stream *metrics;
    int64_t op_room, message_room;
};

bool pl_stream_can(const struct pl_schedule_type *type)
{
    return type->op_at;
}

bool pl_stream_refill(struct engine *e, int device)
{
    struct device *d = &e->device[device];
    const struct pl_schedule *sched = e->sched;
    int n = 0;
    if (!d->lent) d->lent = PL_NEW(OPS + 1, struct pl_op);
    /* the partner of a pair comes in the same batch */
    while (n < OPS || d->lent[n - 1].pair) {
        if (!sched->type->op_at(&sched->shape, device, d->issued, &d->lent[n])) break;
        d->issued++;
        n++;
    }
    d->next = d->lent;
    d->stop = d->lent + n;
    return n > 0;
}

static void grow_rows(struct pl_timeline *t, int64_t ops, int64_t messages)
{
    size_t n = (size_t)ops, k = (size_t)messages;
    t->kind = pl_grow(t->kind, n, sizeof *t->kind);
    t->device = pl_grow(t->device, n, sizeof *t->device);
    t->chunk = pl_grow(t->chunk, n, sizeof *t->chunk);
    t->micro = pl_grow(t->micro, n, sizeof *t->micro);
    t->start = pl_grow(t->start, n, sizeof *t->start);
    t->end = pl_grow(t->end, n, sizeof *t->end);
    t->src = pl_grow(t->src, k, sizeof *t->src);
    t->dst = pl_grow(t->dst, k, sizeof *t->dst);
    t->msg_chunk = pl_grow(t->msg_chunk, k, sizeof *t->msg_chunk);
    t->msg_micro = pl_grow(t->msg_micro, k, sizeof *t->msg_micro);
    t->msg_kind = pl_grow(t->msg_kind, k, sizeof *t->msg_kind);
    t->sent = pl_grow(t->sent, k, sizeof *t->sent);
    t->arrived = pl_grow(t->arrived, k, sizeof *t->arrived);
}

/* A round begins and ends at most two ops a device. */
void pl_stream_room(struct engine *e)
{
    struct pl_stream *s = e->stream;
    int64_t more = 2 * (int64_t)e->P;
    if (e->n_ops + more <= s->op_room && e->n_messages + more <= s->message_room)
        return;
    s->op_room = 2 * (e->n_ops + more) + ROWS;
    s->message_room = 2 * (e->n_messages + more) + ROWS;
    grow_rows(&e->out, s->op_room, s->message_room);
}

static int hand_over(struct engine *e)
{
    struct pl_stream *s = e->stream;
    int rc = PL_OK;
    e->out.n_ops = e->n_ops;
    e->out.n_messages = e->n_messages;
    if (s->metrics) rc = pl_metrics_rows(s->metrics, &e->out);
    if (!rc && s->sink) rc = s->sink->rows(s->sink->context, &e->out);
    e->n_ops = e->n_messages = 0;
    return rc;
}

int pl_stream_flush(struct engine *e)
{
    if (e->n_ops < ROWS && e->n_messages < ROWS) return PL_OK;
    return hand_over(e);
}

/* Has every op and every U run? */
static bool finished(struct engine *e)
{
    for (int d = 0; d < e->P; d++)
        if (e->device[d].next != e->device[d].stop || pl_stream_refill(e, d))
            return false;
    for (int q = 0; q < e->Q; q++)
        if (e->instance[q].ended < e->sched->shape.updates) return false;
    return true;
}

static int run(const struct pl_schedule *sched, const struct pl_cost *cost,
               bool barrier, struct pl_stream *stream)
{
    struct engine e = {
        .sched = sched, .cost = cost, .barrier = barrier, .stream = stream};
    pl_engine_prepare(&e);
    e.out.shape = sched->shape;
    int rc = pl_engine_loop(&e);
    if (!rc && !finished(&e)) rc = pl_engine_stuck(&e);
    if (!rc) rc = hand_over(&e);
    for (int d = 0; d < e.P; d++) free(e.device[d].lent);
    pl_engine_release(&e);
    pl_timeline_free(&e.out);
    return rc;
}

int pl_stream_run(const struct pl_schedule_type *type, const struct pl_shape *shape,
                  const struct pl_cost *cost, bool barrier,
                  const struct pl_stream_sink *sink, struct pl_metrics *metrics)
{
    struct pl_schedule sched = {.type = type, .shape = *shape};
    struct pl_stream stream = {.sink = sink};
    struct pl_metrics made = {0};
    if (!pl_stream_can(type))
        return pl_fail(PL_EUNSUP,
                       "%s cannot be simulated without its ops in memory: run fewer "
                       "updates and extrapolate from the step time",
                       type->name);
    if (shape->free_order)
        return pl_fail(PL_EUNSUP, "schedule.order free needs the ops in memory: run "
                                  "fewer updates");
    int rc = pl_shape_resolve_stream(type, &sched.shape);
    if (rc) return rc;
    pl_layout_new(type, &sched.shape, &sched.layout);
    if (metrics && (rc = pl_metrics_fit(&sched))) {
        pl_schedule_free(&sched);
        return rc;
    }
    if (metrics) stream.metrics = pl_metrics_begin(&sched);
    rc = run(&sched, cost, barrier, &stream);
    if (metrics) pl_metrics_end(stream.metrics, rc ? NULL : &made);
    if (metrics && !rc) *metrics = made;
    pl_schedule_free(&sched);
    return rc;
}
