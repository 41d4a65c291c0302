/* Loss curves out of a trace: per arm the mean and the range over its seeds, at the
 * updates that every seed validated. */
#include "traces/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

struct curves_drawing {
    int n;
    struct pl_curve *curves;
    char *title;
};

static void draw_curves(FILE *out, const void *what)
{
    const struct curves_drawing *d = what;
    pl_draw_curves(out, d->n, d->curves, d->title);
}

/* The first label of an arm's name decides its colour, the rest its dash. */
static void set_keys(const char *arm, struct pl_curve *c)
{
    const char *plus = strchr(arm, '+');
    c->name = pl_strdup(arm);
    c->colour_key = pl_printf("%.*s", (int)strcspn(arm, "+"), arm);
    c->dash_key = pl_strdup(plus ? plus + 1 : "");
}

/* Row of update in a seed's evaluations, or -1. */
static int64_t find_row(const int64_t *update, int64_t n, int64_t wanted)
{
    for (int64_t i = 0; i < n; i++)
        if (update[i] == wanted) return i;
    return -1;
}

/* Sum and range of the loss at one update over all seeds; false when one lacks it. */
static bool gather(const struct pl_trace *t, int n_seeds, const char *const *seeds,
                   int64_t update, double *mean, double *lo, double *hi)
{
    *mean = 0;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int s = 0; s < n_seeds; s++) {
        int64_t n;
        const int64_t *updates = pl_trace_get_i64(t, seeds[s], "update", &n);
        const double *loss = pl_trace_get_f64(t, seeds[s], "loss", NULL);
        int64_t row = find_row(updates, n, update);
        if (row < 0 || !isfinite(loss[row])) return false;
        *mean += loss[row] / n_seeds;
        *lo = fmin(*lo, loss[row]);
        *hi = fmax(*hi, loss[row]);
    }
    return true;
}

static bool any_diverged(const struct pl_trace *t, int n_seeds,
                         const char *const *seeds)
{
    bool diverged = false;
    for (int s = 0; s < n_seeds; s++) {
        char *path =
            pl_printf("%.*s", (int)(strrchr(seeds[s], '/') - seeds[s]), seeds[s]);
        const char *status = pl_trace_get_attr_text(t, path, "status");
        diverged = diverged || (status && !strcmp(status, "diverged"));
        free(path);
    }
    return diverged;
}

static void fill_curve(const struct pl_trace *t, int n_seeds, const char *const *seeds,
                       struct pl_curve *c)
{
    int64_t n;
    const int64_t *updates = pl_trace_get_i64(t, seeds[0], "update", &n);
    const double *time_s = pl_trace_get_f64(t, seeds[0], "time_s", NULL);
    double *columns = PL_NEW(5 * n, double);
    double *update = columns, *time = columns + n, *mean = columns + 2 * n;
    double *lo = columns + 3 * n, *hi = columns + 4 * n;
    int k = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!gather(t, n_seeds, seeds, updates[i], &mean[k], &lo[k], &hi[k])) continue;
        update[k] = (double)updates[i];
        time[k++] = time_s[i];
    }
    c->n = k;
    c->update = update;
    c->time_s = time;
    c->mean = mean;
    c->lo = lo;
    c->hi = hi;
    c->diverged = any_diverged(t, n_seeds, seeds);
}

/* Evaluation tables of one arm; array freed by the caller. */
static int seeds_of(const struct pl_trace *t, const char *arm, const char ***paths)
{
    char *prefix = pl_printf("/arms/%s/", arm);
    int n = pl_trace_tables(t, "/arms/<arm>/seeds/<seed>/evals", paths), kept = 0;
    for (int i = 0; i < n; i++)
        if (!strncmp((*paths)[i], prefix, strlen(prefix)))
            (*paths)[kept++] = (*paths)[i];
    free(prefix);
    return kept;
}

static void free_drawing(struct curves_drawing *d)
{
    for (int a = 0; a < d->n; a++) {
        free((void *)d->curves[a].update); /* the block of all five columns */
        free((void *)d->curves[a].name);
        free((void *)d->curves[a].colour_key);
        free((void *)d->curves[a].dash_key);
    }
    free(d->curves);
    free(d->title);
}

int pl_figure_curves(const struct pl_trace *t, const char *path)
{
    const char **arms;
    int n_arms = pl_trace_arms(t, &arms);
    struct curves_drawing d = {.curves = PL_NEW(n_arms, struct pl_curve)};
    for (int a = 0; a < n_arms; a++) {
        const char **seeds;
        int n = seeds_of(t, arms[a], &seeds);
        if (n) {
            set_keys(arms[a], &d.curves[d.n]);
            fill_curve(t, n, seeds, &d.curves[d.n++]);
        }
        free(seeds);
    }
    const char *title = pl_trace_get_attr_text(t, "/", "title");
    d.title = pl_strdup(title && *title ? title : "Validation loss");
    int status =
        d.n ? pl_draw_save(path, draw_curves, &d)
            : pl_fail(PL_EINPUT, "the trace holds no evaluations: was anything "
                                 "trained?");
    free_drawing(&d);
    free(arms);
    return status;
}
