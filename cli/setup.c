#include "cli/setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/custom.h"
#include "sim/estimate.h"
#include "sim/segments.h"

int pl_setup_microbatches(const struct pl_config *config,
                          const struct pl_schedule_type *type, int P)
{
    int m = (int)pl_config_int(config, "schedule.microbatches");
    if (!m) m = type->default_m;
    return m ? m : type->async ? P : 2 * P;
}

/* A number of the table where the configuration gives none; an error where it gives
 * another. */
static int agree(const struct pl_config *config, const char *key, int given,
                 int in_file, const struct pl_custom *custom, int *out)
{
    if (given && given != in_file)
        return pl_fail(PL_ECONFIG, "%s: %s is %d, but %s has %d",
                       pl_config_where(config, key), key, given, custom->path, in_file);
    *out = in_file;
    return PL_OK;
}

int pl_setup_blame(const struct pl_config *config, const char *key, int rc)
{
    if (rc != PL_EINPUT) return rc;
    return pl_fail(rc, "%s: %s: %s", pl_config_where(config, key), key,
                   pl_error_text());
}

/* schedule.file: P, m and v follow from it. */
static int read_custom(const struct pl_config *config,
                       const struct pl_schedule_type *type, struct pl_shape *shape,
                       int *m)
{
    const char *path = pl_config_text(config, "schedule.file");
    if (!*path) return PL_OK; /* refused when the type needs one */
    if (!type->from_file && !*pl_config_text(config, "segments"))
        return pl_fail(PL_ECONFIG,
                       "%s: schedule.file is given beside schedule %s, expected custom",
                       pl_config_where(config, "schedule.file"), type->name);
    if (!type->from_file) return PL_OK;
    struct pl_custom *custom;
    int rc = pl_setup_blame(config, "schedule.file", pl_custom_read(path, &custom));
    if (rc) return rc;
    int P = pl_config_given(config, "schedule.stages") ? shape->P : 0;
    if (!*m) *m = (int)pl_config_int(config, "schedule.microbatches");
    rc = agree(config, "schedule.stages", P, custom->P, custom, &shape->P);
    if (!rc) rc = agree(config, "schedule.microbatches", *m, custom->m, custom, m);
    if (!rc)
        rc = agree(config, "schedule.chunks", shape->v, custom->C / custom->P, custom,
                   &shape->v);
    if (rc)
        pl_custom_free(custom);
    else
        shape->custom = custom;
    return rc;
}

/* The keys; resolved but for the room that the ops take. */
static int read_shape(const struct pl_config *config,
                      const struct pl_schedule_type *type, int m, int64_t updates,
                      struct pl_shape *shape)
{
    struct pl_shape made = {.P = (int)pl_config_int(config, "schedule.stages"),
                            .v = (int)pl_config_int(config, "schedule.chunks")};
    int rc = read_custom(config, type, &made, &m);
    if (rc) return rc;
    made.m = m ? m : pl_setup_microbatches(config, type, made.P);
    made.updates = updates ? updates : pl_config_int(config, "schedule.updates");
    if (!made.updates) made.updates = pl_schedule_default_updates(type, made.P, made.m);
    made.free_order = !strcmp(pl_config_text(config, "schedule.order"), "free");
    made.group = (int)pl_config_int(config, "schedule.group");
    made.limit = (int)pl_config_int(config, "schedule.max_activations");
    made.released = pl_config_real(config, "schedule.released");
    rc = pl_shape_resolve_stream(type, &made);
    if (rc)
        pl_shape_free(&made);
    else
        *shape = made;
    return rc;
}

int pl_setup_shape(const struct pl_config *config, const struct pl_schedule_type *type,
                   int m, int64_t updates, struct pl_shape *shape)
{
    struct pl_shape made;
    int rc = read_shape(config, type, m, updates, &made);
    if (!rc && (rc = pl_shape_fits(&made))) pl_shape_free(&made);
    if (!rc) *shape = made;
    return rc;
}

