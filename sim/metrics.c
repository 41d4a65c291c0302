/* bubble = (T - ideal)/T and its relatives; delay, versions and activations per stage.
 * The header has the conventions. */
#include "sim/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sim/metrics_parts.h"

/* Largest window of whole periods (pl_schedule_period) that starts after the first
 * period; it ends a period before the run when the run is long enough, so that the
 * drain (backwards alone, faster than the steady state) stays outside. */
static void steady_window(const struct pl_schedule *sched, struct pl_metrics *out)
{
    const struct pl_shape *shape = &sched->shape;
    int64_t period = pl_schedule_period(sched->type, shape->P, shape->m);
    out->steady_from = 0;
    out->steady_to = shape->updates;
    if (!sched->type->async) return;
    int64_t last =
        shape->updates >= 3 * period ? shape->updates - period : shape->updates;
    out->steady_from = period < shape->updates ? period : shape->updates;
    out->steady_to = out->steady_from;
    if (last > period) out->steady_to += (last - period) / period * period;
}

static void count_slot(const struct pl_timeline *t, int64_t i, int64_t *active,
                       int64_t *peak)
{
    if (t->kind[i] == PL_OP_F) {
        if (++*active > *peak) *peak = *active;
    } else if (t->kind[i] == PL_OP_BW || t->kind[i] == PL_OP_W) {
        --*active;
    }
}

void pl_metrics_walk(const struct pl_timeline *t, int64_t i, struct walk *walk,
                     int64_t *active, struct pl_metrics *out)
{
    struct walk *w = &walk[t->device[i]];
    struct pl_stage_metrics *stage = &out->stage[t->chunk[i]];
    pl_tick took = t->end[i] - t->start[i];
    if (!w->begun) w->first = t->start[i];
    if (w->begun && t->start[i] < w->last) { /* second of a pair */
        stage->busy_s += pl_seconds(took) / 2;
        took = 0;
    } else {
        bool pair = i + 1 < t->n_ops && took > 0 && t->device[i + 1] == t->device[i] &&
                    t->start[i + 1] == t->start[i];
        stage->busy_s += pl_seconds(took) / (pair ? 2 : 1);
    }
    w->begun = true;
    w->last = t->end[i];
    w->busy += took;
    count_slot(t, i, &w->active, &w->peak);
    count_slot(t, i, &active[t->chunk[i]], &stage->peak_activations);
}

static void walk_rows(const struct pl_timeline *t, struct walk *walk, pl_tick *step_end,
                      struct pl_metrics *out)
{
    int64_t *active = PL_NEW(out->stages, int64_t);
    for (int64_t i = 0; i < t->n_ops; i++) {
        pl_metrics_walk(t, i, walk, active, out);
        if (t->kind[i] == PL_OP_U && t->chunk[i] == 0)
            step_end[t->micro[i]] = t->end[i];
    }
    free(active);
}

/* Most versions alive after an update of the window, per stage: version v <= n lives
 * after U_n while a backward that reads it is still to come; the new one is live. */
static void count_versions(const struct pl_timeline *t, const struct pl_versions *v,
                           struct pl_metrics *out)
{
    int64_t updates = v->updates, n_cells = out->stages * (updates + 1);
    /* ended[s][v]: updates done on the stage when the last backward of v ends */
    int64_t *done = PL_NEW(out->stages, int64_t), *ended = PL_NEW(n_cells, int64_t);
    int64_t *alive = PL_NEW(updates + 1, int64_t);
    for (int64_t i = 0; i < t->n_ops; i++) {
        int s = t->chunk[i];
        if (t->kind[i] == PL_OP_U) done[s]++;
        if (t->kind[i] != PL_OP_BW && t->kind[i] != PL_OP_W) continue;
        int64_t version = v->backward[s % v->stages * v->n_micro + t->micro[i]];
        ended[s * (updates + 1) + version] = done[s];
    }
    for (int s = 0; s < out->stages; s++) {
        for (int64_t n = 0; n <= updates; n++) alive[n] = 0;
        for (int64_t k = 0; k < updates; k++) { /* alive after U_n for k <= n < ended */
            int64_t end = ended[s * (updates + 1) + k];
            if (end <= k) continue;
            alive[k]++;
            alive[end]--;
        }
        int64_t now = 0, most = 0;
        for (int64_t n = 0; n < updates; n++) {
            now += alive[n];
            if (n < out->steady_from || n >= out->steady_to) continue;
            if (now + 1 > most) most = now + 1;
        }
        out->stage[s].weight_versions = most;
    }
    free(done);
    free(ended);
    free(alive);
}

/* First microbatch whose delay is steady. */
static int64_t delays_from(const struct pl_versions *v, const struct pl_metrics *out)
{
    int64_t from = out->steady_from;
    if (v->startup > from)
        from = v->startup < out->steady_to ? v->startup : out->steady_to;
    return from * v->m;
}

