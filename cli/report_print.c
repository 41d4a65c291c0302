/* The report as text, JSON and as the trace's /table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/report.h"
#include "cli/setup_optim.h"
#include "cli/setup_problem.h"

static const struct pl_arm *arm_of(const struct pl_report *r,
                                   const struct pl_row_report *w)
{
    return &r->experiment->arms[w->arm];
}

static double tokens_per_update(const struct pl_config *c)
{
    return (double)pl_config_int(c, "train.batch") *
           (double)pl_config_int(c, "train.seq");
}

static const char *data_text(const struct pl_config *c)
{
    const char *text = pl_config_text(c, "data.text");
    const char *tokens = pl_config_text(c, "data.tokens");
    return *text ? text : *tokens ? tokens : "built-in grammar";
}

static void print_costs(const struct pl_arm *arm, FILE *out)
{
    const struct pl_cost *c = &arm->cost;
    double k = 1e-12 / (double)arm->cost_factor;
    char f[32], b[32], w[32], l[32];
    fprintf(
        out, "costs       stage 0, %lld sequence(s): F %s, B %s, W %s, transfer %s\n",
        (long long)pl_config_int(arm->config, "cost.sequences"),
        pl_units_format_time((double)c->forward[0] * k, f, sizeof f),
        pl_units_format_time((double)c->backward[0] * k, b, sizeof b),
        pl_units_format_time((double)c->weight[0] * k, w, sizeof w),
        pl_units_format_time(c->devices > 1 ? (double)c->next[0] * k : 0, l, sizeof l));
}

static void print_model(const struct pl_arm *arm, FILE *out)
{
    const struct pl_model *m = &arm->model;
    fprintf(out,
            "model       %.3fM parameters: %d layers, hidden %d, %d/%d heads, ffn %d, "
            "vocabulary %d, %s",
            (double)pl_model_params(m) / 1e6, m->layers, m->hidden, m->heads,
            m->kv_heads, m->ffn, m->vocab, m->tied ? "tied" : "untied");
}

static void print_data(const struct pl_arm *arm, int n_seeds, FILE *out)
{
    double tokens = tokens_per_update(arm->config);
    fprintf(out,
            "data        %s; %.0f tokens per update, %lld updates = %.3gM tokens; %d "
            "seed(s)\n",
            data_text(arm->config), tokens, (long long)arm->versions.updates,
            tokens * (double)arm->versions.updates / 1e6, n_seeds);
}

/* A problem without data: its loss is exact, and of no tokens. */
static void print_problem(const struct pl_arm *arm, FILE *out)
{
    const struct pl_problem_type *type = pl_setup_problem_type(arm->config);
    fprintf(out, "problem     %s: %s", type->name, type->summary);
    if (isfinite(arm->known.minimum)) fprintf(out, "; minimum %.6g", arm->known.minimum);
    if (isfinite(arm->known.L)) fprintf(out, ", L %.6g", arm->known.L);
}

/* Every rule of the run with its settings, once. */
static void print_rules(const struct pl_experiment *e, FILE *out)
{
    char **texts = PL_NEW(e->n_arms, char *);
    for (int i = 0; i < e->n_arms; i++) {
        const struct pl_optim o = pl_setup_optim(e->arms[i].config);
        bool seen = false;
        texts[i] = pl_setup_optim_text(&o);
        for (int k = 0; k < i; k++) seen |= !strcmp(texts[k], texts[i]);
        if (!seen) fprintf(out, "%-11s %s\n", i ? "" : "optimizer", texts[i]);
    }
    for (int i = 0; i < e->n_arms; i++) free(texts[i]);
    free(texts);
}

