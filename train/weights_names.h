/* Which of our parameters make up which stored tensor; private to train/weights*.c. */
#ifndef PL_TRAIN_WEIGHTS_NAMES_H
#define PL_TRAIN_WEIGHTS_NAMES_H

#include "train/problem.h"
#include "train/safetensors.h"

enum { PL_WEIGHT_PARTS = 3 };

/* A stored tensor: our tensors one after another along the outputs; transposed: stored
 * (inputs, outputs). Vectors have rank 1. */
struct pl_weight {
    struct pl_tensor tensor;            /* name owned */
    int n_parts, part[PL_WEIGHT_PARTS]; /* parameter numbers */
    bool transposed;
};

/* The stored tensors of a problem for a model type of Hugging Face (NULL: our names);
 * *list owned: pl_weight_list_free. Returns their number. */
int pl_weight_list(const char *model_type, const struct pl_problem *problem,
                   struct pl_weight **list);
void pl_weight_list_free(struct pl_weight *list, int n);

/* Prefix that files saved from the bare decoder lack: "transformer." or "model.". */
const char *pl_weight_prefix(const char *model_type);
/* Is it a tensor that old files hold beside the weights: masks and constants? */
bool pl_weight_ignored(const char *name);

#endif
