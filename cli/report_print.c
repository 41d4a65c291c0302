/* The report as text, JSON and as the trace's /table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/report.h"

static const struct pl_arm *arm_of(const struct pl_report *r,
                                   const struct pl_row_report *w)
{
    return &r->experiment->arms[w->arm];
}

static void print_tau(const struct pl_row_report *row, char *text, size_t n)
{
    if (isnan(row->tau_first) || isnan(row->tau_last))
        snprintf(text, n, "-");
    else if (row->tau_first == row->tau_last)
        snprintf(text, n, "%.3g", row->tau_first);
    else
        snprintf(text, n, "%.3g..%.3g", row->tau_first, row->tau_last);
}

/* Columns of losses and gaps. */
static int loss_width(const struct pl_report *r)
{
    return pl_report_on_data(r) ? 16 : 20;
}

static int gap_width(const struct pl_report *r)
{
    return pl_report_on_data(r) ? 19 : 21;
}

/* A gap is between runs on the same tokens; longer runs only serve the annealed time.
 */
static void print_gap(const struct pl_report *r, const struct pl_row_report *row,
                      char *text, size_t n)
{
    char gap[32], half[32];
    const char *sign = signbit(row->gap) ? "" : "+";
    double longer = (double)arm_of(r, row)->versions.updates /
                    (double)r->experiment->arms[row->baseline].versions.updates;
    if (row->arm == row->baseline)
        snprintf(text, n, "baseline");
    else if (longer != 1)
        snprintf(text, n, "(%.3g x tokens)", longer);
    else if (isnan(row->gap))
        snprintf(text, n, "-");
    else if (isnan(row->gap_half))
        snprintf(text, n, "%s%s", sign, pl_report_loss(r, row->gap, 4, gap));
    else
        snprintf(text, n, "%s%s +- %s", sign, pl_report_loss(r, row->gap, 4, gap),
                 pl_report_loss(r, row->gap_half, 4, half));
}

static void print_reach(const struct pl_report *r, const struct pl_row_report *row,
                        char *text, size_t n)
{
    char a[32], loss[32];
    if (!isnan(row->reach_s))
        snprintf(text, n, "%s", pl_units_format_time(row->reach_s, a, sizeof a));
    else if (!isfinite(r->rows[row->baseline].mean)) /* diverged, or not evaluated */
        snprintf(text, n, "-");
    else
        snprintf(text, n, "not reached in %s (loss %s)",
                 pl_units_format_time(row->end_s, a, sizeof a),
                 pl_report_loss(r, row->mean, 3, loss));
}

/* A dash where the run is too short for a steady window. */
static void print_steady(const struct pl_row_report *row, FILE *out)
{
    char step[32];
    if (isnan(row->step_s))
        fprintf(out, "%9s %8s", "-", "-");
    else
        fprintf(out, "%9s %6.1f %%",
                pl_units_format_time(row->step_s, step, sizeof step),
                100 * row->bubble_steady);
}

static void print_row(const struct pl_report *r, const struct pl_row_report *row,
                      FILE *out)
{
    const struct pl_arm *arm = arm_of(r, row);
    char tau[32], loss[80], gap[80], share[16] = "", reach[80], equal[160] = "";
    char at[32], a[32], b[32];
    print_tau(row, tau, sizeof tau);
    print_gap(r, row, gap, sizeof gap);
    print_reach(r, row, reach, sizeof reach);
    if (row->diverged)
        snprintf(loss, sizeof loss, "diverged (%d of %d)", row->diverged,
                 r->experiment->n_seeds);
    else if (isnan(row->mean))
        snprintf(loss, sizeof loss, "not evaluated");
    else if (r->experiment->n_seeds == 1)
        pl_report_loss(r, row->mean, 4, loss);
    else
        snprintf(loss, sizeof loss, "%s sd %s", pl_report_loss(r, row->mean, 4, a),
                 pl_report_loss(r, row->sd, 4, b));
    if (!isnan(row->recovered))
        snprintf(share, sizeof share, "%.0f %%", 100 * row->recovered);
    if (row->arm != row->baseline && !isnan(row->mean))
        snprintf(equal, sizeof equal, "%s: %s, %s %s",
                 pl_units_format_time(row->equal_s, at, sizeof at),
                 pl_report_loss(r, row->equal_loss, 3, a), r->rows[row->baseline].label,
                 pl_report_loss(r, row->equal_baseline, 3, b));
    fprintf(out, "%-22s ", arm->name);
    print_steady(row, out);
    fprintf(out, " %-8s %-*s %-*s %6s  %-35s %s\n", tau, loss_width(r), loss,
            gap_width(r), gap, share, reach, equal);
    if (isnan(row->noise)) return;
    snprintf(gap, sizeof gap, "rms %s", pl_report_loss(r, row->noise, 4, a));
    fprintf(out, "%-22s %9s %8s %-8s %-*s %s\n", "  with another seed", "\"", "\"",
            "\"", loss_width(r), "\"", gap);
}

static void print_annealed(const struct pl_report *r, FILE *out)
{
    bool heading = false;
    for (int i = 0; i < r->n; i++) {
        const struct pl_row_report *row = &r->rows[i];
        int n;
        double limit, reached = pl_report_annealed(r, i, &n, &limit);
        if (n < 2 || pl_label_root(row->label) != (int)strlen(row->label)) continue;
        char t[32], base[32];
        if (!heading)
            fprintf(out, "\nTime to the synchronous final loss, annealed (each "
                         "length with its own full rate schedule):\n");
        heading = true;
        pl_units_format_time(r->rows[row->baseline].end_s, base, sizeof base);
        if (isnan(reached))
            fprintf(out, "  %-22s > %s (synchronous: %s)\n", arm_of(r, row)->name,
                    pl_units_format_time(limit, t, sizeof t), base);
        else
            fprintf(out, "  %-22s %s (synchronous: %s, speed-up %.2f)\n",
                    arm_of(r, row)->name, pl_units_format_time(reached, t, sizeof t),
                    base, r->rows[row->baseline].end_s / reached);
    }
}

