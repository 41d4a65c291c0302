/* The matrices of one transformer block, the one list that parameter counts, GEMMs and
 * activation sizes are derived from. */
#ifndef PL_SIM_WEIGHTS_H
#define PL_SIM_WEIGHTS_H

#include "sim/model.h"

/* MTP: a multi-token prediction module, a layer like the last one behind a projection
 * of the layer's input and the next token's embedding (DeepSeek-V3 2412.19437,
 * section 2.2); it is in no parameter count of struct pl_model_count. */
enum pl_block {
    PL_BLOCK_DENSE,
    PL_BLOCK_MOE,
    PL_BLOCK_EMBEDDING,
    PL_BLOCK_HEAD,
    PL_BLOCK_MTP,
    PL_N_BLOCKS
};

/* How tensor parallelism cuts a matrix [in, out]. */
enum pl_cut {
    PL_CUT_COLUMN, /* out is divided; the input is whole */
    PL_CUT_ROW,    /* in is divided; the output is a sum over the group */
    PL_CUT_NONE    /* every rank has all of it */
};

enum { PL_MAX_WEIGHTS = 20 };

struct pl_weight {
    const char *name;
    int64_t in, out; /* K and N of x [tokens, in] -> [tokens, out]; in 0: a vector */
    int64_t vectors; /* parameters beside the matrix: biases, gains */
    enum pl_cut cut;
    bool expert; /* a routed expert's: model->experts copies, divided by ep */
    bool lookup; /* a table that is read, not multiplied with */
    bool tied;   /* the head's use of the embedding table */
};

/* Fill out with the weights of a block, in the order of the forward pass; returns how
 * many. */
int pl_weights(const struct pl_model *model, enum pl_block block,
               struct pl_weight out[PL_MAX_WEIGHTS]);

/* Parameters of one copy: in * out + vectors. */
uint64_t pl_weight_params(const struct pl_weight *weight);

#endif
