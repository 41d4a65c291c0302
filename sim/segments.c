/* A timeline, a version map and an issue order behind another one. */
#include "sim/segments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/schedules/emit.h"

const struct pl_schedule_type pl_schedule_mixed = {
    .name = "segments",
    .summary = "several schedules, a drain at each switch",
    .source = "the key segments",
    .reads = pl_reads_live,
};

/* Layouts and m of what was there and of what follows, of the named schedule. */
static int check_layouts(const struct pl_layout *x, int m_x, const struct pl_layout *y,
                         int m_y, const char *name)
{
    if (x->P != y->P || m_x != m_y)
        return pl_fail(PL_ECONFIG,
                       "segments of one run need equal P and m: %d x %d, then %d x %d",
                       x->P, m_x, y->P, m_y);
    if (x->C != y->C)
        return pl_fail(
            PL_ECONFIG,
            "segments of one run need equally many model chunks: %d, then %d "
            "of %s (schedule.chunks)",
            x->C, y->C, name);
    size_t bytes = (size_t)x->C * (size_t)x->R * sizeof *x->device;
    if (x->R != y->R || memcmp(x->device, y->device, bytes))
        return pl_fail(PL_ECONFIG,
                       "segments of one run need the same chunks on each device: %s "
                       "places them otherwise",
                       name);
    return PL_OK;
}

static void shift(int64_t *column, int64_t n, int64_t by)
{
    for (int64_t i = 0; i < n; i++) column[i] += by;
}

/* Rows of b behind those of a; both have the same columns. */
static void *join(void *a, int64_t n_a, const void *b, int64_t n_b, size_t size)
{
    char *out = pl_grow(a, (size_t)(n_a + n_b), size);
    if (n_b) memcpy(out + (size_t)n_a * size, b, (size_t)n_b * size);
    return out;
}

#define JOIN(column, n) \
    a->column = join(a->column, a->n, b->column, b->n, sizeof *a->column)

static void append_ops(struct pl_timeline *a, const struct pl_timeline *b, pl_tick end)
{
    int64_t micros = a->shape.m * a->shape.updates, n = a->n_ops;
    JOIN(kind, n_ops);
    JOIN(device, n_ops);
    JOIN(chunk, n_ops);
    JOIN(micro, n_ops);
    JOIN(start, n_ops);
    JOIN(end, n_ops);
    a->n_ops += b->n_ops;
    shift(a->start + n, b->n_ops, end);
    shift(a->end + n, b->n_ops, end);
    for (int64_t i = n; i < a->n_ops; i++)
        a->micro[i] += a->kind[i] == PL_OP_U ? a->shape.updates : micros;
}

static void append_messages(struct pl_timeline *a, const struct pl_timeline *b,
                            pl_tick end)
{
    int64_t n = a->n_messages;
    JOIN(src, n_messages);
    JOIN(dst, n_messages);
    JOIN(msg_chunk, n_messages);
    JOIN(msg_micro, n_messages);
    JOIN(msg_kind, n_messages);
    JOIN(sent, n_messages);
    JOIN(arrived, n_messages);
    a->n_messages += b->n_messages;
    shift(a->sent + n, b->n_messages, end);
    shift(a->arrived + n, b->n_messages, end);
    shift(a->msg_micro + n, b->n_messages, a->shape.m * a->shape.updates);
}

static void append_schedule(struct pl_schedule *a, const struct pl_schedule *b)
{
    int64_t micros = a->shape.m * a->shape.updates, n = 0;
    struct pl_op *ops = PL_NEW(a->n_ops + b->n_ops, struct pl_op);
    for (int d = 0; d < a->layout.P; d++) {
        int64_t n_a = a->first[d + 1] - a->first[d], begin = n;
        memcpy(ops + n, a->ops + a->first[d], (size_t)n_a * sizeof *ops);
        n += n_a;
        for (int64_t i = b->first[d]; i < b->first[d + 1]; i++) {
            ops[n] = b->ops[i];
            ops[n++].micro += micros;
        }
        a->first[d] = begin;
    }
    a->first[a->layout.P] = n;
    free(a->ops);
    a->ops = ops;
    a->n_ops = n;
    a->shape.updates += b->shape.updates;
}

