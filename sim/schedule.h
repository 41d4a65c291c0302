/* Schedules: pure combinatorics of (P, m, updates), no time. One generator a file under
 * sim/schedules/, all listed in pl_schedule_types. A schedule owns its arrays
 * (pl_schedule_free); types are constants. */
#ifndef PL_SIM_SCHEDULE_H
#define PL_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/cost.h"

enum pl_op_kind {
    PL_OP_F,  /* forward of one microbatch */
    PL_OP_B,  /* input gradient */
    PL_OP_W,  /* weight gradient */
    PL_OP_BW, /* both, fused; the input gradient leaves when it ends */
    PL_OP_U,  /* optimizer update; micro is the update number */
    PL_N_OP
};
extern const char *const pl_op_names[PL_N_OP];

struct pl_op {
    int64_t micro; /* microbatch number from 0 over the whole run; for U the update */
    int32_t chunk; /* model chunk = virtual stage */
    int32_t kind;
};

struct pl_shape {
    int P;           /* devices = stages */
    int m;           /* microbatches per update */
    int64_t updates; /* updates to run; microbatches = m * updates */
};

/* Closed forms of a schedule under uniform costs; NaN where there is none. */
struct pl_closed {
    double makespan_s; /* whole run */
    double bubble_over_ideal;
    double step_s; /* steady state of an asynchronous schedule */
};

struct pl_schedule_type;

struct pl_schedule {
    const struct pl_schedule_type *type;
    struct pl_shape shape;
    int64_t n_ops;
    int64_t *first;    /* [P+1] ops of stage s are ops[first[s]] .. ops[first[s+1]-1] */
    struct pl_op *ops; /* in issue order per stage; U stands right after its last BW */
};

struct pl_schedule_type {
    const char *name, *summary, *source;
    bool async; /* no flush between updates */
    /* One version per microbatch on all stages: fidelity and clip.scope may be
     * `global`, and are by default. */
    bool global_version;
    int default_m; /* 0: P for asynchronous, else 2 P */
    int (*check)(const struct pl_shape *shape);
    int (*emit)(const struct pl_shape *shape, struct pl_schedule *out);
    /* Version that the forward of group must read, or -1: whatever is live when it
     * runs. */
    int64_t (*reads)(const struct pl_shape *shape, int64_t group);
    /* Closed forms beside the simulated numbers; costs are uniform when called. */
    void (*closed)(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out);
    /* Per stage: delay (min, max over a group) and weight versions in the steady state,
     * peak activations; -1 where there is no closed form. */
    void (*closed_stage)(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations);
};

extern const struct pl_schedule_type *const pl_schedule_types[]; /* NULL-terminated */
const char *const *pl_schedule_names(void);                      /* same, names only */
/* NULL when unknown. */
const struct pl_schedule_type *pl_schedule_find(const char *name);

/* Updates to run when the user gives none: 1, or ceil(2P/m) + 8 when asynchronous. */
int64_t pl_schedule_default_updates(const struct pl_schedule_type *type, int P, int m);

/* Generate. Errors: PL_ECONFIG (P or m out of range, too many ops for memory: named
 * with the count), PL_EUNSUP (shape refused by the schedule, with the reason). */
int pl_schedule_new(const struct pl_schedule_type *type, const struct pl_shape *shape,
                    struct pl_schedule *out);
/* Each op once, F before B before W of a microbatch, U after its group. PL_ECHECK. */
int pl_schedule_check(const struct pl_schedule *schedule);
void pl_schedule_free(struct pl_schedule *schedule);

#endif