void pl_report_print(const struct pl_report *r, FILE *out)
{
    pl_report_heading(r, out);
    fprintf(out, "%-22s %9s %8s %-8s %-*s %-*s %6s  %-35s %s\n", "arm", "step",
            "bubble", "tau", loss_width(r), "loss", gap_width(r), "gap", "recov.",
            "time to baseline's loss", "loss at equal time");
    for (int i = 0; i < r->n; i++) print_row(r, &r->rows[i], out);
    pl_report_notes(r, out);
    print_annealed(r, out);
}

static void json_row(const struct pl_report *r, const struct pl_row_report *row,
                     struct pl_json *j)
{
    pl_json_begin(j, NULL, '{');
    pl_json_text(j, "arm", arm_of(r, row)->name);
    pl_json_text(j, "baseline", r->experiment->arms[row->baseline].name);
    pl_json_real(j, "step_s", row->step_s);
    pl_json_real(j, "bubble_steady", row->bubble_steady);
    pl_json_real(j, "tau_first", row->tau_first);
    pl_json_real(j, "tau_last", row->tau_last);
    pl_json_begin(j, "losses", '[');
    for (int s = 0; s < r->experiment->n_seeds; s++)
        pl_json_real(j, NULL, row->losses[s]);
    pl_json_end(j, ']');
    pl_json_real(j, "loss_mean", row->mean);
    pl_json_real(j, "loss_sd", row->sd);
    pl_json_real(j, "loss_y", row->loss_y);
    pl_json_int(j, "diverged", row->diverged);
    pl_json_real(j, "gap", row->gap);
    pl_json_real(j, "gap_t95", row->gap_half);
    pl_json_real(j, "recovered", row->recovered);
    pl_json_real(j, "end_s", row->end_s);
    pl_json_real(j, "time_to_baseline_s", row->reach_s);
    pl_json_real(j, "equal_time_s", row->equal_s);
    pl_json_real(j, "equal_time_loss", row->equal_loss);
    pl_json_real(j, "equal_time_baseline_loss", row->equal_baseline);
    if (!isnan(row->bits)) pl_json_real(j, "bits_per_byte", row->bits);
    if (!isnan(row->balance)) pl_json_real(j, "balance_loss", row->balance);
    if (!isnan(row->z)) pl_json_real(j, "z_loss", row->z);
    if (!isnan(row->load_max)) pl_json_real(j, "load_max", row->load_max);
    pl_json_end(j, '}');
}

void pl_report_json(const struct pl_report *r, struct pl_json *j)
{
    pl_json_begin(j, "arms", '[');
    for (int i = 0; i < r->n; i++) json_row(r, &r->rows[i], j);
    pl_json_end(j, ']');
}

void pl_report_record(const struct pl_report *r, struct pl_trace *t)
{
    struct column {
        const char *name;
        size_t offset;
    };
    static const struct column columns[] = {
        {"loss_mean", offsetof(struct pl_row_report, mean)},
        {"loss_sd", offsetof(struct pl_row_report, sd)},
        {"loss_y", offsetof(struct pl_row_report, loss_y)},
        {"gap", offsetof(struct pl_row_report, gap)},
        {"gap_t95", offsetof(struct pl_row_report, gap_half)},
        {"recovered", offsetof(struct pl_row_report, recovered)},
        {"end_s", offsetof(struct pl_row_report, end_s)},
        {"time_to_baseline_s", offsetof(struct pl_row_report, reach_s)},
        {"equal_time_s", offsetof(struct pl_row_report, equal_s)},
        {"equal_time_loss", offsetof(struct pl_row_report, equal_loss)},
        {"equal_time_baseline_loss", offsetof(struct pl_row_report, equal_baseline)},
        {"tau_first", offsetof(struct pl_row_report, tau_first)},
        {"tau_last", offsetof(struct pl_row_report, tau_last)},
        {"step_s", offsetof(struct pl_row_report, step_s)},
        {"bubble_steady", offsetof(struct pl_row_report, bubble_steady)},
    };
    const char **names = PL_NEW(r->n, const char *);
    const char **bases = PL_NEW(r->n, const char *);
    double *values = PL_NEW(r->n, double);
    int64_t *diverged = PL_NEW(r->n, int64_t);
    for (int i = 0; i < r->n; i++) {
        names[i] = arm_of(r, &r->rows[i])->name;
        bases[i] = r->experiment->arms[r->rows[i].baseline].name;
    }
    pl_trace_text(t, "/table", "arm", r->n, names);
    pl_trace_text(t, "/table", "baseline", r->n, bases);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        for (int i = 0; i < r->n; i++)
            memcpy(&values[i], (const char *)&r->rows[i] + columns[c].offset,
                   sizeof *values);
        pl_trace_f64(t, "/table", columns[c].name, r->n, values);
    }
    for (int i = 0; i < r->n; i++) diverged[i] = r->rows[i].diverged;
    pl_trace_i64(t, "/table", "diverged", r->n, diverged);
    free(diverged);
    free(names);
    free(bases);
    free(values);
}
