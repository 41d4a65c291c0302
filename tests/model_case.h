/* The small decoder of the tests of nets: four layers, grouped heads, no two sizes
 * alike. */
#ifndef PL_TESTS_MODEL_CASE_H
#define PL_TESTS_MODEL_CASE_H

#include "sim/model.h"

static inline struct pl_model model_case(void)
{
    return (struct pl_model){.layers = 4,
                             .hidden = 32,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 8,
                             .ffn = 44,
                             .vocab = 67,
                             .rope_theta = 1e4,
                             .norm_eps = 1e-5};
}

#endif
