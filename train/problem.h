/* What can be trained: something that gives loss and gradient at weights split into
 * stages. The kinds are the table of train/problem.c. The object owns its tables and
 * workspaces (pl_problem_free); weights and gradients belong to the caller: one block
 * of stage_floats[s] device floats per stage. */
#ifndef PL_TRAIN_PROBLEM_H
#define PL_TRAIN_PROBLEM_H

#include <stdint.h>

#include "gpu/device.h"
#include "sim/model.h"
#include "train/param.h"
#include "train/spectrum.h"

struct pl_batch {
    int B, T;
    int micro; /* sequences of one microbatch, of this rank's part of it: a divisor of
                  B, what experts are balanced over; 0: B */
    const int32_t *tokens, *targets; /* (B,T) device memory; NULL for convex problems */
    uint64_t seed;                   /* with index: identity of the sample, for noise */
    int64_t index;
    /* NULL, or: called when the work of this batch has been issued, before its loss is
     * waited for (by problems on data). A failure is the batch's. */
    int (*meanwhile)(void *context);
    void *context;
};

/* What the routers of a mixture of experts did with the last batch. balance: 1 when all
 * experts get the same (Megatron's load_balancing_loss; transformers' is
 * experts_per_token times it); z: mean of (log sum exp logits)^2. */
struct pl_routers {
    int layers, experts; /* layers 0: the problem has none */
    double aux;          /* what the gradient had beside the loss */
    double balance, z;   /* the same without coefficients, mean over layers; NaN: the
                            coefficient is 0 */
    int32_t *load;       /* (layers,experts) rows that chose it */
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
    double balance_rate;       /* of parameters of kind PL_PARAM_BALANCE */
    struct pl_routers routers;
    void *state; /* of the type */
};

/* What to open. Members after T are settings of the kinds that train no model; their
 * meaning is in base/keys.c, problem.*. */
struct pl_problem_spec {
    const struct pl_problem_type *type;
    const struct pl_model *model; /* kind model: borrowed until it is open */
    int max_B, T;                 /* largest batch */
    bool dry;      /* kind model: no workspace, to ask for sizes; it computes nothing */
    uint64_t seed; /* of everything fixed: rotation, samples, teacher */
    int size, cols;
    struct pl_spectrum spectrum;
    double rotation, noise;
    int samples; /* logistic, mlp */
    bool full;
    double l2; /* logistic */
    int rank;  /* factor */
    double start;
    int layers, width, outputs, activation; /* mlp; the last by pl_dense_activations */
    bool classes;                           /* classification, not regression */
};

/* What is known exactly of the whole function f, for theory; NaN: not known. L bounds
 * ||grad f(x) - grad f(y)||_* / ||x - y||: in the Euclidean norm, and in the norm of
 * LMO methods (the largest of the tensors' norms: spectral of a matrix, largest entry
 * of a vector; dual the sum of nuclear and l1 norms), where it may be above the least.
 */
struct pl_problem_known {
    double minimum; /* inf f */
    double L, L_lmo;
};

struct pl_problem_type {
    const char *name, *summary, *source;
    /* The settings of pl_problem_spec that it reads, as the last parts of their keys
     * problem.*, separated by spaces. */
    const char *settings;
    bool on_data; /* batches are token windows: model.*, data.*, train.seq are read */
    const void *kind; /* constants for the functions below, or NULL */
    /* A problem on P stages; spec->type is this one. Errors: PL_ECONFIG, PL_EMEM; *out
     * is NULL then. */
    int (*open)(const struct pl_problem_spec *spec, const struct pl_device *device,
                int P, struct pl_problem **out);
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
    /* Norms of the exact gradient of the whole function: Euclidean, and the dual of LMO
     * methods (NaN with a matrix of more than 256 rows and columns). NULL: no such. */
    int (*slope)(struct pl_problem *p, const float *const *weights, double *norm,
                 double *dual);
    struct pl_problem_known (*known)(const struct pl_problem *p); /* NULL: nothing is */
};

extern const struct pl_problem_type pl_problem_model, pl_problem_quadratic,
    pl_problem_logistic, pl_problem_factor, pl_problem_mlp;
extern const char *const pl_dense_activations[]; /* NULL-terminated */

/* The table of kinds: names, NULL-terminated; NULL for an unknown name. */
const char *const *pl_problem_names(void);
const struct pl_problem_type *pl_problem_find(const char *name);

/* The tensors of a model on P stages, by stage, then offset, without a device: *n of
 * them, owned by the caller (free). Names are Hugging Face's (train/net.h). Errors:
 * PL_ECONFIG, PL_EUNSUP; none then. */
int pl_net_params(const struct pl_model *model, int P, int *n,
                  struct pl_param **params);

/* The decoder that model describes on P stages; max_B, T bound the batches it will see
 * (workspaces are allocated here, never later). Errors: PL_ECONFIG, PL_EMEM; *out NULL
 * then. */
int pl_problem_net(const struct pl_device *device, const struct pl_model *model, int P,
                   int max_B, int T, struct pl_problem **out);

/* Floats of a stage that descend a gradient: all but the PL_PARAM_BALANCE at its end.
 */
size_t pl_problem_descended(const struct pl_problem *p, int stage);

void pl_problem_free(struct pl_problem *p);
/* Bytes of workspace held (for the memory line printed before a run). */
size_t pl_problem_bytes(const struct pl_problem *p);
struct pl_problem_known pl_problem_known(const struct pl_problem *p);

#endif
