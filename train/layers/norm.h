/* The model's norm: RMSNorm, or LayerNorm with or without bias. */
#ifndef PL_TRAIN_LAYERS_NORM_H
#define PL_TRAIN_LAYERS_NORM_H

#include "train/net.h"

/* Declares gain and bias NAME.weight and NAME.bias in param[0] and param[1]. */
void pl_norm_declare(struct pl_net *net, struct pl_layer *l, int param[2],
                     const char *name);

/* Floats of stats for some rows: rstd, and LayerNorm's means before it. */
size_t pl_norm_stats(const struct pl_model *model, size_t rows);
/* y = norm(x), (rows, hidden). */
int pl_norm(const struct pl_net *net, const struct pl_pass *pass, const int param[2],
            const float *x, float *y, float *stats);
/* dx += what dy, the gradient of y, says of x, or = it where dx is dy; gain's and
 * bias's gradients += . */
int pl_norm_back(const struct pl_net *net, const struct pl_pass *pass,
                 const int param[2], const float *x, const float *stats,
                 const float *dy, float *dx);

#endif
