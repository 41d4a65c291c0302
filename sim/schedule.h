/* Schedules: pure combinatorics of the shape, no clock. One generator a file under
 * sim/schedules/, all listed in pl_schedule_types. A schedule owns its arrays
 * (pl_schedule_free); types are constants.
 *
 * The model is cut into C chunks (virtual stages) in model order, P * v of them. A
 * schedule holds R copies of the whole model (replicas; several for bidirectional
 * pipelines); every microbatch belongs to one replica. Chunk c of replica r is instance
 * q = r * C + c and lives on device[q]. */
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
    int32_t chunk; /* instance q */
    int16_t kind;
    int16_t pair; /* 1: runs together with the next op of the device (F and BW) */
};

struct pl_custom;

struct pl_shape {
    int P;           /* devices */
    int m;           /* microbatches per update */
    int64_t updates; /* updates to run; microbatches = m * updates */
    int v;           /* model chunks per device; 0: the schedule's own */
    bool free_order; /* devices take what is there: pl_engine_run_free */
    int group;       /* interleaving: microbatches in a group; 0: P */
    int limit;       /* automatic schedules: activations that a device may hold, in
                      * microbatches of a whole stage; 0: the schedule's own */
    double released; /* part of an activation that B frees, 0..1; the rest stays for W
                      * (automatic schedules' memory limit) */
    struct pl_custom *custom; /* ops read from a file (sim/custom.h), or NULL */
};

/* Where the instances live. */
struct pl_layout {
    int P, C, R; /* devices, model chunks, replicas */
    int *device; /* [R * C] */
};

/* Closed forms of a schedule under uniform costs; NaN where there is none. */
struct pl_closed {
    double makespan_s; /* whole run, to the global end */
    double span_s;     /* whole run, longest of one device (parallelogram) */
    double bubble_over_ideal;
    double step_s; /* steady state of an asynchronous schedule */
};

struct pl_schedule_type;

struct pl_schedule {
    const struct pl_schedule_type *type;
    struct pl_shape shape; /* v resolved */
    struct pl_layout layout;
    int64_t n_ops;
    int64_t *first;    /* [P+1] device d issues ops[first[d]] .. ops[first[d+1]-1] */
    struct pl_op *ops; /* F, B, W, BW in issue order. U is not issued: it runs as soon
                        * as its gradients are there. */
};

/* What a rule may answer instead of a version number. */
enum {
    PL_READS_LIVE = -1,  /* whatever is live on the instance when F starts */
    PL_READS_FIRST = -2, /* what chunk 0 read for the same microbatch */
    PL_READS_GROUP = -3, /* live when the group's first F started on the instance */
};

enum { PL_REPLICAS_HALF = -1 }; /* P / 2 copies of the model */

struct pl_schedule_type {
    const char *name, *summary, *source;
    bool async; /* no flush between updates */
    /* One version per microbatch on all stages: fidelity and clip.scope may be
     * `global`, and are by default. */
    bool global_version;
    bool nostash;        /* backward reads the live version, not what forward read */
    bool post_validated; /* U does not wait for the global norm: a wrong step is undone
                          * (zero bubble) */
    bool slots;        /* asynchronous, in slots of F and BW of two microbatches: up to
                        * 2 P forwards, not P, before the first backward */
    bool paired_calls; /* blocking exchange: a forward and the backward behind it
                        * communicate together (Megatron, interleaved) */
    int default_m;     /* 0: P for asynchronous, else 2 P */
    int default_v;     /* chunks per device; 0: 1 */
    int replicas;      /* 0: 1; PL_REPLICAS_HALF */
    bool any_v;        /* shape.v may differ from default_v */
    bool from_file;    /* the ops are shape.custom */
    bool grouped;      /* shape.group counts */
    bool limited;      /* shape.limit and shape.released count */
    /* Device of model chunk c of a replica; NULL: c mod P. */
    int (*place)(const struct pl_shape *shape, int chunk, int replica);
    /* May be NULL. Errors: PL_EUNSUP with the nearest shape that will do. */
    int (*check)(const struct pl_shape *shape);
    /* Write the ops of every device in turn (sim/schedules/emit.h); cost: for
     * schedulers that plan by it. */
    int (*emit)(const struct pl_cost *cost, struct pl_schedule *out);
    /* Op k of a device in issue order, false after the last: for runs of any length
     * (sim/stream.h). NULL: only whole schedules. */
    bool (*op_at)(const struct pl_shape *shape, int device, int64_t k,
                  struct pl_op *out);
    /* Version that the forward of a group must read on a model chunk, or PL_READS_*. */
    int64_t (*reads)(const struct pl_shape *shape, int chunk, int64_t group);
    /* Closed forms beside the simulated numbers; costs are uniform when called. May be
     * NULL, as the next. */
    void (*closed)(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out);
    /* Per instance: delay (min, max over a group) and weight versions in the steady
     * state, peak activations of its device in microbatches of one chunk; -1 where
     * there is no closed form. */
    void (*closed_stage)(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations);
    /* Schedules that predict weights: how many updates ahead of the version that the
     * map gives, in forward and in backward; NULL for the others. */
    void (*horizon)(const struct pl_shape *shape, int chunk, int64_t *forward,
                    int64_t *backward);
};

extern const struct pl_schedule_type *const pl_schedule_types[]; /* NULL-terminated */
const char *const *pl_schedule_names(void);                      /* same, names only */
/* NULL when unknown. */
const struct pl_schedule_type *pl_schedule_find(const char *name);

/* Updates that an asynchronous schedule needs to fill: ceil(P / m), or ceil(2 P / m)
 * in slots. */
int64_t pl_schedule_period(const struct pl_schedule_type *type, int P, int m);
/* Updates to run when the user gives none: 1, or ceil(2P/m) + 8 when asynchronous, and
 * then at least the 3 periods that a steady window away from the drain takes. */
int64_t pl_schedule_default_updates(const struct pl_schedule_type *type, int P, int m);

/* Replace zeros of the shape by the type's defaults and check it. Errors: PL_ECONFIG
 * (P, m or v out of range, too many ops for memory: named with the count), PL_EUNSUP
 * (shape refused by the schedule, with the reason). */
int pl_shape_resolve(const struct pl_schedule_type *type, struct pl_shape *shape);
/* The same for a stream, which needs no memory for its ops: any number of updates. */
int pl_shape_resolve_stream(const struct pl_schedule_type *type,
                            struct pl_shape *shape);
/* Do the ops of a resolved shape fit in memory? PL_ECONFIG, PL_EMEM with the count. */
int pl_shape_fits(const struct pl_shape *shape);
/* Drop the shape's hold on a custom table; copies of the shape borrow it. */
void pl_shape_free(struct pl_shape *shape);
/* Layout of a resolved shape; released by pl_layout_free. */
void pl_layout_new(const struct pl_schedule_type *type, const struct pl_shape *shape,
                   struct pl_layout *out);
void pl_layout_free(struct pl_layout *layout);

/* Generate; cost (borrowed, for this layout) may be NULL for types that do not plan by
 * it. The schedule holds shape.custom itself. Errors: those of pl_shape_resolve and of
 * the type. */
int pl_schedule_new(const struct pl_schedule_type *type, const struct pl_shape *shape,
                    const struct pl_cost *cost, struct pl_schedule *out);
/* Every microbatch once through all chunks of one replica, each op on its device, F
 * before B before W where they share a device. PL_ECHECK. */
int pl_schedule_check(const struct pl_schedule *schedule);
void pl_schedule_free(struct pl_schedule *schedule);

#endif
