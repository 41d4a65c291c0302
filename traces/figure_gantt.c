/* Gantt out of a trace. */
#include "traces/draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "traces/ops.h"

enum { DEFAULT_WIDTH = 1600, MAX_LEVELS = 6 };

const char *const pl_shade_names[] = {"auto", "update", "chunk", "tau", NULL};

struct gantt_drawing {
    struct pl_gantt gantt;
    struct pl_gantt_look look;
    int8_t *kind;
    int32_t *small;  /* device, chunk, lane, lanes, level */
    int64_t *column; /* micro, start, end, tau, owner */
    int64_t *update;
    char *title, *level_text;
};

static void draw_gantt(FILE *out, const void *what)
{
    const struct gantt_drawing *d = what;
    pl_draw_gantt(out, &d->gantt, &d->look, d->title);
}

static char *gantt_title(const struct pl_trace *t, const char *arm)
{
    char *path = pl_printf("/arms/%s", arm);
    const char *schedule = pl_trace_get_attr_text(t, path, "schedule");
    int64_t P, m;
    double bubble;
    char *shape = pl_trace_get_attr_int(t, path, "P", &P) &&
                          pl_trace_get_attr_int(t, path, "m", &m)
                      ? pl_printf(", P = %" PRId64 ", m = %" PRId64, P, m)
                      : pl_strdup("");
    char *idle = pl_trace_get_attr_real(t, path, "bubble", &bubble)
                     ? pl_printf(", bubble %.1f %% = (T - ideal)/T", 100 * bubble)
                     : pl_strdup("");
    bool same = !schedule || !strcmp(schedule, arm);
    char *title = same ? pl_printf("%s%s%s", arm, shape, idle)
                       : pl_printf("%s: %s%s%s", arm, schedule, shape, idle);
    free(path);
    free(shape);
    free(idle);
    return title;
}

static void fill_gantt(const struct pl_ops *ops, int64_t updates,
                       struct gantt_drawing *d)
{
    int64_t until = pl_ops_until(ops, updates), n = 0, most = ops->n;
    int32_t *device = PL_NEW(5 * most, int32_t), *chunk = device + most;
    int64_t *micro = PL_NEW(5 * most, int64_t), *start = micro + most;
    int64_t *end = micro + 2 * most, *tau = micro + 3 * most, *owner = micro + 4 * most;
    d->kind = PL_NEW(most, int8_t);
    d->update = PL_NEW(most, int64_t);
    for (int64_t i = 0; i < ops->n; i++) {
        if (!pl_ops_within(ops, i, until)) continue;
        int64_t version = pl_ops_version(ops, i);
        d->kind[n] = (int8_t)ops->kind[i];
        d->update[n] = pl_ops_update(ops, i);
        device[n] = (int32_t)ops->device[i];
        chunk[n] = (int32_t)ops->chunk[i];
        micro[n] = ops->micro[i];
        start[n] = ops->start[i];
        end[n] = ops->end[i];
        tau[n] = version < 0 ? -1 : ops->update[version] - ops->forward[version];
        owner[n] = device[n];
        n++;
    }
    int m = ops->m > 0 && ops->m < 1 << 30 ? (int)ops->m : 0;
    d->small = device;
    d->column = micro;
    d->gantt = (struct pl_gantt){ops->devices, m,     n,   d->kind, device,
                                 micro,        start, end, chunk,   ops->model_chunks};
    int32_t *lane = device + 2 * most, *lanes = device + 3 * most;
    pl_lanes(n, owner, start, end, lane, lanes);
    d->look.tau = tau;
    d->look.lane = lane;
    d->look.lanes = lanes;
    d->look.level = device + 4 * most;
}

static int shade_by_tau(struct gantt_drawing *d, int32_t *level)
{
    int64_t most = -1;
    for (int64_t i = 0; i < d->gantt.n; i++)
        if (d->look.tau[i] > most) most = d->look.tau[i];
    if (most < 0)
        return pl_fail(PL_EUNSUP, "shade tau: the trace has no version map of the arm");
    d->look.levels = most < MAX_LEVELS ? (int)most + 1 : MAX_LEVELS;
    for (int64_t i = 0; i < d->gantt.n; i++) {
        int64_t tau = d->look.tau[i] < 0 ? 0 : d->look.tau[i];
        level[i] = (int32_t)(most < MAX_LEVELS ? tau : tau * (MAX_LEVELS - 1) / most);
    }
    d->level_text =
        pl_printf("(dark to light: delay tau 0 to %" PRId64 " updates)", most);
    return 0;
}

/* Bidirectional pipelines: one chunk of each replica on a device. */
static char *chunk_text(const struct pl_gantt *gantt, int chunks)
{
    int32_t last = 0;
    for (int64_t i = 0; i < gantt->n; i++)
        if (gantt->chunk[i] > last) last = gantt->chunk[i];
    int replicas = last / gantt->chunks + 1;
    return replicas > 1 && replicas == chunks
               ? pl_strdup("(dark to light: replicas of the model)")
               : pl_printf("(dark to light: the %d chunks of a device)", chunks);
}

static int shade(struct gantt_drawing *d, enum pl_shade by)
{
    int32_t *level = (int32_t *)d->look.level;
    int chunks;
    int32_t *rank =
        pl_chunk_ranks(d->gantt.n, d->gantt.device, d->gantt.chunk, &chunks);
    bool odd = false;
    for (int64_t i = 0; i < d->gantt.n; i++)
        odd = odd || (d->kind[i] != PL_KIND_U && d->update[i] % 2);
    if (chunks < 2) d->gantt.chunk = NULL; /* nothing to tell */
    d->look.levels = 1;
    int status = 0;
    if (by == PL_SHADE_TAU) {
        status = shade_by_tau(d, level);
    } else if (by == PL_SHADE_CHUNK || (by == PL_SHADE_AUTO && chunks > 1)) {
        memcpy(level, rank, (size_t)d->gantt.n * sizeof *level);
        d->look.levels = chunks;
        if (chunks > 1) d->level_text = chunk_text(&d->gantt, chunks);
    } else if (odd) {
        for (int64_t i = 0; i < d->gantt.n; i++) level[i] = d->update[i] % 2 != 0;
        d->look.levels = 2;
        d->level_text = pl_strdup("(lighter: odd updates)");
    }
    d->look.level_text = d->level_text;
    free(rank);
    return status;
}

int pl_figure_gantt_with(const struct pl_trace *t, const char *arm,
                         const struct pl_gantt_options *options, const char *path)
{
    struct pl_ops ops;
    int status = pl_ops_load(t, arm, &ops);
    if (status) return status;
    struct gantt_drawing d = {0};
    fill_gantt(&ops, options->updates, &d);
    d.look.width = options->width > 0 ? options->width : DEFAULT_WIDTH;
    d.title = gantt_title(t, ops.arm);
    status = shade(&d, options->shade);
    if (!status) status = pl_draw_save(path, draw_gantt, &d);
    free(d.title);
    free(d.level_text);
    free(d.update);
    free(d.kind);
    free(d.small);
    free(d.column);
    pl_ops_free(&ops);
    return status;
}

int pl_figure_gantt(const struct pl_trace *t, const char *arm, const char *path)
{
    struct pl_gantt_options options = {0};
    return pl_figure_gantt_with(t, arm, &options, path);
}