static pl_tick end_of(const struct pl_timeline *t)
{
    pl_tick end = 0;
    for (int64_t i = 0; i < t->n_ops; i++)
        if (t->end[i] > end) end = t->end[i];
    return end;
}

/* An empty run on the layout of another. */
static void begin(struct pl_simulation *all, const struct pl_simulation *next)
{
    const struct pl_layout *from = &next->schedule.layout;
    struct pl_schedule *s = &all->schedule;
    *s = (struct pl_schedule){&pl_schedule_mixed, next->schedule.shape, *from, 0, 0, 0};
    int n = from->C * from->R;
    s->layout.device = PL_NEW(n, int);
    memcpy(s->layout.device, from->device, (size_t)n * sizeof *from->device);
    s->first = PL_NEW(from->P + 1, int64_t);
    s->ops = PL_NEW(1, struct pl_op);
    s->shape.updates = 0;
    s->shape.custom = NULL; /* its ops are those of one segment */
    all->timeline.shape = s->shape;
}

int pl_simulation_append(struct pl_simulation *all, const struct pl_simulation *next)
{
    if (!all->schedule.type) begin(all, next);
    const struct pl_schedule *a = &all->schedule, *b = &next->schedule;
    int rc =
        check_layouts(&a->layout, a->shape.m, &b->layout, b->shape.m, b->type->name);
    if (rc) return rc;
    pl_tick end = end_of(&all->timeline), sum;
    if (__builtin_add_overflow(end, end_of(&next->timeline), &sum))
        return pl_fail(PL_ECONFIG,
                       "simulated time of the segments exceeds 106 days (int64 "
                       "picoseconds): run fewer updates");
    rc = pl_versions_append(&all->versions, &next->versions);
    assert(!rc); /* checked above */
    append_ops(&all->timeline, &next->timeline, end);
    append_messages(&all->timeline, &next->timeline, end);
    append_schedule(&all->schedule, &next->schedule);
    all->timeline.shape = all->schedule.shape;
    all->recorded = all->schedule.shape.updates;
    return PL_OK;
}

static int check_types(int n, const struct pl_schedule_type *const *types,
                       const struct pl_shape *shapes)
{
    struct pl_layout first, other;
    int rc = PL_OK;
    pl_layout_new(types[0], &shapes[0], &first);
    for (int i = 1; i < n && !rc; i++) {
        pl_layout_new(types[i], &shapes[i], &other);
        rc = check_layouts(&first, shapes[0].m, &other, shapes[i].m, types[i]->name);
        pl_layout_free(&other);
    }
    pl_layout_free(&first);
    return rc;
}

int pl_simulate_segments(int n, const struct pl_schedule_type *const *types,
                         const struct pl_shape *shapes, const struct pl_cost *cost,
                         bool barrier, struct pl_simulation *parts,
                         struct pl_simulation *all)
{
    struct pl_simulation made = {.recorded = 0};
    int rc = check_types(n, types, shapes), done = 0;
    for (; done < n && !rc; done++) {
        parts[done] = (struct pl_simulation){.recorded = 0};
        rc = pl_simulate(types[done], &shapes[done], cost, barrier, &parts[done]);
        if (!rc) rc = pl_simulation_append(&made, &parts[done]);
    }
    if (!rc) rc = pl_schedule_check(&made.schedule);
    if (!rc) rc = pl_timeline_check(&made.timeline, &made.schedule, cost);
    if (rc) {
        pl_simulation_free(&made);
        for (int i = 0; i < done; i++) pl_simulation_free(&parts[i]);
        return rc;
    }
    pl_metrics_compute(&made.timeline, &made.schedule, &made.versions, &made.metrics);
    *all = made;
    return PL_OK;
}
