/* Numbers of an executed run, by every convention in use. */
#ifndef PL_SIM_METRICS_H
#define PL_SIM_METRICS_H

#include "sim/timeline.h"
#include "sim/versions.h"

struct pl_stage_metrics {
    int device, chunk, replica;
    double busy_s;                     /* a pair's time counts half for each */
    double tau_min, tau_mean, tau_max; /* of the model chunk, steady window, updates */
    double tau_startup;                /* mean over the groups before it */
    int64_t weight_versions;           /* most alive, live one included, after U */
    int64_t peak_activations;          /* slots: start of F to end of W or BW */
};

struct pl_device_metrics {
    double busy_s;
    int64_t peak_activations; /* slots of all its instances together */
};

struct pl_metrics {
    double makespan_s;        /* T: global end */
    double ideal_s;           /* work of the busiest device */
    double step_s;            /* mean spacing of U on stage 0 over the steady window */
    double bubble;            /* (T - ideal) / T */
    double bubble_over_ideal; /* (T - ideal) / ideal */
    double bubble_parallelogram; /* T = max over stages of last end - first start */
    double bubble_steady;        /* 1 - busiest device's work per update / step_s */
    /* Updates of the steady window, [from, to). Synchronous: all. Asynchronous: whole
     * periods of c updates (pl_schedule_period: ceil(P/m)) from update c on, ending at
     * least c before the end (the drain) when the run has 3 c updates. Empty for
     * shorter than 2 c: then step_s, bubble_steady and tau are NaN and weight_versions
     * 0. From 2 c to 3 c updates the drain is in it: where that makes a step shorter
     * than the busiest device's work, step_s and bubble_steady are NaN. */
    int64_t steady_from, steady_to;
    int stages;                     /* instances */
    struct pl_stage_metrics *stage; /* [stages], owned: pl_metrics_free */
    int devices;
    struct pl_device_metrics *device; /* [devices], owned */
    /* Microbatches of the steady window with each delay: tau_count[c * tau_bins + tau]
     * of model chunk c, tau up to the largest of all chunks; owned. */
    int chunks;
    int64_t tau_bins; /* 0: no steady window */
    int64_t *tau_count;
};

void pl_metrics_compute(const struct pl_timeline *timeline,
                        const struct pl_schedule *sched,
                        const struct pl_versions *versions, struct pl_metrics *out);
void pl_metrics_free(struct pl_metrics *metrics);

#endif
