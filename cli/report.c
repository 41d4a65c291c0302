#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/stats.h"

int pl_label_root(const char *label)
{
    const char *x = strstr(label, "-x");
    if (!x || !x[2] || strspn(x + 2, "0123456789.") != strlen(x + 2))
        return (int)strlen(label);
    return (int)(x - label);
}

/* Seed-mean validation curve of an arm against simulated time; returns the points. */
static int mean_curve(const struct pl_run_result *results, int n_seeds, double *time_s,
                      double *loss)
{
    int64_t n = results[0].n_evals;
    for (int s = 1; s < n_seeds; s++)
        if (results[s].n_evals < n) n = results[s].n_evals;
    for (int64_t i = 0; i < n; i++) {
        time_s[i] = results[0].evals[i].time_s;
        loss[i] = 0;
        for (int s = 0; s < n_seeds; s++) loss[i] += results[s].evals[i].loss / n_seeds;
    }
    return (int)n;
}

static void fill_losses(struct pl_row_report *row, const struct pl_run_result *results,
                        int n_seeds)
{
    double y = 0;
    row->bits = row->load_max = row->balance = row->z = 0;
    for (int s = 0; s < n_seeds; s++) {
        const struct pl_run_result *r = &results[s];
        const struct pl_eval *last = r->n_evals ? &r->evals[r->n_evals - 1] : NULL;
        bool bad = r->status == PL_RUN_DIVERGED;
        row->diverged += bad;
        row->losses[s] = bad ? INFINITY : last ? last->loss : NAN;
        y += bad ? INFINITY : last ? last->loss_y : NAN;
        row->bits += bad || !last ? NAN : last->bits_per_byte / n_seeds;
        row->load_max += bad || !last ? NAN : last->load_max / n_seeds;
        row->balance += r->n_rows ? r->rows[r->n_rows - 1].balance_loss / n_seeds : NAN;
        row->z += r->n_rows ? r->rows[r->n_rows - 1].z_loss / n_seeds : NAN;
    }
    row->loss_y = y / n_seeds;
    row->mean = pl_mean(row->losses, n_seeds);
    row->sd = row->diverged ? NAN : pl_sd(row->losses, n_seeds);
}

static void compare(const struct pl_report *report, const struct pl_run_result *results,
                    struct pl_row_report *row)
{
    int n_seeds = report->experiment->n_seeds;
    const struct pl_row_report *base = &report->rows[row->baseline];
    double difference[PL_MAX_SEEDS];
    for (int s = 0; s < n_seeds; s++) difference[s] = row->losses[s] - base->losses[s];
    row->gap = pl_mean(difference, n_seeds);
    row->gap_half = row->diverged || base->diverged ? NAN : pl_t95(difference, n_seeds);
    row->noise = row->arm == row->baseline && n_seeds > 1 ? sqrt(2) * row->sd : NAN;

    const struct pl_run_result *mine = &results[row->arm * n_seeds];
    const struct pl_run_result *theirs = &results[row->baseline * n_seeds];
    int64_t room = mine->n_evals + theirs->n_evals + 1;
    double *t = PL_NEW(4 * room, double), *l = t + room, *t0 = l + room,
           *l0 = t0 + room;
    int n = mean_curve(mine, n_seeds, t, l), n0 = mean_curve(theirs, n_seeds, t0, l0);
    row->reach_s = NAN;
    row->equal_s = fmin(row->end_s, base->end_s);
    row->equal_loss = row->equal_baseline = NAN;
    if (n && n0) {
        if (isfinite(base->mean))
            row->reach_s = row->arm == row->baseline ? row->end_s
                                                     : pl_crossing(t, l, n, base->mean);
        row->equal_loss =
            row->diverged ? INFINITY : pl_interpolate(t, l, n, row->equal_s);
        row->equal_baseline =
            base->diverged ? INFINITY : pl_interpolate(t0, l0, n0, row->equal_s);
    }
    free(t);
}

static bool corrected(const struct pl_arm *arm)
{
    return strcmp(pl_config_text(arm->config, "corrector.name"), "none") != 0;
}

/* Share of the gap that a corrected arm closes, against the same pipeline uncorrected.
 */
static void recover(const struct pl_report *report, struct pl_row_report *row)
{
    const struct pl_arm *arms = report->experiment->arms, *arm = &arms[row->arm];
    row->recovered = NAN;
    if (!corrected(arm) || /* a share is between runs on the same tokens */
        arm->versions.updates != arms[row->baseline].versions.updates)
        return;
    for (int i = 0; i < report->n; i++) {
        const struct pl_row_report *plain = &report->rows[i];
        const struct pl_arm *other = &arms[plain->arm];
        if (strcmp(plain->group, row->group) || corrected(other) ||
            i == row->baseline ||
            strcmp(pl_config_text(other->config, "schedule.name"),
                   pl_config_text(arm->config, "schedule.name")) ||
            other->versions.updates != arm->versions.updates)
            continue;
        if (isfinite(plain->gap) && plain->gap > 0 && isfinite(row->gap))
            row->recovered = 1 - row->gap / plain->gap;
        return;
    }
}

