/* Four kinds of mixtures of experts for tests: OLMoE, Qwen2-MoE, DeepSeek-V3 without
 * latent attention, Mixtral. */
#ifndef PL_TESTS_MOE_CASE_H
#define PL_TESTS_MOE_CASE_H

#include "tests/model_case.h"

enum { EXPERTS = 6, KINDS = 4 };

static inline struct pl_model kind(int i)
{
    struct pl_model m = model_case();
    m.experts = EXPERTS;
    m.experts_per_token = 2;
    m.expert_ffn = 20;
    m.aux_loss = 0.01;
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