static void measure_delay(const struct pl_versions *v, struct pl_metrics *out)
{
    for (int s = 0; s < out->stages; s++) {
        struct pl_stage_metrics *stage = &out->stage[s];
        int c = stage->chunk;
        int64_t from = delays_from(v, out), to = out->steady_to * v->m;
        int64_t least = INT64_MAX, most = 0, sum = 0, startup = 0;
        for (int64_t i = 0; i < to; i++) {
            int64_t tau = pl_versions_tau(v, c, i);
            if (i < from) {
                startup += tau;
                continue;
            }
            sum += tau;
            if (tau < least) least = tau;
            if (tau > most) most = tau;
        }
        bool any = to > from;
        stage->tau_min = any ? (double)least : NAN;
        stage->tau_max = any ? (double)most : NAN;
        stage->tau_mean = any ? (double)sum / (double)(to - from) : NAN;
        stage->tau_startup = from ? (double)startup / (double)from : 0;
    }
}

static void count_delays(const struct pl_versions *v, struct pl_metrics *out)
{
    int64_t from = delays_from(v, out), to = out->steady_to * v->m, most = -1;
    for (int c = 0; c < v->stages; c++)
        for (int64_t i = from; i < to; i++)
            if (pl_versions_tau(v, c, i) > most) most = pl_versions_tau(v, c, i);
    out->chunks = v->stages;
    out->tau_bins = most + 1;
    out->tau_count = PL_NEW(out->chunks * out->tau_bins, int64_t);
    for (int c = 0; c < v->stages; c++)
        for (int64_t i = from; i < to; i++)
            out->tau_count[c * out->tau_bins + pl_versions_tau(v, c, i)]++;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

void pl_metrics_time(const struct pl_schedule *sched, const struct walk *walk,
                     pl_tick window_begin, pl_tick window_end, struct pl_metrics *out)
{
    int64_t updates = sched->shape.updates, from = out->steady_from,
            to = out->steady_to;
    pl_tick end = 0, busiest = 0, span = 0;
    for (int d = 0; d < out->devices; d++) {
        const struct walk *w = &walk[d];
        if (w->last > end) end = w->last;
        if (w->busy > busiest) busiest = w->busy;
        if (w->last - w->first > span) span = w->last - w->first;
        out->device[d] = (struct pl_device_metrics){pl_seconds(w->busy), w->peak};
    }
    out->makespan_s = pl_seconds(end);
    out->ideal_s = pl_seconds(busiest);
    if (!sched->type->async)
        out->step_s = out->makespan_s / (double)updates;
    else if (to > from)
        out->step_s = pl_seconds(window_end - window_begin) / (double)(to - from);
    else
        out->step_s = NAN;
    /* the window has the drain in it, whose updates follow faster than a device works
     */
    if (sched->type->async && updates < 3 * from &&
        out->step_s < out->ideal_s / (double)updates * (1 - 1e-12))
        out->step_s = NAN;
    out->bubble = ratio(pl_seconds(end - busiest), out->makespan_s);
    out->bubble_over_ideal = ratio(pl_seconds(end - busiest), out->ideal_s);
    out->bubble_parallelogram = ratio(pl_seconds(span - busiest), pl_seconds(span));
    out->bubble_steady = 1 - ratio(out->ideal_s / (double)updates, out->step_s);
    if (fabs(out->bubble_steady) < 1e-15) out->bubble_steady = 0; /* rounding */
}

void pl_metrics_prepare(const struct pl_schedule *sched, struct pl_metrics *out)
{
    const struct pl_layout *layout = &sched->layout;
    *out = (struct pl_metrics){.stages = layout->C * layout->R, .devices = layout->P};
    out->stage = PL_NEW(out->stages, struct pl_stage_metrics);
    out->device = PL_NEW(out->devices, struct pl_device_metrics);
    for (int q = 0; q < out->stages; q++)
        out->stage[q] = (struct pl_stage_metrics){.device = layout->device[q],
                                                  .chunk = q % layout->C,
                                                  .replica = q / layout->C};
    steady_window(sched, out);
}

void pl_metrics_compute(const struct pl_timeline *timeline,
                        const struct pl_schedule *sched,
                        const struct pl_versions *versions, struct pl_metrics *out)
{
    pl_metrics_prepare(sched, out);
    struct walk *walk = PL_NEW(out->devices, struct walk);
    pl_tick *step_end = PL_NEW(sched->shape.updates, pl_tick);
    walk_rows(timeline, walk, step_end, out);
    int64_t from = out->steady_from, to = out->steady_to;
    pl_metrics_time(sched, walk, from ? step_end[from - 1] : 0,
                    to ? step_end[to - 1] : 0, out);
    measure_delay(versions, out);
    count_delays(versions, out);
    count_versions(timeline, versions, out);
    free(walk);
    free(step_end);
}

void pl_metrics_free(struct pl_metrics *metrics)
{
    if (!metrics) return;
    free(metrics->stage);
    free(metrics->device);
    free(metrics->tau_count);
    *metrics = (struct pl_metrics){0};
}
