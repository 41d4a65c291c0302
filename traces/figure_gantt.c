/* Gantt out of a trace. */
#include "traces/draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "traces/schema.h"

struct gantt_drawing {
    struct pl_gantt gantt;
    int8_t *kind;
    int32_t *device;
    int64_t *tau;
    char *title;
};

static void draw_gantt(FILE *out, const void *what)
{
    const struct gantt_drawing *d = what;
    pl_draw_gantt(out, &d->gantt, d->tau, d->title);
}

static int check_arm(const struct pl_trace *t, const char *arm)
{
    const char **arms;
    int n = pl_trace_arms(t, &arms), status = 0, found = 0;
    for (int i = 0; i < n; i++) found = found || !strcmp(arms[i], arm);
    const char **names = PL_NEW(n + 1, const char *);
    memcpy(names, arms, (size_t)n * sizeof *arms);
    if (!n)
        status = pl_fail(PL_EINPUT, "the trace holds no arms");
    else if (!found)
        status = pl_fail_unknown(PL_EINPUT, "trace", "arm", arm, names);
    free(names);
    free(arms);
    return status;
}

static char *gantt_title(const struct pl_trace *t, const char *arm, const char *path)
{
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
    free(shape);
    free(idle);
    return title;
}

struct timeline {
    int64_t n;
    const int64_t *kind, *device, *chunk, *micro, *start, *end;
};

/* tau of each kept op from the version map; -1 where the map has no entry. */
static int64_t *find_tau(const struct pl_trace *t, const char *arm,
                         const struct timeline *l, const int64_t *kept, int64_t n_kept)
{
    int64_t *tau = PL_NEW(n_kept, int64_t), n, most = -1;
    char *path = pl_printf("/arms/%s/versions", arm);
    const int64_t *stage = pl_trace_get_i64(t, path, "stage", &n);
    const int64_t *micro = pl_trace_get_i64(t, path, "micro", NULL);
    const int64_t *update = pl_trace_get_i64(t, path, "update", NULL);
    const int64_t *forward = pl_trace_get_i64(t, path, "forward", NULL);
    free(path);
    for (int64_t k = 0; k < n_kept; k++) {
        tau[k] = -1;
        if (l->micro[kept[k]] > most) most = l->micro[kept[k]];
    }
    /* map[stage * (most + 1) + micro] = row + 1, for stages that are devices or chunks
     */
    if (!stage || most < 0 || most > n + n_kept) return tau;
    int64_t stages = 0;
    for (int64_t i = 0; i < n; i++)
        if (stage[i] >= stages && stage[i] < n) stages = stage[i] + 1;
    if ((double)stages * (double)(most + 1) > 1e8) return tau;
    int64_t *map = PL_NEW(stages * (most + 1), int64_t);
    for (int64_t i = 0; i < n; i++)
        if (stage[i] >= 0 && stage[i] < stages && micro[i] >= 0 && micro[i] <= most)
            map[stage[i] * (most + 1) + micro[i]] = i + 1;
    for (int64_t k = 0; k < n_kept; k++) {
        int64_t op = kept[k], chunk = l->chunk[op];
        if (l->kind[op] == PL_KIND_U || chunk < 0 || chunk >= stages ||
            l->micro[op] < 0)
            continue;
        int64_t row = map[chunk * (most + 1) + l->micro[op]];
        if (row) tau[k] = update[row - 1] - forward[row - 1];
    }
    free(map);
    return tau;
}

static bool sane(const struct timeline *l, int64_t i)
{
    return l->device[i] >= 0 && l->device[i] < 100000 && l->start[i] >= 0 &&
           l->end[i] >= l->start[i];
}

static int load_timeline(const struct pl_trace *t, const char *arm, struct timeline *l)
{
    char *path = pl_printf("/arms/%s/timeline", arm);
    l->kind = pl_trace_get_i64(t, path, "kind", &l->n);
    l->device = pl_trace_get_i64(t, path, "device", NULL);
    l->chunk = pl_trace_get_i64(t, path, "chunk", NULL);
    l->micro = pl_trace_get_i64(t, path, "micro", NULL);
    l->start = pl_trace_get_i64(t, path, "start", NULL);
    l->end = pl_trace_get_i64(t, path, "end", NULL);
    int status = 0;
    if (!l->kind || !l->n) status = pl_fail(PL_EINPUT, "the trace has no %s", path);
    for (int64_t i = 0; !status && i < l->n; i++)
        if (!sane(l, i))
            status = pl_fail(PL_EINPUT, "%s: row %" PRId64 " is not an op", path, i);
    free(path);
    return status;
}

static void fill_gantt(const struct pl_trace *t, const char *arm, int64_t updates,
                       const struct timeline *l, struct gantt_drawing *d)
{
    int64_t until = INT64_MAX;
    for (int64_t i = 0; updates > 0 && i < l->n; i++)
        if (l->kind[i] == PL_KIND_U && l->micro[i] == updates - 1 &&
            (until == INT64_MAX || l->end[i] > until))
            until = l->end[i];
    int64_t *kept = PL_NEW(l->n, int64_t), *columns = PL_NEW(3 * l->n, int64_t), n = 0;
    int64_t *micro = columns, *start = columns + l->n, *end = columns + 2 * l->n;
    d->kind = PL_NEW(l->n, int8_t);
    d->device = PL_NEW(l->n, int32_t);
    for (int64_t i = 0; i < l->n; i++) {
        if (l->start[i] >= until && !(l->kind[i] == PL_KIND_U && l->end[i] == until))
            continue;
        d->kind[n] = (int8_t)l->kind[i];
        d->device[n] = (int32_t)l->device[i];
        micro[n] = l->micro[i];
        start[n] = l->start[i];
        end[n] = l->end[i];
        if (d->device[n] >= d->gantt.devices) d->gantt.devices = d->device[n] + 1;
        kept[n++] = i;
    }
    d->gantt.n = n;
    d->gantt.kind = d->kind;
    d->gantt.device = d->device;
    d->gantt.micro = micro;
    d->gantt.start = start;
    d->gantt.end = end;
    d->tau = find_tau(t, arm, l, kept, n);
    free(kept);
}

int pl_figure_gantt_window(const struct pl_trace *t, const char *arm, int64_t updates,
                           const char *path)
{
    struct timeline l;
    int status = check_arm(t, arm);
    if (!status) status = load_timeline(t, arm, &l);
    if (status) return status;
    struct gantt_drawing d = {0};
    fill_gantt(t, arm, updates, &l, &d);
    char *group = pl_printf("/arms/%s", arm);
    int64_t m;
    if (pl_trace_get_attr_int(t, group, "m", &m) && m > 0 && m < 1 << 30)
        d.gantt.m = (int)m;
    d.title = gantt_title(t, arm, group);
    status = pl_draw_save(path, draw_gantt, &d);
    free(group);
    free(d.title);
    free(d.tau);
    free(d.kind);
    free(d.device);
    free((void *)d.gantt.micro);
    return status;
}

int pl_figure_gantt(const struct pl_trace *t, const char *arm, const char *path)
{
    return pl_figure_gantt_window(t, arm, 0, path);
}
