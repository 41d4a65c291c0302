/* What can be trained: something that gives loss and gradient at weights split into
 * stages. Members: llama (train/net.c), quadratic (train/quadratic.c). The object owns
 * its tables and workspaces (pl_problem_free); weights and gradients belong to the
 * caller: one block of stage_floats[s] device floats per stage. */
#ifndef PL_TRAIN_PROBLEM_H
#define PL_TRAIN_PROBLEM_H

#include <stdint.h>

#include "gpu/device.h"
#include "sim/model.h"
#include "train/param.h"

struct pl_batch {
    int B, T;
    const int32_t *tokens, *targets; /* (B,T) device memory; NULL for convex problems */
    uint64_t seed;                   /* with index: identity of the sample, for noise */
    int64_t index;
};

struct pl_problem {
    const struct pl_problem_type *type;
    const struct pl_device *device;
    int n_stages, n_params;
    struct pl_param *params;   /* [n_params] by stage, then offset */
    int *first_param;          /* [n_stages+1] */
    size_t *stage_floats;      /* [n_stages] */
    bool shared_across_stages; /* a tensor used on two stages (tied head): needs one
                                  version per microbatch on all stages */
    void *state;               /* of the type */
};

struct pl_problem_type {
    const char *name, *summary, *source;
    /* Initial weights, a pure function of seed. */
    int (*init)(struct pl_problem *p, uint64_t seed, float *const *weights);
    /* Mean loss over the batch; gradients += scale * d loss / d weights. Forward reads
     * wf, backward reads wb (the same pointers unless nostash). */
    int (*gradient)(struct pl_problem *p, const struct pl_batch *batch,
                    const float *const *wf, const float *const *wb, double scale,
                    float *const *grads, double *loss);
    int (*loss)(struct pl_problem *p, const struct pl_batch *batch,
                const float *const *weights, double *loss);
    void (*free)(struct pl_problem *p);          /* state only */
    size_t (*bytes)(const struct pl_problem *p); /* of workspace, host and device */
};

/* Llama-style decoder on P stages; max_B, T bound the batches it will see (workspaces
 * are allocated here, never later). Errors: PL_ECONFIG, PL_EMEM; *out NULL then. */
int pl_problem_llama(const struct pl_device *device, const struct pl_model *model,
                     int P, int max_B, int T, struct pl_problem **out);

/* f(x) = 1/2 sum_i h_i x_i^2, curvatures h[n] in the eigenbasis; rotate != 0 puts a
 * seeded orthogonal basis between x and it; noise sd of an additive gaussian gradient
 * noise per coordinate. n coordinates split evenly over P stages. init: every
 * eigencoordinate 1. */
int pl_problem_quadratic(const struct pl_device *device, const double *h, int n, int P,
                         uint64_t rotate, double noise, struct pl_problem **out);

void pl_problem_free(struct pl_problem *p);
/* Bytes of workspace held (for the memory line printed before a run). */
size_t pl_problem_bytes(const struct pl_problem *p);

#endif