int pl_setup_barrier(const struct pl_config *config,
                     const struct pl_schedule_type *type, bool *barrier)
{
    const char *scope = pl_config_text(config, "clip.scope");
    bool global = !strcmp(scope, "global");
    if (global && !type->global_version)
        return pl_fail(PL_EUNSUP,
                       "%s: clip.scope global makes all stages update together, %s "
                       "lets each update on its own; use stage",
                       pl_config_where(config, "clip.scope"), type->name);
    bool by_default = type->global_version && !type->post_validated;
    *barrier = pl_config_real(config, "clip.norm") > 0 &&
               (global || (!strcmp(scope, "auto") && by_default));
    return 0;
}

/* A run too long for memory: its numbers alone, with progress when it takes long. */
struct long_run {
    double done, total, began;
    bool shown;
};

static int note_rows(void *context, const struct pl_timeline *rows)
{
    struct long_run *run = context;
    run->done += (double)rows->n_ops;
    if (!run->shown && pl_clock() - run->began > 1) {
        pl_progress_begin("sim", run->total, "ops");
        run->shown = true;
    }
    if (run->shown) pl_progress_update(run->done, NULL);
    return PL_OK; /* a signal ends the process: there is nothing to save */
}

static int simulate_long(const struct pl_schedule_type *type,
                         const struct pl_shape *shape, struct pl_setup *made)
{
    double instances = (double)shape->P * shape->v; /* of one replica */
    struct long_run run = {.total = instances * (2.0 * shape->m + 1) *
                                    (double)shape->updates,
                           .began = pl_clock()};
    struct pl_stream_sink sink = {note_rows, &run};
    int rc =
        pl_simulate_long(type, shape, &made->cost, made->barrier, &sink, &made->sim);
    if (run.shown) pl_progress_end();
    return rc;
}

bool pl_setup_is_long(const struct pl_config *config)
{
    const struct pl_schedule_type *type =
        pl_schedule_find(pl_config_text(config, "schedule.name"));
    struct pl_shape shape;
    if (!pl_stream_can(type) || read_shape(config, type, 0, 0, &shape)) return false;
    bool fits = !pl_shape_fits(&shape);
    pl_shape_free(&shape);
    return !fits;
}

/* Of the model's activations the part that B frees, on the chunk that frees least. */
static double released_by_backward(const struct pl_estimate *e)
{
    double least = 1;
    for (int c = 0; c < e->chunks; c++)
        if (e->bytes[c].activation)
            least = fmin(least,
                         1 - (double)e->bytes[c].kept / (double)e->bytes[c].activation);
    return fmax(least, 0);
}

static int simulate_one(const struct pl_config *config, struct pl_setup *made)
{
    const struct pl_schedule_type *type =
        pl_schedule_find(pl_config_text(config, "schedule.name"));
    struct pl_shape shape;
    int rc = read_shape(config, type, 0, 0, &shape);
    if (rc) return rc;
    int fits = pl_shape_fits(&shape);
    rc = pl_setup_barrier(config, type, &made->barrier);
    if (!rc) rc = pl_setup_cost(config, type, &shape, &made->cost, &made->estimate);
    if (!rc && made->estimate && !pl_config_given(config, "schedule.released"))
        shape.released = released_by_backward(made->estimate);
    if (!rc && fits && (made->estimate || !pl_stream_can(type)))
        rc = pl_shape_fits(&shape); /* the memory of devices needs all rows */
    if (!rc && fits)
        rc = simulate_long(type, &shape, made);
    else if (!rc)
        rc = pl_simulate(type, &shape, &made->cost, made->barrier, &made->sim);
    pl_shape_free(&shape);
    return rc;
}

/* The shapes of all segments, with the m of the one that is shown; the whole run must
 * fit in memory too. */
