/* The metrics of a stream. Versions and delays need a few periods of the schedule:
 *   forward  version read by the last microbatches of each chunk, by microbatch modulo
 *            the window, with the microbatch it belongs to
 *   ended    per version and instance, updates done when its last backward ended, by
 *            version modulo the window; a version that leaves it is counted
 * The header of metrics.h has the conventions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/metrics_parts.h"
#include "sim/stream.h"

struct seen {
    int64_t micro, version; /* micro: -1 none yet */
};

/* Versions of one instance. */
struct line {
    int64_t done, counted; /* U; updates whose versions are counted */
    int64_t alive, most;
    int64_t group, group_version; /* PL_READS_GROUP */
    int64_t *ended, *change;      /* [window] */
};

/* Delays of a model chunk. */
struct delay {
    int64_t least, most, sum, startup, bins;
    int64_t *count; /* [bins] */
};

struct pl_metrics_stream {
    const struct pl_schedule *sched;
    struct pl_metrics out;
    struct walk *walk;
    int64_t *active, micro_mask, mask;
    pl_tick window_begin, window_end;
    struct seen *forward; /* [C * (micro_mask + 1)] */
    struct line *line;    /* [instances] */
    struct delay *delay;  /* [C] */
};

static int64_t power_above(int64_t n)
{
    int64_t size = 64;
    while (size < n) size *= 2;
    return size;
}

int pl_metrics_fit(const struct pl_schedule *sched)
{
    const struct pl_shape *shape = &sched->shape;
    const struct pl_layout *at = &sched->layout;
    int64_t period = pl_schedule_period(sched->type, shape->P, shape->m);
    double micros = (double)power_above(4 * ((int64_t)at->C + shape->m)),
           window = (double)power_above(8 * period + 64);
    char what[120];
    snprintf(what, sizeof what, "P = %d and m = %d, even without keeping the ops,",
             shape->P, shape->m);
    return pl_memory_check(
        at->C * (micros * sizeof(struct seen) + 2 * window * at->R * sizeof(int64_t)),
        what);
}

struct pl_metrics_stream *pl_metrics_begin(const struct pl_schedule *sched)
{
    struct pl_metrics_stream *s = PL_NEW(1, struct pl_metrics_stream);
    const struct pl_shape *shape = &sched->shape;
    int C = sched->layout.C;
    int64_t period = pl_schedule_period(sched->type, shape->P, shape->m);
    int64_t window = power_above(8 * period + 64);
    int64_t micros = power_above(4 * ((int64_t)C + shape->m));
    s->sched = sched;
    pl_metrics_prepare(sched, &s->out);
    s->walk = PL_NEW(s->out.devices, struct walk);
    s->active = PL_NEW(s->out.stages, int64_t);
    s->mask = window - 1;
    s->micro_mask = micros - 1;
    s->forward = PL_NEW(C * micros, struct seen);
    for (int64_t i = 0; i < C * micros; i++) s->forward[i].micro = -1;
    s->line = PL_NEW(s->out.stages, struct line);
    for (int q = 0; q < s->out.stages; q++) {
        s->line[q].group = -1;
        s->line[q].ended = PL_NEW(window, int64_t);
        s->line[q].change = PL_NEW(window, int64_t);
    }
    s->delay = PL_NEW(C, struct delay);
    for (int c = 0; c < C; c++) s->delay[c].least = INT64_MAX;
    return s;
}

static struct seen *forward_of(struct pl_metrics_stream *s, int chunk, int64_t micro)
{
    return &s->forward[chunk * (s->micro_mask + 1) + (micro & s->micro_mask)];
}

static int too_late(const struct pl_metrics_stream *s)
{
    return pl_fail(PL_EUNSUP,
                   "%s: a delay is too long for a run of so many updates: run fewer",
                   s->sched->type->name);
}

/* The version that a forward reads, as pl_versions_from_timeline has it. */
static int read_version(struct pl_metrics_stream *s, int q, int64_t micro,
                        int64_t *version)
{
    const struct pl_shape *shape = &s->sched->shape;
    int chunk = q % s->sched->layout.C;
    struct line *line = &s->line[q];
    int64_t group = micro / shape->m;
    *version = s->sched->type->reads(shape, chunk, group);
    if (*version == PL_READS_LIVE || (*version == PL_READS_FIRST && chunk == 0)) {
        *version = line->done;
    } else if (*version == PL_READS_FIRST) {
        const struct seen *first = forward_of(s, 0, micro);
        if (first->micro != micro) return too_late(s);
        *version = first->version;
    } else if (*version == PL_READS_GROUP) {
        if (micro % shape->m == 0) {
            line->group = group;
            line->group_version = line->done;
        }
        if (line->group != group) return too_late(s);
        *version = line->group_version;
    }
    if (*version > line->done)
        return pl_fail(
            PL_ECHECK, "stage %d: F %lld reads version %lld, only %lld is written",
            chunk, (long long)micro, (long long)*version, (long long)line->done);
    return PL_OK;
}

