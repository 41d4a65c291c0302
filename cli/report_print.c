/* The report as text, JSON and as the trace's /table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/report.h"
#include "cli/text_table.h"

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

static void print_loss(const struct pl_report *r, const struct pl_row_report *row,
                       char *text, size_t n)
{
    char a[32], b[32];
    if (row->diverged)
        snprintf(text, n, "diverged (%d of %d)", row->diverged, r->experiment->n_seeds);
    else if (isnan(row->mean))
        snprintf(text, n, "not evaluated");
    else if (r->experiment->n_seeds == 1)
        snprintf(text, n, "%s", pl_report_loss(r, row->mean, 4, a));
    else
        snprintf(text, n, "%s sd %s", pl_report_loss(r, row->mean, 4, a),
                 pl_report_loss(r, row->sd, 4, b));
}

/* The floor under gaps: the same arm with another seed. */
static void print_noise(const struct pl_report *r, const struct pl_row_report *row,
                        struct pl_text_table *t)
{
    char rms[32];
    pl_text_cell(t, "  with another seed");
    for (int i = 0; i < 4; i++) pl_text_cell(t, "\"");
    pl_text_cell(t, "rms %s", pl_report_loss(r, row->noise, 4, rms));
    pl_text_cell(t, "%s", "");
}

static void print_row(const struct pl_report *r, const struct pl_row_report *row,
                      bool alone, struct pl_text_table *t)
{
    char tau[32], loss[80], gap[80] = "", step[32];
    print_tau(row, tau, sizeof tau);
    print_loss(r, row, loss, sizeof loss);
    if (!alone) print_gap(r, row, gap, sizeof gap);
    pl_text_cell(t, "%s", arm_of(r, row)->name);
    if (isnan(row->step_s)) { /* the run is too short for a steady window */
        pl_text_cell(t, "-");
        pl_text_cell(t, "-");
    } else {
        pl_text_cell(t, "%s", pl_units_format_time(row->step_s, step, sizeof step));
        pl_text_cell(t, "%.1f %%", 100 * row->bubble_steady);
    }
    pl_text_cell(t, "%s", tau);
    pl_text_cell(t, "%s", loss);
    pl_text_cell(t, "%s", gap);
    if (isnan(row->recovered))
        pl_text_cell(t, "%s", "");
    else
        pl_text_cell(t, "%.0f %%", 100 * row->recovered);
    if (!isnan(row->noise)) print_noise(r, row, t);
}

static void print_losses(const struct pl_report *r, bool alone, FILE *out)
{
    struct pl_text_table *t = pl_text_table_new();
    pl_text_table_column(t, "arm", true, 0);
    pl_text_table_column(t, "step", false, 0);
    pl_text_table_column(t, "bubble", false, 0);
    pl_text_table_column(t, "tau", true, 0);
    pl_text_table_column(t, "loss", true, 0);
    pl_text_table_column(t, "gap", true, 0);
    pl_text_table_column(t, "recov.", false, 0);
    bool short_run = false;
    for (int i = 0; i < r->n; i++) {
        print_row(r, &r->rows[i], alone, t);
        short_run |= isnan(r->rows[i].step_s) || isnan(r->rows[i].tau_first);
    }
    pl_text_table_print(t, NULL, out);
    if (short_run)
        fputs("-: too few updates for a steady step, bubble and tau (see "
              "pipelag-sim(1))\n",
              out);
}

/* Arms against their baselines in simulated time. */
static void print_times(const struct pl_report *r, FILE *out)
{
    struct pl_text_table *t = pl_text_table_new();
    char a[32], loss[32];
    pl_text_table_column(t, "time to the baseline's loss", true, 0);
    pl_text_table_column(t, "", true, 0);
    pl_text_table_column(t, "at equal time", false, 0);
    pl_text_table_column(t, "loss", false, 0);
    pl_text_table_column(t, "baseline's loss", false, 0);
    for (int i = 0; i < r->n; i++) {
        const struct pl_row_report *row = &r->rows[i];
        const struct pl_row_report *base = &r->rows[row->baseline];
        pl_text_cell(t, "  %s", arm_of(r, row)->name);
        if (!isnan(row->reach_s))
            pl_text_cell(t, "%s%s", pl_units_format_time(row->reach_s, a, sizeof a),
                         row->arm == row->baseline ? " (its whole run)" : "");
        else if (!isfinite(base->mean)) /* diverged, or not evaluated */
            pl_text_cell(t, "-");
        else
            pl_text_cell(t, "not reached in %s (loss %s)",
                         pl_units_format_time(row->end_s, a, sizeof a),
                         pl_report_loss(r, row->mean, 3, loss));
        if (row->arm == row->baseline || isnan(row->mean)) {
            pl_text_note(t, "");
            continue;
        }
        pl_text_cell(t, "%s", pl_units_format_time(row->equal_s, a, sizeof a));
        pl_text_cell(t, "%s", pl_report_loss(r, row->equal_loss, 3, loss));
        pl_text_cell(t, "%s", pl_report_loss(r, row->equal_baseline, 3, loss));
    }
    putc('\n', out);
    pl_text_table_print(t, NULL, out);
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
    bool alone = true; /* nothing is compared */
    for (int i = 0; i < r->n; i++) alone &= r->rows[i].baseline == i;
    pl_report_heading(r, out);
    print_losses(r, alone, out);
    if (!alone) print_times(r, out);
    pl_report_notes(r, alone, out);
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
