/* What is said below a report's table. */
#include <math.h>

#include "cli/report.h"

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

/* "clip.scope  global: adamw+sync, adamw+2bw; stage: adamw+pipedream" */
static void print_scopes(const struct pl_report *r, FILE *out)
{
    static const struct {
        enum pl_clip_scope scope;
        const char *name;
    } scopes[] = {
        {PL_CLIP_GLOBAL, "global"}, {PL_CLIP_STAGE, "stage"}, {PL_CLIP_NONE, "none"}};
    const char *before = "clip.scope  ";
    for (int k = 0; k < 3; k++) {
        bool first = true;
        for (int i = 0; i < r->n; i++) {
            if (pl_arm_clip_scope(arm_of(r, i)) != scopes[k].scope) continue;
            if (first) fprintf(out, "%s%s: ", before, scopes[k].name);
            fprintf(out, "%s%s", first ? "" : ", ", arm_of(r, i)->name);
            first = false;
        }
        if (!first) before = "; ";
    }
    fprintf(out, "\n");
}

/* "bits/byte   adamw+sync 2.0514, adamw+2bw 2.1003", where the text's bytes are known.
 */
static void print_bits(const struct pl_report *r, FILE *out)
{
    const char *before = "bits/byte   ";
    for (int i = 0; i < r->n; i++) {
        if (!isfinite(r->rows[i].bits)) continue;
        fprintf(out, "%s%s %.4f", before, arm_of(r, i)->name, r->rows[i].bits);
        before = ", ";
    }
    if (*before == ',') fprintf(out, "\n");
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

void pl_report_notes(const struct pl_report *r, FILE *out)
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
    print_bits(r, out);
    print_experts(r, out);
    for (int i = 0; i < r->n; i++) {
        const struct pl_row_report *row = &r->rows[i];
        if (fabs(row->loss_y - row->mean) > 1e-12 && !row->diverged)
            fprintf(out, "iterates    %s: loss %s at x, %s at y = x + c u_last\n",
                    arm_of(r, i)->name, pl_report_loss(r, row->mean, 4, a),
                    pl_report_loss(r, row->loss_y, 4, b));
    }
    for (int i = 0; i < r->n; i++) {
        const struct pl_arm *arm = arm_of(r, i);
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