static void print_heading(const struct pl_report *r, FILE *out)
{
    const struct pl_experiment *e = r->experiment;
    const struct pl_arm *arm = &e->arms[0];
    const bool on_data = pl_setup_problem_type(arm->config)->on_data;
    char chunks[40] = "";
    if (arm->versions.stages != arm->sim.schedule.shape.P)
        snprintf(chunks, sizeof chunks, " of %d model chunks",
                 arm->versions.stages / arm->sim.schedule.shape.P);
    fprintf(out, "%s\n", pl_config_title(e->config));
    if (on_data)
        print_model(arm, out);
    else
        print_problem(arm, out);
    fprintf(out, "; P = %d stages%s\n", arm->sim.schedule.shape.P, chunks);
    if (on_data)
        print_data(arm, e->n_seeds, out);
    else
        fprintf(
            out,
            "samples     %lld per update, %lld updates; %d seed(s); no model and no "
            "data\n",
            (long long)pl_config_int(arm->config, "train.batch"),
            (long long)arm->versions.updates, e->n_seeds);
    print_costs(arm, out);
    print_rules(e, out);
    fprintf(out,
            "units       tau in optimizer updates (steady mean, stage 0 .. stage P-1); "
            "loss %s stored iterate x; bubble = 1 - busiest device's work / step\n\n",
            on_data ? "in nats per token on\n            validation data at the"
                    : "exact, at the\n           ");
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

/* A loss or a difference of losses: to decimals of a nat per token, or to digits where
 * the loss is an exact number of any size. */
static const char *loss_text(const struct pl_report *r, double loss, int decimals,
                             char text[32])
{
    if (pl_setup_problem_type(r->experiment->arms[0].config)->on_data)
        snprintf(text, 32, "%.*f", decimals, loss);
    else
        snprintf(text, 32, "%.4g", loss);
    return text;
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
    else if (isnan(row->gap_half))
        snprintf(text, n, "%s%s", sign, loss_text(r, row->gap, 4, gap));
    else
        snprintf(text, n, "%s%s +- %s", sign, loss_text(r, row->gap, 4, gap),
                 loss_text(r, row->gap_half, 4, half));
}

static void print_reach(const struct pl_report *r, const struct pl_row_report *row,
                        char *text, size_t n)
{
    char a[32], loss[32];
    if (!isnan(row->reach_s))
        snprintf(text, n, "%s", pl_units_format_time(row->reach_s, a, sizeof a));
    else
        snprintf(text, n, "not reached in %s (loss %s)",
                 pl_units_format_time(row->end_s, a, sizeof a),
                 loss_text(r, row->mean, 3, loss));
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
    else if (r->experiment->n_seeds == 1)
        loss_text(r, row->mean, 4, loss);
    else
        snprintf(loss, sizeof loss, "%s sd %s", loss_text(r, row->mean, 4, a),
                 loss_text(r, row->sd, 4, b));
    if (!isnan(row->recovered))
        snprintf(share, sizeof share, "%.0f %%", 100 * row->recovered);
    if (row->arm != row->baseline)
        snprintf(equal, sizeof equal, "%s: %s, %s %s",
                 pl_units_format_time(row->equal_s, at, sizeof at),
                 loss_text(r, row->equal_loss, 3, a), r->rows[row->baseline].label,
                 loss_text(r, row->equal_baseline, 3, b));
    fprintf(out, "%-22s ", arm->name);
    print_steady(row, out);
    fprintf(out, " %-8s %-16s %-19s %6s  %-35s %s\n", tau, loss, gap, share, reach,
            equal);
    if (isnan(row->noise)) return;
    snprintf(gap, sizeof gap, "rms %s", loss_text(r, row->noise, 4, a));
    fprintf(out, "%-22s %9s %8s %-8s %-16s %-19s\n", "  with another seed", "\"", "\"",
            "\"", "\"", gap);
}

static const char *clip_scope(const struct pl_arm *arm)
{
    const char *scope = pl_config_text(arm->config, "clip.scope");
    bool none = !strcmp(scope, "none") || pl_config_real(arm->config, "clip.norm") <= 0;
    return none ? "none" : arm->global_clip ? "global" : "stage";
}

/* "clip.scope  global: adamw+sync, adamw+2bw; stage: adamw+pipedream" */
static void print_scopes(const struct pl_report *r, FILE *out)
{
    static const char *const scopes[] = {"global", "stage", "none"};
    const char *before = "clip.scope  ";
    for (int k = 0; k < 3; k++) {
        bool first = true;
        for (int i = 0; i < r->n; i++) {
            if (strcmp(clip_scope(arm_of(r, &r->rows[i])), scopes[k])) continue;
            if (first) fprintf(out, "%s%s: ", before, scopes[k]);
            fprintf(out, "%s%s", first ? "" : ", ", arm_of(r, &r->rows[i])->name);
            first = false;
        }
        if (!first) before = "; ";
    }
    fprintf(out, "\n");
}

static void print_notes(const struct pl_report *r, FILE *out)
{
    bool short_run = false;
    char a[32], b[32];
    for (int i = 0; i < r->n; i++) short_run |= isnan(r->rows[i].step_s);
    if (short_run)
        fprintf(out,
                "-           too few updates for a steady step, bubble and tau (see "
                "pipelag-sim(1))\n");
    fprintf(out, "\n");
    print_scopes(r, out);
    for (int i = 0; i < r->n; i++) {
        const struct pl_row_report *row = &r->rows[i];
        if (fabs(row->loss_y - row->mean) > 1e-12 && !row->diverged)
            fprintf(out, "iterates    %s: loss %s at x, %s at y = x + c u_last\n",
                    arm_of(r, row)->name, loss_text(r, row->mean, 4, a),
                    loss_text(r, row->loss_y, 4, b));
    }
    for (int i = 0; i < r->n; i++) {
        const struct pl_arm *arm = arm_of(r, &r->rows[i]);
        const char *segments = pl_config_text(arm->config, "segments");
        if (*segments)
            fprintf(out,
                    "segments    %s: %s; step, bubble and tau are of its (longest) "
                    "asynchronous one\n",
                    arm->name, segments);
        if (arm->cost_factor > 1)
            fprintf(out,
                    "scaled      %s: one microbatch is %lld times the costs' "
                    "microbatch, so are costs and activations\n",
                    arm->name, (long long)arm->cost_factor);
    }
    fprintf(
        out,
        "\nGap: mean paired difference to the baseline over seeds, +- 95 %% t "
        "interval; with another\nseed: rms difference of two seeds of the same arm, "
        "the "
        "noise floor. Recov.: share of the\nuncorrected pipeline's gap. Time to the "
        "baseline's final loss: first crossing of the seed-mean curve;\nat equal "
        "time one of the two runs is still inside its rate schedule (mid-schedule, "
        "biased against it).\n");
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
    print_heading(r, out);
    fprintf(out, "%-22s %9s %8s %-8s %-16s %-19s %6s  %-35s %s\n", "arm", "step",
            "bubble", "tau", "loss", "gap", "recov.", "time to baseline's loss",
            "loss at equal time");
    for (int i = 0; i < r->n; i++) print_row(r, &r->rows[i], out);
    print_notes(r, out);
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
