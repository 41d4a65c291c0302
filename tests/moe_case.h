/* Four kinds of mixtures of experts for tests: OLMoE, Qwen2-MoE, DeepSeek-V3 without
 * latent attention, Mixtral. */
#ifndef PL_TESTS_MOE_CASE_H
#define PL_TESTS_MOE_CASE_H

#include "sim/model.h"

enum { EXPERTS = 6, KINDS = 4 };

static inline struct pl_model kind(int i)
{
    struct pl_model m = {.layers = 4,
                         .hidden = 32,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 8,
                         .ffn = 44,
                         .vocab = 67,
                         .rope_theta = 1e4,
                         .norm_eps = 1e-5,
                         .experts = EXPERTS,
                         .experts_per_token = 2,
                         .expert_ffn = 20,
                         .aux_loss = 0.01};
    m.qk_norm = i == 0 ? PL_QK_FULL : PL_QK_NONE;
    m.z_loss = i == 0 ? 0.001 : 0;
    m.shared_ffn = i == 1 || i == 2 ? 24 : 0;
    m.shared_gate = i == 1;
    m.bias = i == 1 ? PL_BIAS_QKV : PL_BIAS_NONE;
    m.scoring = i == 2 ? PL_SCORING_SIGMOID : PL_SCORING_SOFTMAX;
    m.router_bias = i == 2;
    m.seq_aux = i == 2;
    m.dense_layers = i == 2;
    m.routed_scale = i == 2 ? 2.5 : 1;
    m.bias_rate = 0.01;
    m.norm_topk = i > 1;
    return m;
}

#endif
