/* What is said below a report's table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/report.h"
#include "cli/text_table.h"

static const struct pl_arm *arm_of(const struct pl_report *r, int row)
{
    return &r->experiment->arms[r->rows[row].arm];
}

const char *pl_report_loss(const struct pl_report *r, double loss, int decimals,
                           char text[32])
{
    if (pl_report_on_data(r))
        snprintf(text, 32, "%.*f", decimals, loss);
    else
        snprintf(text, 32, "%.3g", loss);
    return text;
}

/* *text and more, a separator between them unless it was empty. */
static void append(char **text, const char *separator, const char *more)
{
    char *longer = pl_printf("%s%s%s", *text, **text ? separator : "", more);
    free(*text);
    *text = longer;
}

/* "clip.scope  global: adamw+sync, adamw+2bw; stage: adamw+pipedream" */
static void print_scopes(const struct pl_report *r, FILE *out)
{
    static const struct {
        enum pl_clip_scope scope;
        const char *name;
    } scopes[] = {
        {PL_CLIP_GLOBAL, "global"}, {PL_CLIP_STAGE, "stage"}, {PL_CLIP_NONE, "none"}};
    char *all = pl_strdup("");
    for (int k = 0; k < 3; k++) {
        char *arms = pl_strdup("");
        int n = 0;
        for (int i = 0; i < r->n; i++) {
            if (pl_arm_clip_scope(arm_of(r, i)) != scopes[k].scope) continue;
            append(&arms, ", ", arm_of(r, i)->name);
            n++;
        }
        if (n) append(&all, "; ", scopes[k].name);
        if (n && r->n > 1) append(&all, ": ", arms);
        free(arms);
    }
    pl_text_wrap(out, "clip.scope", PL_REPORT_INDENT, "%s", all);
    free(all);
}

/* "bits/byte   adamw+sync 2.0514, adamw+2bw 2.1003", where the text's bytes are known.
 */
static void print_bits(const struct pl_report *r, FILE *out)
{
    char *all = pl_strdup("");
    for (int i = 0; i < r->n; i++) {
        if (!isfinite(r->rows[i].bits)) continue;
        char *one = pl_printf("%s %.4f", arm_of(r, i)->name, r->rows[i].bits);
        append(&all, ", ", one);
        free(one);
    }
    if (*all) pl_text_wrap(out, "bits/byte", PL_REPORT_INDENT, "%s", all);
    free(all);
}

static void print_experts(const struct pl_report *r, FILE *out)
{
    for (int i = 0; i < r->n; i++) {
        const struct pl_row_report *row = &r->rows[i];
        if (isnan(row->load_max)) continue;
        fprintf(out, "experts     %s: the fullest has %.2f times the mean load",
                arm_of(r, i)->name, row->load_max);
        if (!isnan(row->balance)) fprintf(out, ", balance loss %.4f", row->balance);
        if (!isnan(row->z)) fprintf(out, ", z loss %.4f", row->z);
        fprintf(out, "\n");
    }
}

static void print_iterates(const struct pl_report *r, FILE *out)
{
    char a[32], b[32];
    for (int i = 0; i < r->n; i++) {
        const struct pl_row_report *row = &r->rows[i];
        if (fabs(row->loss_y - row->mean) > 1e-12 && !row->diverged)
            fprintf(out, "iterates    %s: loss %s at x, %s at y = x + c u_last\n",
                    arm_of(r, i)->name, pl_report_loss(r, row->mean, 4, a),
                    pl_report_loss(r, row->loss_y, 4, b));
    }
}

static void print_segments(const struct pl_report *r, FILE *out)
{
    for (int i = 0; i < r->n; i++) {
        const struct pl_arm *arm = arm_of(r, i);
        const char *segments = pl_config_text(arm->config, "segments");
        if (*segments)
            pl_text_wrap(out, "segments", PL_REPORT_INDENT,
                         "%s: %s; step, bubble and tau are of its (longest) "
                         "asynchronous one",
                         arm->name, segments);
        if (arm->cost_factor > 1)
            pl_text_wrap(out, "scaled", PL_REPORT_INDENT,
                         "%s: one microbatch is %lld times the costs' microbatch, so "
                         "are costs and activations",
                         arm->name, (long long)arm->cost_factor);
    }
}

/* What the columns mean that are there. */
static void print_legend(const struct pl_report *r, bool alone, FILE *out)
{
    bool seeds = false, recovered = false;
    for (int i = 0; i < r->n; i++) {
        seeds |= !isnan(r->rows[i].noise);
        recovered |= !isnan(r->rows[i].recovered);
    }
    char *text = pl_strdup("");
    if (!alone)
        append(&text, " ",
               "Gap: mean paired difference to the baseline over seeds, +- "
               "95 % t interval.");
    if (seeds)
        append(&text, " ",
               "With another seed: rms difference of two seeds of the same "
               "arm, the noise floor.");
    if (recovered)
        append(&text, " ", "Recov.: share of the uncorrected pipeline's gap.");
    if (!alone)
        append(&text, " ",
               "Time to the baseline's final loss: first crossing of the "
               "seed-mean curve; at equal time one of the two runs is still "
               "inside its rate schedule (mid-schedule, biased against it).");
    if (*text) {
        putc('\n', out);
        pl_text_wrap(out, "", 0, "%s", text);
    }
    free(text);
}

void pl_report_notes(const struct pl_report *r, bool alone, FILE *out)
{
    putc('\n', out);
    print_scopes(r, out);
    print_bits(r, out);
    print_experts(r, out);
    print_iterates(r, out);
    print_segments(r, out);
    print_legend(r, alone, out);
}
