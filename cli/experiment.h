/* An experiment: the arms of a configuration, each simulated and ready to train. One
 * seed of one arm is a job. Owned: pl_experiment_free; config is borrowed. */
#ifndef PL_CLI_EXPERIMENT_H
#define PL_CLI_EXPERIMENT_H

#include "base/config.h"
#include "cli/segments.h"
#include "sim/model.h"
#include "sim/simulate.h"
#include "train/run.h"
#include "train/safetensors.h"

/* What computes where that depends on the machine: train.device auto, and a precision
 * that falls back to fp32. Empty: as the keys say. */
struct pl_computed {
    char device[16], precision[16];
};

struct pl_arm {
    int number;               /* in the product of the axes */
    char *name;               /* labels joined by '+' */
    struct pl_config *config; /* the arm's own, owned */
    struct pl_model model;
    struct pl_problem_known known; /* of what is trained */
    struct pl_cost cost;           /* per microbatch of this arm */
    int64_t cost_factor;      /* this arm's microbatch over the one the costs are for */
    struct pl_simulation sim; /* of its longest segment, for a Gantt */
    struct pl_versions versions; /* of the whole run */
    struct pl_segment segments[PL_MAX_SEGMENTS];
    const char *schedules[PL_MAX_SEGMENTS]; /* names */
    int n_segments;
    uint64_t data;    /* its fingerprint; 0: pl_experiment_data was not called */
    double end_s;     /* simulated end of the last update */
    bool nostash;     /* of its schedules one keeps no old weights for the backward */
    double *stage_c;  /* corrector.stage_c, [stages]; NULL: not given */
    uint64_t weights; /* checksum of model.weights; 0: weights are drawn */
    bool global_clip; /* clip.scope, resolved; U is then a barrier over stages */
    struct pl_computed computed; /* set by the session */
};

struct pl_experiment {
    const struct pl_config *config;
    int n_arms, n_seeds;
    struct pl_arm *arms;
    /* Where jobs leave their weights: SAVE/ARM-SEED; set by the session, NULL: nowhere.
     */
    const char *save;
    const struct pl_tensor_type *save_type;
    uint64_t save_shard; /* most bytes of a file of weights */
};

/* Expand the arms, simulate every schedule, check that they can be trained. Errors:
 * PL_ECONFIG, PL_EUNSUP: the arm and the key at fault are named. */
int pl_experiment_new(const struct pl_config *config, struct pl_experiment *out);
void pl_experiment_free(struct pl_experiment *experiment);

/* Job j = arm j / n_seeds, seed number j % n_seeds. */
static inline int pl_experiment_jobs(const struct pl_experiment *e)
{
    return e->n_arms * e->n_seeds;
}

static inline const struct pl_arm *pl_job_arm(const struct pl_experiment *e, int job)
{
    return &e->arms[job / e->n_seeds];
}

static inline uint64_t pl_job_seed(const struct pl_experiment *e, int job)
{
    return pl_config_seed(e->config, job % e->n_seeds);
}

/* The arm's rate schedule, from its rate.* keys. */
struct pl_rate pl_arm_rate(const struct pl_arm *arm);
/* clip.scope as it is trained with; none where clip.norm is 0. */
enum pl_clip_scope pl_arm_clip_scope(const struct pl_arm *arm);

/* delay.fidelity, resolved. */
enum pl_fidelity pl_arm_fidelity(const struct pl_arm *arm);

/* Look at the data of every arm, before jobs are run or their fingerprints taken.
 * Errors: those of pl_setup_data. */
int pl_experiment_data(struct pl_experiment *e);

/* "adamw+2bw, seed 1"; caller frees. */
char *pl_job_name(const struct pl_experiment *e, int job);
/* What identifies a job's results: everything in the arm's configuration that changes a
 * row, the content of its data (sampled, train/data.h), and the seed. */
uint64_t pl_job_fingerprint(const struct pl_experiment *e, int job);

/* Folder of a job's weights; caller frees. */
char *pl_job_save_folder(const struct pl_experiment *e, int job);
/* Did the job leave its weights there, those after its last update or any? */
bool pl_job_saved(const struct pl_experiment *e, int job, bool last);

/* Open device, data and problem and train one job in this process. stop may be set by a
 * signal handler. Errors: those of the parts. */
int pl_job_run(const struct pl_experiment *e, int job, const char *checkpoint,
               const volatile sig_atomic_t *stop,
               void (*on_row)(void *, const struct pl_row *),
               void (*on_eval)(void *, const struct pl_eval *), void *context,
               struct pl_run_result *out);

/* What a job of an arm will take. */
struct pl_probe {
    struct pl_run_memory memory;
    bool host;   /* of the machine's own memory, not a device's */
    int at_once; /* sequences of the largest batch */
    int fits; /* more than are free: the largest train.at_once that would fit, with */
    size_t fits_bytes; /* so many; 0: none does */
    enum pl_fidelity fidelity;
    char device[256]; /* name, kernels, libraries */
    struct pl_computed computed;
};

/* Everything that would make a job of the arm fail: data, device, what cannot be
 * combined, with numbers also those of model.weights, which takes a read of all; and
 * what a job will take. Allocates no workspace. */
int pl_arm_probe(const struct pl_arm *arm, bool numbers, struct pl_probe *out);
/* What would compute; opens the device. Errors: as pl_device_get. */
int pl_arm_computed(const struct pl_arm *arm, struct pl_computed *out);

/* Open what a job of the arm opens, call use with what its first seed would run,
 * without files, and close. wrap gets the device that holds the weights (0) and the one
 * that products go to (1) and gives what stands in front of it; NULL: nothing. Errors:
 * those of the parts and of use. */
int pl_arm_with_spec(const struct pl_arm *arm,
                     const struct pl_device *(*wrap)(int i, const struct pl_device *),
                     int (*use)(void *context, const struct pl_run_spec *spec),
                     void *context);

#endif