static void count_delay(struct pl_metrics_stream *s, int chunk, int64_t group,
                        int64_t tau)
{
    struct delay *d = &s->delay[chunk];
    if (group < s->out.steady_from) d->startup += tau;
    if (group < s->out.steady_from || group >= s->out.steady_to) return;
    d->sum += tau;
    if (tau < d->least) d->least = tau;
    if (tau > d->most) d->most = tau;
    if (tau >= d->bins) {
        d->count = pl_grow(d->count, (size_t)tau + 1, sizeof *d->count);
        for (int64_t i = d->bins; i <= tau; i++) d->count[i] = 0;
        d->bins = tau + 1;
    }
    d->count[tau]++;
}

static int note_forward(struct pl_metrics_stream *s, int q, int64_t micro)
{
    int chunk = q % s->sched->layout.C;
    int64_t version, group = micro / s->sched->shape.m;
    int rc = read_version(s, q, micro, &version);
    if (rc) return rc;
    *forward_of(s, chunk, micro) = (struct seen){micro, version};
    count_delay(s, chunk, group, group - version);
    return PL_OK;
}

/* The last backward of a microbatch that reads a version: as far as is known. */
static int note_backward(struct pl_metrics_stream *s, int q, int64_t micro, int kind)
{
    struct line *line = &s->line[q];
    struct seen *read = forward_of(s, q % s->sched->layout.C, micro);
    if (read->micro != micro) return too_late(s);
    if (s->sched->type->nostash && kind != PL_OP_W) read->version = line->done;
    if (kind == PL_OP_B) return PL_OK;
    if (read->version < line->counted) return too_late(s);
    line->ended[read->version & s->mask] = line->done;
    return PL_OK;
}

/* Alive after U_n, n the oldest in the window: version v <= n until it has ended. */
static void count_oldest(struct pl_metrics_stream *s, struct line *line)
{
    int64_t n = line->counted++, at = n & s->mask, end = line->ended[at];
    if (end > n) {
        line->alive++;
        line->change[end & s->mask]--;
    }
    line->alive += line->change[at];
    line->change[at] = 0;
    line->ended[at] = 0;
    if (n >= s->out.steady_from && n < s->out.steady_to && line->alive + 1 > line->most)
        line->most = line->alive + 1;
}

static void note_update(struct pl_metrics_stream *s, int q, int64_t number, pl_tick end)
{
    struct line *line = &s->line[q];
    line->done++;
    if (line->done - line->counted > s->mask) count_oldest(s, line);
    if (q) return;
    if (number == s->out.steady_from - 1) s->window_begin = end;
    if (number == s->out.steady_to - 1) s->window_end = end;
}

int pl_metrics_rows(struct pl_metrics_stream *s, const struct pl_timeline *t)
{
    int rc = PL_OK;
    for (int64_t i = 0; i < t->n_ops && !rc; i++) {
        int q = t->chunk[i], kind = t->kind[i];
        pl_metrics_walk(t, i, s->walk, s->active, &s->out);
        if (kind == PL_OP_F)
            rc = note_forward(s, q, t->micro[i]);
        else if (kind == PL_OP_U)
            note_update(s, q, t->micro[i], t->end[i]);
        else
            rc = note_backward(s, q, t->micro[i], kind);
    }
    return rc;
}

static void finish_delays(struct pl_metrics_stream *s)
{
    struct pl_metrics *out = &s->out;
    int64_t m = s->sched->shape.m, from = out->steady_from * m;
    double n = (double)(out->steady_to * m - from);
    out->chunks = s->sched->layout.C;
    for (int c = 0; c < out->chunks; c++)
        if (s->delay[c].bins > out->tau_bins) out->tau_bins = s->delay[c].bins;
    out->tau_count = PL_NEW(out->chunks * out->tau_bins, int64_t);
    for (int c = 0; c < out->chunks; c++)
        for (int64_t i = 0; i < s->delay[c].bins; i++)
            out->tau_count[c * out->tau_bins + i] = s->delay[c].count[i];
    for (int q = 0; q < out->stages; q++) {
        struct pl_stage_metrics *stage = &out->stage[q];
        const struct delay *d = &s->delay[stage->chunk];
        bool any = out->steady_to > out->steady_from;
        stage->tau_min = any ? (double)d->least : NAN;
        stage->tau_max = any ? (double)d->most : NAN;
        stage->tau_mean = any ? (double)d->sum / n : NAN;
        stage->tau_startup = from ? (double)d->startup / (double)from : 0;
        struct line *line = &s->line[q];
        while (line->counted < line->done) count_oldest(s, line);
        stage->weight_versions = line->most;
    }
}

void pl_metrics_end(struct pl_metrics_stream *s, struct pl_metrics *out)
{
    if (out) {
        pl_metrics_time(s->sched, s->walk, s->window_begin, s->window_end, &s->out);
        finish_delays(s);
        *out = s->out;
    } else {
        pl_metrics_free(&s->out);
    }
    for (int q = 0; q < s->sched->layout.C * s->sched->layout.R; q++) {
        free(s->line[q].ended);
        free(s->line[q].change);
    }
    for (int c = 0; c < s->sched->layout.C; c++) free(s->delay[c].count);
    free(s->walk);
    free(s->active);
    free(s->forward);
    free(s->line);
    free(s->delay);
    free(s);
}
