/* The table of schedules, shapes with their guards, layouts, and generation. */
#include "sim/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/custom.h"
#include "sim/schedules/emit.h"

const char *const pl_op_names[PL_N_OP] = {"F", "B", "W", "BW", "U"};

/* clang-format off */
const struct pl_schedule_type *const pl_schedule_types[] = {
    &pl_schedule_gpipe,
    &pl_schedule_1f1b,
    &pl_schedule_pipedream,
    &pl_schedule_2bw,
    &pl_schedule_interleaved,
    &pl_schedule_zb_h1,
    &pl_schedule_zb_h2,
    &pl_schedule_zb_1p,
    &pl_schedule_zb_2p,
    &pl_schedule_zb_v,
    &pl_schedule_v_half,
    &pl_schedule_v_min,
    &pl_schedule_dualpipe,
    &pl_schedule_dualpipev,
    &pl_schedule_chimera,
    &pl_schedule_hanayo,
    &pl_schedule_pipedream_vertical,
    &pl_schedule_wpipe,
    &pl_schedule_pipemare,
    &pl_schedule_spectrain,
    &pl_schedule_xpipe,
    &pl_schedule_paci,
    &pl_schedule_amdp,
    &pl_schedule_custom,
    NULL};
/* clang-format on */

enum { MAX_OPS = 200000000 };
enum { OP_BYTES = 100 }; /* schedule, timeline and version map while simulating */

const char *const *pl_schedule_names(void)
{
    enum { N = sizeof pl_schedule_types / sizeof *pl_schedule_types };
    static const char *names[N];
    for (int i = 0; i < N - 1; i++) names[i] = pl_schedule_types[i]->name;
    return names;
}

const struct pl_schedule_type *pl_schedule_find(const char *name)
{
    for (int i = 0; pl_schedule_types[i]; i++)
        if (!strcmp(pl_schedule_types[i]->name, name)) return pl_schedule_types[i];
    return NULL;
}

int64_t pl_schedule_period(const struct pl_schedule_type *type, int P, int m)
{
    int64_t taken = (int64_t)(type->slots ? 2 : 1) * P;
    return (taken + m - 1) / m;
}

int64_t pl_schedule_default_updates(const struct pl_schedule_type *type, int P, int m)
{
    if (!type->async) return 1;
    int64_t start = (2 * (int64_t)P + m - 1) / m + 8,
            three = 3 * pl_schedule_period(type, P, m);
    return start > three ? start : three;
}

static int check_counts(const struct pl_shape *shape)
{
    if (shape->P < 1)
        return pl_fail(PL_ECONFIG, "schedule.stages is %d, expected at least 1",
                       shape->P);
    if (shape->m < 1)
        return pl_fail(PL_ECONFIG, "schedule.microbatches is %d, expected at least 1",
                       shape->m);
    if (shape->updates < 1)
        return pl_fail(PL_ECONFIG, "schedule.updates is %lld, expected at least 1",
                       (long long)shape->updates);
    return PL_OK;
}

int pl_shape_fits(const struct pl_shape *shape)
{
    double ops = (2.0 * shape->m + 1) * shape->P * shape->v * (double)shape->updates;
    if (ops > MAX_OPS)
        return pl_fail(
            PL_ECONFIG,
            "P = %d, m = %d and %lld updates make %.0f ops, at most %d fit in "
            "memory: run fewer updates and extrapolate from the step time",
            shape->P, shape->m, (long long)shape->updates, ops, MAX_OPS);
    char what[120];
    snprintf(what, sizeof what, "a simulation of P = %d, m = %d and %lld updates",
             shape->P, shape->m, (long long)shape->updates);
    return pl_memory_check(ops * OP_BYTES, what);
}

int pl_shape_resolve_stream(const struct pl_schedule_type *type, struct pl_shape *shape)
{
    int own = type->default_v ? type->default_v : 1;
    int rc = check_counts(shape);
    if (rc) return rc;
    if (shape->v == 0) shape->v = own;
    if (shape->v < 1 || (shape->v != own && !type->any_v))
        return pl_fail(PL_EUNSUP,
                       "schedule.chunks is %d, but %s has %d model chunk%s a device",
                       shape->v, type->name, own, own == 1 ? "" : "s");
    return type->check ? type->check(shape) : PL_OK;
}

int pl_shape_resolve(const struct pl_schedule_type *type, struct pl_shape *shape)
{
    struct pl_shape made = *shape;
    int rc = pl_shape_resolve_stream(type, &made);
    if (!rc) rc = pl_shape_fits(&made);
    if (!rc) *shape = made;
    return rc;
}

void pl_shape_free(struct pl_shape *shape)
{
    pl_custom_free(shape->custom);
    shape->custom = NULL;
}

void pl_layout_new(const struct pl_schedule_type *type, const struct pl_shape *shape,
                   struct pl_layout *out)
{
    int R = type->replicas ? type->replicas : 1, C = shape->P * shape->v;
    if (R == PL_REPLICAS_HALF) R = shape->P / 2;
    *out = (struct pl_layout){shape->P, C, R, PL_NEW((size_t)R * (size_t)C, int)};
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            out->device[r * C + c] =
                type->place ? type->place(shape, c, r) : c % shape->P;
}

void pl_layout_free(struct pl_layout *layout)
{
    if (!layout) return;
    free(layout->device);
    *layout = (struct pl_layout){0};
}

int pl_schedule_new(const struct pl_schedule_type *type, const struct pl_shape *shape,
                    const struct pl_cost *cost, struct pl_schedule *out)
{
    struct pl_schedule made = {.type = type, .shape = *shape};
    int rc = pl_shape_resolve(type, &made.shape);
    if (rc) return rc;
    pl_custom_hold(made.shape.custom);
    pl_layout_new(type, &made.shape, &made.layout);
    rc = type->emit(cost, &made);
    if (rc) {
        pl_schedule_free(&made);
        return rc;
    }
    *out = made;
    return PL_OK;
}

void pl_schedule_free(struct pl_schedule *schedule)
{
    if (!schedule) return;
    pl_layout_free(&schedule->layout);
    pl_shape_free(&schedule->shape);
    free(schedule->first);
    free(schedule->ops);
    *schedule = (struct pl_schedule){0};
}