static int segment_shapes(const struct pl_config *config, const struct pl_setup *made,
                          struct pl_shape *shapes)
{
    int shown = pl_segments_shown(made->segments, made->n_segments), rc = 0;
    int m = pl_setup_microbatches(config, made->segments[shown].type,
                                  (int)pl_config_int(config, "schedule.stages"));
    int64_t updates = 0;
    for (int i = 0; i < made->n_segments && !rc; i++) { /* a file's m is everybody's */
        struct pl_shape own;
        if (!made->segments[i].type->from_file) continue;
        rc = pl_setup_shape(config, made->segments[i].type, 0, 1, &own);
        if (rc) return rc;
        m = own.m;
        pl_shape_free(&own);
    }
    for (int i = 0; i < made->n_segments && !rc; i++) {
        rc = pl_setup_shape(config, made->segments[i].type, m,
                            made->segments[i].updates, &shapes[i]);
        if (!rc && __builtin_add_overflow(updates, made->segments[i].updates, &updates))
            rc = pl_fail(PL_ECONFIG, "%s: more updates than fit in an int64",
                         pl_config_where(config, "segments"));
    }
    if (rc) return rc;
    struct pl_shape all = shapes[0];
    all.updates = updates;
    return pl_shape_resolve(made->segments[0].type, &all);
}

static int simulate_segments(const struct pl_config *config, struct pl_setup *made)
{
    const struct pl_schedule_type *types[PL_MAX_SEGMENTS],
        *uneven = pl_segments_uneven(made->segments, made->n_segments);
    struct pl_shape shapes[PL_MAX_SEGMENTS] = {{0}};
    for (int i = 0; i < made->n_segments; i++) types[i] = made->segments[i].type;
    int rc = segment_shapes(config, made, shapes);
    if (!rc) rc = pl_setup_barrier(config, uneven, &made->barrier);
    if (!rc)
        rc = pl_setup_cost(config, types[0], &shapes[0], &made->cost, &made->estimate);
    if (!rc && made->cost.jitter)
        rc = pl_fail(PL_EUNSUP,
                     "jitter.* is given beside segments, which are simulated one by "
                     "one: draws and outages do not carry over; leave out one of the "
                     "two");
    if (!rc)
        rc = pl_simulate_segments(made->n_segments, types, shapes, &made->cost,
                                  made->barrier, made->parts, &made->sim);
    for (int i = 0; i < made->n_segments; i++) pl_shape_free(&shapes[i]);
    return rc;
}

/* A predictor holds the predicted weights beside the live ones. */
static void add_prediction(struct pl_setup *made)
{
    if (!made->sim.schedule.type->horizon) return;
    for (int c = 0; c < made->sim.schedule.layout.C; c++)
        made->estimate->bytes[c].corrector += made->estimate->bytes[c].weight;
}

int pl_setup_simulate(const struct pl_config *config, struct pl_setup *out)
{
    struct pl_setup made = {.text = pl_strdup(pl_config_text(config, "segments"))};
    int rc = pl_segments_parse(config, made.text, made.segments, &made.n_segments);
    if (!rc) rc = (made.n_segments ? simulate_segments : simulate_one)(config, &made);
    if (rc) made.n_segments = 0; /* failed: no parts */
    if (!rc && made.estimate) add_prediction(&made);
    if (!rc && made.estimate)
        rc = pl_memory_compute(&made.sim.schedule, &made.sim.timeline,
                               &made.sim.versions, made.estimate->bytes, &made.memory);
    if (rc)
        pl_setup_free(&made);
    else
        *out = made;
    return rc;
}

void pl_setup_free(struct pl_setup *setup)
{
    for (int i = 0; i < setup->n_segments; i++) pl_simulation_free(&setup->parts[i]);
    pl_memory_free(&setup->memory);
    pl_estimate_free(setup->estimate);
    free(setup->estimate);
    pl_simulation_free(&setup->sim);
    pl_cost_free(&setup->cost);
    free(setup->text);
    *setup = (struct pl_setup){.n_segments = 0};
}
