/* One trainable tensor: where it lives and which rule it takes. Plain data. */
#ifndef PL_TRAIN_PARAM_H
#define PL_TRAIN_PARAM_H

#include <stddef.h>

enum pl_param_kind {
    PL_PARAM_MATRIX, /* hidden 2-D weight (rows = outputs, cols = inputs) */
    PL_PARAM_EMBED,  /* (vocab, hidden) table */
    PL_PARAM_HEAD,   /* (vocab, hidden) output matrix */
    PL_PARAM_VECTOR, /* gains, biases, coordinates of convex problems: rows = 1 */
    /* Selection biases of a router: moved against the sign of their "gradient", the
     * load above the mean, by the rate balance_rate of the problem, not by the
     * optimizer; no part of any norm. They end a stage's block. */
    PL_PARAM_BALANCE
};

struct pl_param {
    char name[64]; /* Hugging Face name, e.g. model.layers.3.mlp.up_proj.weight; a model
                      of GPT-2's kind has the same names (train/net.h) */
    int stage;     /* pipeline stage = model chunk */
    int rows, cols;
    size_t offset; /* floats from the start of the stage's block */
    enum pl_param_kind kind;
};

static inline size_t pl_param_size(const struct pl_param *p)
{
    return (size_t)p->rows * (size_t)p->cols;
}

#endif
