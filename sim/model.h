/* Description of a decoder-only transformer: immutable plain data, passed by pointer,
 * owned by the caller. All zeros beyond the first line are a Llama: RMSNorm, SwiGLU, no
 * biases, rotary positions, dense. */
#ifndef PL_SIM_MODEL_H
#define PL_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"

enum pl_norm { PL_NORM_RMS, PL_NORM_LAYER };
enum pl_mlp { PL_MLP_SWIGLU, PL_MLP_GELU };
/* none; qkv; qkv and attention output; every matrix of a block, and LayerNorm */
enum pl_bias { PL_BIAS_NONE, PL_BIAS_QKV, PL_BIAS_ATTENTION, PL_BIAS_ALL };
/* none; gain of one head (Qwen3); gain over all heads (OLMoE) */
enum pl_qk_norm { PL_QK_NONE, PL_QK_HEAD, PL_QK_FULL };
/* What a router makes of its logits: probabilities, or each expert's own score. */
enum pl_scoring { PL_SCORING_SOFTMAX, PL_SCORING_SIGMOID };
/* Initial matrices: normal and, where a residual branch ends, over sqrt(2 layers);
 * plain normal; normal cut at 3 sd; as the first with sd hidden^-1/2. */
enum pl_init { PL_INIT_SCALED, PL_INIT_NORMAL, PL_INIT_TRUNCATED, PL_INIT_WIDTH };

struct pl_model {
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    bool tied;         /* head shares the embedding table */
    double rope_theta; /* base of the rotary angles */
    double norm_eps;   /* of the norms */

    enum pl_norm norm;
    enum pl_mlp mlp;
    enum pl_bias bias;
    enum pl_qk_norm qk_norm;
    int positions; /* learned positions; 0: rotary */
    enum pl_init init;
    double init_std; /* sd of the initial matrices; 0: 0.02 */
    bool dropout;    /* attention, residual and embedding dropout (masks are kept) */

    /* Mixture of experts; experts == 0: every block is dense. */
    int experts, experts_per_token; /* routed ones, and those a token visits */
    int expert_ffn;                 /* inner width of one routed expert */
    int shared_ffn;                 /* of the shared experts together; 0: none */
    bool shared_gate;               /* sigmoid gate of the shared output (Qwen2-MoE) */
    bool router_bias;               /* one number an expert (DeepSeek-V3) */
    int dense_layers;               /* first layers, whose MLP is dense */
    enum pl_scoring scoring;
    bool norm_topk;          /* weights of a token's experts sum to 1, before: */
    double routed_scale;     /* factor of the weights; 0: 1 */
    double aux_loss, z_loss; /* coefficients of the router's losses, of each layer */
    bool seq_aux;            /* aux_loss over each sequence, not each microbatch */
    double bias_rate;        /* step of router_bias; 0: it stays 0 */

    /* Latent attention (DeepSeek); kv_lora_rank == 0: ordinary. */
    int q_lora_rank; /* 0: queries straight from hidden */
    int kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
};

/* The model of a configuration whose presets are resolved. A preset must give layers,
 * hidden, heads, ffn and vocab. Errors: PL_ECONFIG naming the key; *out is checked. */
int pl_model_read(const struct pl_config *config, struct pl_model *out);

/* Does config give what no model can do without: layers, hidden, heads, ffn, vocab?
 * PL_ECONFIG "WHERE: model.ffn is missing ...". */
int pl_model_check_given(const struct pl_config *config, const char *where);

/* Ranges and divisibility (heads a multiple of kv_heads, even head_dim).
 * Errors: PL_ECONFIG naming the key. */
int pl_model_check(const struct pl_model *model);
/* Is it one that train/ can build? PL_EUNSUP naming the key. */
int pl_model_check_trainable(const struct pl_model *model);

/* Widths of a head: what scores are computed over, and what they weigh. */
int pl_model_qk_dim(const struct pl_model *model);
int pl_model_v_dim(const struct pl_model *model);
/* Layer i has experts? */
bool pl_model_is_moe(const struct pl_model *model, int layer);

/* Parameter counts; a tied table counts once. */
struct pl_model_count {
    uint64_t n_params;
    uint64_t n_active_params; /* of the routed experts only those a token visits */
    /* active without input embedding, learned positions and head */
    uint64_t n_active_nonembedding;
    /* N of 6N: active, head once, without untied input embedding and positions */
    uint64_t n_matmul;
    uint64_t table;                 /* vocab * hidden */
    uint64_t dense_block;           /* one dense layer; 0: there is none */
    uint64_t moe_block, moe_active; /* one MoE layer; 0: there is none */
};
struct pl_model_count pl_model_count(const struct pl_model *model);

/* n_params. */
uint64_t pl_model_params(const struct pl_model *model);
/* Training flops per token at sequence length T: 6 N + 12 layers d T, N = n_matmul, d
 * the width of all heads (mean of query and value width), no causal discount. */
double pl_model_flops(const struct pl_model *model, int T);

/* Contiguous split of the layers over P stages: stage s holds layers
 * first[s]..first[s+1]-1, sizes differ by at most one, the larger ones first. first has
 * P+1 entries. Errors: PL_ECONFIG when P > layers. */
int pl_model_split(const struct pl_model *model, int P, int *first);

#endif
