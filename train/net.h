/* The decoder as a list of layers on pipeline stages; internal to train/net*.c and
 * layers/. Every buffer is a slice of one device arena that the net owns; a layer
 * writes its output and what its backward needs into its own buffers, so one batch is
 * in flight at a time. */
#ifndef PL_TRAIN_NET_H
#define PL_TRAIN_NET_H

#include "train/problem.h"

enum { PL_LAYER_PARAMS = 4, PL_LAYER_BUFFERS = 6, PL_LAYER_SCRATCH = 3 };

struct pl_net;

struct pl_layer {
    const struct pl_layer_type *type;
    int stage, index;                /* index: transformer block, for names */
    int param[PL_LAYER_PARAMS];      /* indices into the problem's parameters */
    float *buffer[PL_LAYER_BUFFERS]; /* saved from forward to backward; [0] = output */
    size_t buffer_floats[PL_LAYER_BUFFERS];
    size_t scratch_floats[PL_LAYER_SCRATCH]; /* needed only inside backward */
    const float *in; /* output of the layer before, (rows, hidden) */
};

/* One forward, or one forward and backward, of a batch. */
struct pl_pass {
    const struct pl_batch *batch;
    int rows;                    /* B * T */
    const float *const *weights; /* blocks by stage: forward's, then backward's */
    float *const *grads;         /* NULL: loss only */
    double scale;
    double loss; /* set by the head: mean over rows */
};

struct pl_layer_type {
    const char *name, *summary, *source;
    /* Parameters, buffers and scratch, in the order they lie in memory. */
    void (*declare)(struct pl_net *net, struct pl_layer *l);
    int (*forward)(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass);
    /* net->dx: gradient of the layer's output on entry, of its input on return. */
    int (*backward)(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass);
};

struct pl_net {
    const struct pl_device *dev;
    struct pl_problem *problem; /* the object whose state this is */
    struct pl_model model;
    int max_rows, T; /* bounds of a batch: rows, and sequence length */
    int n_layers;
    struct pl_layer *layers;
    double *init_sd; /* [n_params] of the normal; 0: constant 1 (gains) */
    float *arena;    /* device memory behind every pointer below */
    size_t arena_floats;
    float *dx; /* (rows, hidden) */
    float *scratch[PL_LAYER_SCRATCH];
};

extern const struct pl_layer_type pl_layer_embed, pl_layer_attention, pl_layer_mlp,
    pl_layer_head;

/* For declare(): append a parameter to the layer's stage; its index. init_sd as in
 * pl_net. The name is "format" with the block number. */
int pl_net_param(struct pl_net *net, const struct pl_layer *l, enum pl_param_kind kind,
                 int rows, int cols, double init_sd, const char *format);

/* Standard deviations of the initial matrices, plain and of those that end a residual
 * branch (net_init.c). */
double pl_net_init_sd(const struct pl_model *model, bool ends_branch);
int pl_net_init(struct pl_problem *p, uint64_t seed, float *const *weights);

/* Tensor number param in the blocks of a pass. */
static inline const float *pl_net_weight(const struct pl_net *net,
                                         const struct pl_pass *pass, int param)
{
    const struct pl_param *p = &net->problem->params[param];
    return pass->weights[p->stage] + p->offset;
}

static inline float *pl_net_grad(const struct pl_net *net, const struct pl_pass *pass,
                                 int param)
{
    const struct pl_param *p = &net->problem->params[param];
    return pass->grads[p->stage] + p->offset;
}

#endif
