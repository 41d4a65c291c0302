/* `pipelag plan`: the best ways to train a model on a cluster. A candidate is a place
 * of every GPU (tp, cp, ep, pp, dp), a schedule with its chunks v, a cut of the layers,
 * the sequences b of a microbatch, recomputation and ZeRO; the sequences of an update
 * are the same for all, so m = batch / (dp b). Each candidate meets one fate; those
 * that no rule refuses are simulated as `pipelag sim` does.
 *
 * Order and number of the workers leave no mark: candidates are simulated in rounds of
 * fixed size, best lower bound first, and a round is judged when it is complete. */
#ifndef PL_CLI_PLAN_H
#define PL_CLI_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "sim/estimate.h"
#include "sim/schedule.h"
#include "sim/simulate.h"

enum pl_fate {
    PL_FATE_OPEN,      /* nothing known yet */
    PL_FATE_UNFIT,     /* the schedule's own check refuses the shape */
    PL_FATE_MEMORY,    /* weights, state and the least activations are too large */
    PL_FATE_SLOW,      /* its lower bound is above the last row that is printed */
    PL_FATE_DOMINATED, /* above the best of its own row */
    PL_FATE_STALE,     /* simulated: tau above --max-tau */
    PL_FATE_OVER,      /* simulated: out of memory */
    PL_FATE_DONE,      /* simulated, fits */
    PL_FATE_FAILED,    /* not simulated: an error */
    PL_N_FATES
};

/* What a stage is and how it is spread; costs follow from it. */
struct pl_plan_group {
    int tp, cp, ep, pp, dp, b, zero;
    enum pl_recompute recompute;
    bool balanced, sp;
    int m;
    int place; /* number of (tp, cp, ep, pp, dp) */
};

struct pl_plan_row {
    int32_t group, type; /* index; of pl_schedule_types */
    int v;
    enum pl_fate fate;
    double bound_s;     /* no simulation gives a shorter step */
    double bound_bytes; /* nor less memory on the fullest device */
    /* simulated, or bounds with PL_FATE_MEMORY: */
    int device; /* fullest */
    double peak;
    /* simulated: */
    double step_s, bubble, tokens, mfu, tau; /* bubble: 1 - busiest work / step */
};

/* What is asked. */
struct pl_plan_ask {
    struct pl_config *config; /* resolved; keys that are given stay as they are */
    int64_t gpus, batch;      /* batch in sequences; 0: pl_plan_default_batch */
    double part;              /* of a GPU's memory that may be used */
    int64_t max_tau;          /* -1: any */
    int top, n_workers;       /* rows; processes */
    bool all;    /* every candidate, not the best of each place and class */
    bool prune;  /* no: simulate all that fits the shape (tests) */
    bool *types; /* [number of types] schedules to try; owned */
};

/* Owned: pl_plan_free. */
struct pl_plan {
    const struct pl_plan_ask *ask;
    struct pl_model model;
    struct pl_cluster cluster;
    int64_t seq, batch;
    double limit; /* bytes */
    int64_t n_groups, n_rows, indivisible;
    struct pl_plan_group *groups;
    struct pl_plan_row *rows;
    int n_places;
    int64_t fates[PL_N_FATES];
    int64_t settled; /* rows whose fate is known, for progress */
    int n_best;      /* rows to print, best first */
    int64_t *best;   /* [n_best] */
    int n_refused;   /* faster ones that do not fit, simulated */
    int64_t *refused;
    int64_t least;   /* row that needs least memory, when nothing fits; else -1 */
    char *failure;   /* first message of PL_FATE_FAILED; NULL */
    bool incomplete; /* interrupted */
};

/* MODEL and CLUSTER into a configuration on which a plan can be made: presets,
 * cost.type roofline, levels extended to the GPUs asked for (gpus 0: all of the
 * cluster's; set). Keys that config gives (--set) win. Errors: PL_ECONFIG, PL_EUSAGE
 * naming what is wrong. */
int pl_plan_setup(struct pl_config *config, const char *model, const char *cluster,
                  int64_t *gpus);
/* Largest power of two of sequences within 4 Mi tokens, at least one. */
int64_t pl_plan_default_batch(int64_t seq);

/* All candidates in a fixed order; fills model .. n_places, rows of fate OPEN or UNFIT.
 * Errors: PL_ECONFIG when there is none, and why. */
int pl_plan_space(const struct pl_plan_ask *ask, struct pl_plan *plan);
/* The keys of a row into config, a copy of ask->config. */
void pl_plan_apply(const struct pl_plan *plan, const struct pl_plan_row *row,
                   struct pl_config *config);
/* Updates are synchronous? */
bool pl_plan_is_sync(const struct pl_plan_row *row);

/* bound_s and bound_bytes with its device (plan_bound.c). */
void pl_plan_bound(const struct pl_schedule_type *type, const struct pl_shape *shape,
                   const struct pl_layout *layout, const struct pl_cost *cost,
                   const struct pl_estimate *estimate, bool barrier,
                   struct pl_plan_row *row);

/* Bounds of all rows of a group, one after another in out[n]; config is changed. */
void pl_plan_bound_group(const struct pl_plan *plan, int64_t first, int64_t n,
                         struct pl_config *config, struct pl_plan_row *out);
/* Simulate one row; its fate is DONE, OVER, STALE or FAILED. */
void pl_plan_point(const struct pl_plan *plan, struct pl_plan_row *row,
                   struct pl_config *config);

/* Search. SIGINT and SIGTERM (caught by pl_workers_catch_signals) end it early with the
 * best so far and incomplete set. Errors: those of pl_plan_space; PL_EIO. */
int pl_plan_search(const struct pl_plan_ask *ask, struct pl_plan *out);
void pl_plan_free(struct pl_plan *plan);

/* Where a step goes, on the busiest device; the parts sum to the step. */
enum pl_plan_part {
    PL_PART_COMPUTE,   /* F, B and W without the next two */
    PL_PART_RECOMPUTE, /* what recomputation repeats */
    PL_PART_EXCHANGE,  /* exchanges inside a stage: tp, ep, cp */
    PL_PART_RULE,      /* the optimizer's own step */
    PL_PART_GRADIENTS, /* exposed exchange of gradients and weights: dp */
    PL_PART_TRANSFERS, /* step minus the step with free transfers between stages */
    PL_PART_BUBBLE,    /* waiting that is left */
    PL_N_PARTS
};
extern const char *const pl_plan_part_names[PL_N_PARTS];
/* Errors: those of the simulation. */
int pl_plan_parts(const struct pl_plan *plan, int64_t row, double parts[PL_N_PARTS]);

#endif
