#include "sim/simulate.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/static.h"

/* More devices than this and the sweep's rows fall out of the caches: measured, 1F1B of
 * P = 1024 and m = 8192 takes it 440 ns an op and the engine 240, of P = 256 130 and
 * 140.
 */
enum { SWEEP_DEVICES = 256 };

/* The sweep where it applies: equal rows, sooner. */
static int execute(struct pl_schedule *schedule, const struct pl_cost *cost,
                   bool barrier, struct pl_timeline *out)
{
    if (schedule->shape.free_order)
        return pl_engine_run_free(schedule, cost, barrier, out);
    if (schedule->layout.P <= SWEEP_DEVICES && pl_static_can(schedule, cost))
        return pl_static_run(schedule, cost, barrier, out);
    return pl_engine_run(schedule, cost, barrier, out);
}

int pl_simulate(const struct pl_schedule_type *type, const struct pl_shape *shape,
                const struct pl_cost *cost, bool barrier, struct pl_simulation *out)
{
    struct pl_simulation made = {.recorded = shape->updates};
    int rc = pl_schedule_new(type, shape, cost, &made.schedule);
    if (!rc) rc = pl_schedule_check(&made.schedule);
    if (!rc) rc = execute(&made.schedule, cost, barrier, &made.timeline);
    if (!rc) rc = pl_timeline_check(&made.timeline, &made.schedule, cost);
    if (!rc)
        rc = pl_versions_from_timeline(&made.timeline, &made.schedule, &made.versions);
    if (rc) {
        pl_simulation_free(&made);
        return rc;
    }
    pl_metrics_compute(&made.timeline, &made.schedule, &made.versions, &made.metrics);
    *out = made;
    return rc;
}

int pl_simulate_long(const struct pl_schedule_type *type, const struct pl_shape *shape,
                     const struct pl_cost *cost, bool barrier,
                     const struct pl_stream_sink *sink, struct pl_simulation *out)
{
    struct pl_simulation made = {.recorded = 0};
    int rc = pl_stream_run(type, shape, cost, barrier, sink, &made.metrics);
    if (rc) return rc;
    made.schedule = (struct pl_schedule){.type = type, .shape = *shape};
    made.timeline.shape = *shape;
    pl_layout_new(type, shape, &made.schedule.layout);
    *out = made;
    return PL_OK;
}

static pl_tick end_of_update(const struct pl_timeline *t, int64_t n)
{
    pl_tick end = 0;
    for (int64_t i = 0; i < t->n_ops; i++)
        if (t->kind[i] == PL_OP_U && t->micro[i] == n && t->end[i] > end)
            end = t->end[i];
    return end;
}

/* Begun before the end of the window's last update; that may take no time itself. */
static bool in_window(pl_tick start, pl_tick end, pl_tick until)
{
    return start < until || end <= until;
}

static void keep_ops(struct pl_timeline *t, pl_tick until)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_ops; i++) {
        if (!in_window(t->start[i], t->end[i], until)) continue;
        t->kind[n] = t->kind[i];
        t->device[n] = t->device[i];
        t->chunk[n] = t->chunk[i];
        t->micro[n] = t->micro[i];
        t->start[n] = t->start[i];
        t->end[n++] = t->end[i];
    }
    t->n_ops = n;
    t->kind = pl_grow(t->kind, (size_t)n, sizeof *t->kind);
    t->device = pl_grow(t->device, (size_t)n, sizeof *t->device);
    t->chunk = pl_grow(t->chunk, (size_t)n, sizeof *t->chunk);
    t->micro = pl_grow(t->micro, (size_t)n, sizeof *t->micro);
    t->start = pl_grow(t->start, (size_t)n, sizeof *t->start);
    t->end = pl_grow(t->end, (size_t)n, sizeof *t->end);
}

static void keep_messages(struct pl_timeline *t, pl_tick until)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_messages; i++) {
        if (!in_window(t->sent[i], t->arrived[i], until)) continue;
        t->src[n] = t->src[i];
        t->dst[n] = t->dst[i];
        t->msg_chunk[n] = t->msg_chunk[i];
        t->msg_micro[n] = t->msg_micro[i];
        t->msg_kind[n] = t->msg_kind[i];
        t->sent[n] = t->sent[i];
        t->arrived[n++] = t->arrived[i];
    }
    t->n_messages = n;
    t->src = pl_grow(t->src, (size_t)n, sizeof *t->src);
    t->dst = pl_grow(t->dst, (size_t)n, sizeof *t->dst);
    t->msg_chunk = pl_grow(t->msg_chunk, (size_t)n, sizeof *t->msg_chunk);
    t->msg_micro = pl_grow(t->msg_micro, (size_t)n, sizeof *t->msg_micro);
    t->msg_kind = pl_grow(t->msg_kind, (size_t)n, sizeof *t->msg_kind);
    t->sent = pl_grow(t->sent, (size_t)n, sizeof *t->sent);
    t->arrived = pl_grow(t->arrived, (size_t)n, sizeof *t->arrived);
}

void pl_simulation_trim(struct pl_simulation *simulation, int64_t updates)
{
    if (updates >= simulation->schedule.shape.updates) return;
    pl_tick until = end_of_update(&simulation->timeline, updates - 1);
    keep_ops(&simulation->timeline, until);
    keep_messages(&simulation->timeline, until);
    simulation->recorded = updates;
    free(simulation->schedule.ops);
    simulation->schedule.ops = NULL;
    simulation->schedule.n_ops = 0;
}

void pl_simulation_free(struct pl_simulation *simulation)
{
    if (!simulation) return;
    pl_metrics_free(&simulation->metrics);
    pl_versions_free(&simulation->versions);
    pl_timeline_free(&simulation->timeline);
    pl_schedule_free(&simulation->schedule);
}
