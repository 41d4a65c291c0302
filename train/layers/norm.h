/* The model's norm: RMSNorm, or LayerNorm with or without bias. */
#ifndef PL_TRAIN_LAYERS_NORM_H
#define PL_TRAIN_LAYERS_NORM_H

#include "train/net.h"

/* Declares gain and bias NAME.weight and NAME.bias in param[0] and param[1]. */
void pl_norm_declare(struct pl_net *net, struct pl_layer *l, int param[2],
                     const char *name);

#endif
