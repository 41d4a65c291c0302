/* What an experiment says: per arm the loss, the gap to the synchronous arm of its
 * group, what the correction recovered, and the simulated time to the synchronous loss.
 */
#ifndef PL_CLI_REPORT_H
#define PL_CLI_REPORT_H

#include "cli/experiment.h"
#include "base/json.h"
#include "traces/trace.h"

enum { PL_MAX_SEEDS = 64, PL_REPORT_INDENT = 12 /* of text behind its label */ };

struct pl_row_report {
    int arm, baseline; /* arm numbers; baseline of the arm's group */
    const char *group; /* label(s) on all axes but the last, e.g. the optimizer */
    const char *label; /* on the last axis, e.g. the pipeline */
    double losses[PL_MAX_SEEDS]; /* final validation loss of x; +inf when diverged */
    double loss_y;               /* seed mean at y = x + c u_last */
    double mean, sd;             /* over seeds */
    double gap, gap_half; /* mean paired difference to the baseline, 95 % half width */
    double recovered;     /* 1 - gap / gap of the uncorrected arm; NaN without one */
    double noise;         /* baseline rows: rms difference of two seeds, else NaN */
    double end_s;         /* simulated end */
    double reach_s;       /* baseline's final mean loss first reached; NaN: never */
    double equal_s;       /* the earlier of the two ends ... */
    double equal_loss,
        equal_baseline;           /* ... and both losses there (mid-schedule for one) */
    double step_s, bubble_steady; /* of the simulation */
    double tau_first, tau_last; /* mean delay of stage 0 and of stage P-1, in updates */
    int diverged;               /* seeds that diverged */
    /* Seed means, NaN: not known. Of the last evaluation: loss in bits per byte, load
     * of the fullest expert over the mean load; of the last update: terms of routers
     * without their coefficients. */
    double bits, load_max, balance, z;
};

struct pl_report { /* owned: pl_report_free */
    const struct pl_experiment *experiment;
    int n; /* = arms */
    struct pl_row_report *rows;
    char **names; /* storage of groups */
};

/* results: [jobs], borrowed. Errors: PL_ECONFIG (more than PL_MAX_SEEDS
 * seeds, baseline label). */
int pl_report_new(const struct pl_experiment *experiment,
                  const struct pl_run_result *results, struct pl_report *out);
void pl_report_free(struct pl_report *report);

/* Does the (first) arm train a model, so that losses are nats per token? */
bool pl_report_on_data(const struct pl_report *report);
void pl_report_heading(const struct pl_report *report, FILE *out);
/* Heading, table, annealed times, for people; the same as the key "arms" of an open
 * JSON object; as /table of a trace. */
void pl_report_print(const struct pl_report *report, FILE *out);
/* The part below the tables; alone: no arm is compared with another. */
void pl_report_notes(const struct pl_report *report, bool alone, FILE *out);
/* A loss or a difference of losses: to decimals of a nat per token, or to digits where
 * the loss is an exact number of any size; text. */
const char *pl_report_loss(const struct pl_report *report, double loss, int decimals,
                           char text[32]);
void pl_report_json(const struct pl_report *report, struct pl_json *json);
void pl_report_record(const struct pl_report *report, struct pl_trace *trace);

/* Length of the label without a trailing "-x1.3" (the same arm trained on 1.3 times the
 * tokens). */
int pl_label_root(const char *label);

/* Time at which the annealed end loss of the arm and its longer versions reaches the
 * baseline's loss, linear between them; NaN when even the longest does not. n = arms
 * used, limit_s = end of the longest. */
double pl_report_annealed(const struct pl_report *report, int row, int *n,
                          double *limit_s);

#endif