static char *group_name(const struct pl_config *config, int arm)
{
    char *name = pl_strdup("");
    for (int axis = 0; axis + 1 < pl_config_n_axes(config); axis++) {
        const char *label =
            pl_config_label(config, axis, pl_config_arm_label(config, arm, axis));
        char *longer = *name ? pl_printf("%s+%s", name, label) : pl_strdup(label);
        free(name);
        name = longer;
    }
    return name;
}

static int fail_baseline(const struct pl_report *report, const char *group,
                         const char *wanted)
{
    const char **labels = PL_NEW(report->n + 1, const char *);
    int n = 0;
    for (int i = 0; i < report->n; i++)
        if (!strcmp(report->rows[i].group, group)) labels[n++] = report->rows[i].label;
    int rc = pl_fail_unknown(PL_ECONFIG,
                             pl_config_where(report->experiment->config, "baseline"),
                             "baseline", wanted, labels);
    free(labels);
    return rc;
}

static int find_baselines(struct pl_report *report)
{
    const struct pl_config *config = report->experiment->config;
    const char *wanted = pl_config_text(config, "baseline");
    for (int i = 0; i < report->n; i++) {
        struct pl_row_report *row = &report->rows[i];
        row->baseline = -1;
        for (int j = 0; j < report->n && row->baseline < 0; j++)
            if (!strcmp(report->rows[j].group, row->group) &&
                (!*wanted || !strcmp(report->rows[j].label, wanted)))
                row->baseline = j;
        if (row->baseline < 0) return fail_baseline(report, row->group, wanted);
    }
    return 0;
}

static void fill_row(struct pl_row_report *row, const struct pl_experiment *e, int i,
                     const char *group)
{
    const struct pl_config *config = e->config;
    const struct pl_arm *arm = &e->arms[i];
    int last = pl_config_n_axes(config) - 1;
    *row = (struct pl_row_report){
        .arm = i,
        .group = group,
        .label = last < 0
                     ? arm->name
                     : pl_config_label(config, last,
                                       pl_config_arm_label(config, arm->number, last)),
        .end_s = arm->end_s,
        .step_s = arm->sim.metrics.step_s,
        .bubble_steady = arm->sim.metrics.bubble_steady,
        .tau_first = arm->sim.metrics.stage[0].tau_mean,
        .tau_last = arm->sim.metrics.stage[arm->sim.metrics.stages - 1].tau_mean,
    };
}

int pl_report_new(const struct pl_experiment *e, const struct pl_run_result *results,
                  struct pl_report *out)
{
    if (e->n_seeds > PL_MAX_SEEDS)
        return pl_fail(PL_ECONFIG, "%d seeds, at most %d are supported", e->n_seeds,
                       PL_MAX_SEEDS);
    struct pl_report r = {e, e->n_arms, NULL, NULL};
    r.rows = PL_NEW(r.n, struct pl_row_report);
    r.names = PL_NEW(r.n, char *);
    for (int i = 0; i < r.n; i++) {
        r.names[i] = group_name(e->config, e->arms[i].number);
        fill_row(&r.rows[i], e, i, r.names[i]);
        fill_losses(&r.rows[i], &results[i * e->n_seeds], e->n_seeds);
    }
    int rc = find_baselines(&r);
    if (rc) {
        pl_report_free(&r);
        return rc;
    }
    for (int i = 0; i < r.n; i++) compare(&r, results, &r.rows[i]);
    for (int i = 0; i < r.n; i++) recover(&r, &r.rows[i]);
    *out = r;
    return 0;
}

void pl_report_free(struct pl_report *report)
{
    for (int i = 0; report->names && i < report->n; i++) free(report->names[i]);
    free(report->names);
    free(report->rows);
    *report = (struct pl_report){0};
}

double pl_report_annealed(const struct pl_report *report, int row, int *n,
                          double *limit_s)
{
    const struct pl_row_report *me = &report->rows[row];
    double target = report->rows[me->baseline].mean, before_s = NAN, before = NAN;
    int root = pl_label_root(me->label);
    double reached = NAN;
    *n = 0;
    *limit_s = 0;
    for (;;) { /* arms of the root in order of their end, each once */
        const struct pl_row_report *next = NULL;
        for (int i = 0; i < report->n; i++) {
            const struct pl_row_report *r = &report->rows[i];
            if (strcmp(r->group, me->group) || pl_label_root(r->label) != root ||
                strncmp(r->label, me->label, (size_t)root) || r->end_s <= *limit_s)
                continue;
            if (!next || r->end_s < next->end_s) next = r;
        }
        if (!next) return isfinite(target) ? reached : NAN;
        *limit_s = next->end_s;
        ++*n;
        if (isnan(reached) && next->mean <= target)
            reached = isnan(before) || before == next->mean
                          ? next->end_s
                          : before_s + (next->end_s - before_s) * (before - target) /
                                           (before - next->mean);
        before_s = next->end_s;
        before = next->mean;
    }
}
