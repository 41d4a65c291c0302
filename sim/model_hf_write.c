/* A model as the config.json that transformers reads. Names are those of
 * sim/model_hf.c. */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "sim/model_hf.h"

struct type {
    const char *name, *architecture;
    bool (*is)(const struct pl_model *m);
    void (*write)(const struct pl_model *m, struct pl_json *json);
};

/* What all types but GPT-2 share. */
static bool is_llama_like(const struct pl_model *m)
{
    return m->norm == PL_NORM_RMS && m->mlp == PL_MLP_SWIGLU && !m->positions &&
           !m->kv_lora_rank && !m->dropout && !m->router_bias;
}

/* Routers of transformers: softmax, weights as they are or normed. */
static bool is_routed(const struct pl_model *m)
{
    return is_llama_like(m) && m->experts && m->scoring == PL_SCORING_SOFTMAX &&
           (m->routed_scale == 0 || m->routed_scale == 1);
}

static bool is_llama(const struct pl_model *m)
{
    return is_llama_like(m) && !m->experts && m->qk_norm == PL_QK_NONE &&
           m->bias != PL_BIAS_QKV;
}

static bool is_qwen2(const struct pl_model *m)
{
    return is_llama_like(m) && !m->experts && m->qk_norm == PL_QK_NONE &&
           m->bias == PL_BIAS_QKV;
}

static bool is_qwen3(const struct pl_model *m)
{
    return is_llama_like(m) && !m->experts && m->qk_norm == PL_QK_HEAD &&
           (m->bias == PL_BIAS_NONE || m->bias == PL_BIAS_ATTENTION);
}

static bool is_qwen2_moe(const struct pl_model *m)
{
    return is_routed(m) && m->qk_norm == PL_QK_NONE && m->bias == PL_BIAS_QKV &&
           m->shared_ffn && m->shared_gate;
}

static bool is_qwen3_moe(const struct pl_model *m)
{
    return is_routed(m) && m->qk_norm == PL_QK_HEAD && !m->shared_ffn &&
           (m->bias == PL_BIAS_NONE || m->bias == PL_BIAS_ATTENTION);
}

static bool is_mixtral(const struct pl_model *m)
{
    return is_routed(m) && m->norm_topk && m->qk_norm == PL_QK_NONE && !m->shared_ffn &&
           !m->dense_layers && m->bias == PL_BIAS_NONE;
}

static bool is_olmoe(const struct pl_model *m)
{
    return is_routed(m) && m->qk_norm == PL_QK_FULL && !m->shared_ffn &&
           !m->dense_layers &&
           (m->bias == PL_BIAS_NONE || m->bias == PL_BIAS_ATTENTION);
}

static bool is_gpt2(const struct pl_model *m)
{
    return m->norm == PL_NORM_LAYER && m->mlp == PL_MLP_GELU && m->positions &&
           m->bias == PL_BIAS_ALL && m->qk_norm == PL_QK_NONE && !m->experts &&
           !m->kv_lora_rank && m->kv_heads == m->heads &&
           (int64_t)m->heads * m->head_dim == m->hidden;
}

static void write_common(const struct pl_model *m, struct pl_json *json)
{
    pl_json_int(json, "num_hidden_layers", m->layers);
    pl_json_int(json, "hidden_size", m->hidden);
    pl_json_int(json, "num_attention_heads", m->heads);
    pl_json_int(json, "num_key_value_heads", m->kv_heads);
    pl_json_int(json, "head_dim", m->head_dim);
    pl_json_int(json, "vocab_size", m->vocab);
    pl_json_real(json, "rope_theta", m->rope_theta);
    pl_json_real(json, "rms_norm_eps", m->norm_eps);
    pl_json_text(json, "hidden_act", "silu");
    pl_json_bool(json, "attention_bias",
                 m->bias == PL_BIAS_ATTENTION || m->bias == PL_BIAS_ALL);
}

static void write_dense(const struct pl_model *m, struct pl_json *json)
{
    write_common(m, json);
    pl_json_int(json, "intermediate_size", m->ffn);
}

static void write_llama(const struct pl_model *m, struct pl_json *json)
{
    write_dense(m, json);
    pl_json_bool(json, "mlp_bias", m->bias == PL_BIAS_ALL);
}

static void write_experts(const struct pl_model *m, const char *experts,
                          struct pl_json *json)
{
    write_common(m, json);
    pl_json_int(json, experts, m->experts);
    pl_json_int(json, "num_experts_per_tok", m->experts_per_token);
    pl_json_bool(json, "norm_topk_prob", m->norm_topk); /* Mixtral's always are */
    pl_json_real(json, "router_aux_loss_coef", m->aux_loss);
}

static void write_qwen_moe(const struct pl_model *m, struct pl_json *json)
{
    write_experts(m, "num_experts", json);
    pl_json_int(json, "intermediate_size", m->ffn);
    pl_json_int(json, "moe_intermediate_size", m->expert_ffn);
    pl_json_int(json, "decoder_sparse_step", 1);
    pl_json_begin(json, "mlp_only_layers", '[');
    for (int i = 0; i < m->dense_layers; i++) pl_json_int(json, NULL, i);
    pl_json_end(json, ']');
    if (m->shared_ffn)
        pl_json_int(json, "shared_expert_intermediate_size", m->shared_ffn);
}

static void write_mixtral(const struct pl_model *m, struct pl_json *json)
{
    write_experts(m, "num_local_experts", json);
    pl_json_int(json, "intermediate_size", m->expert_ffn);
}

static void write_olmoe(const struct pl_model *m, struct pl_json *json)
{
    write_experts(m, "num_experts", json);
    pl_json_int(json, "intermediate_size", m->expert_ffn);
}

static void write_gpt2(const struct pl_model *m, struct pl_json *json)
{
    static const char *const dropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
    pl_json_int(json, "n_layer", m->layers);
    pl_json_int(json, "n_embd", m->hidden);
    pl_json_int(json, "n_head", m->heads);
    pl_json_int(json, "n_inner", m->ffn);
    pl_json_int(json, "vocab_size", m->vocab);
    pl_json_int(json, "n_positions", m->positions);
    pl_json_real(json, "layer_norm_epsilon", m->norm_eps);
    pl_json_text(json, "activation_function", "gelu_new");
    for (int i = 0; i < 3; i++) pl_json_real(json, dropouts[i], m->dropout ? 0.1 : 0);
}

static const struct type types[] = {
    {"llama", "LlamaForCausalLM", is_llama, write_llama},
    {"qwen2", "Qwen2ForCausalLM", is_qwen2, write_dense},
    {"qwen3", "Qwen3ForCausalLM", is_qwen3, write_dense},
    {"gpt2", "GPT2LMHeadModel", is_gpt2, write_gpt2},
    {"qwen2_moe", "Qwen2MoeForCausalLM", is_qwen2_moe, write_qwen_moe},
    {"qwen3_moe", "Qwen3MoeForCausalLM", is_qwen3_moe, write_qwen_moe},
    {"mixtral", "MixtralForCausalLM", is_mixtral, write_mixtral},
    {"olmoe", "OlmoeForCausalLM", is_olmoe, write_olmoe},
    {0},
};

static const struct type *find(const struct pl_model *m)
{
    for (const struct type *t = types; t->name; t++)
        if (t->is(m)) return t;
    return NULL;
}

const char *pl_model_hf_type(const struct pl_model *model)
{
    const struct type *t = find(model);
    return t ? t->name : NULL;
}

int pl_model_hf_write(const struct pl_model *model, int positions,
                      const char *number_type, FILE *out)
{
    const struct type *t = find(model);
    struct pl_json json;
    if (!t)
        return pl_fail(PL_EUNSUP,
                       "model.*: no model type of Hugging Face has these properties");
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    pl_json_begin(&json, "architectures", '[');
    pl_json_text(&json, NULL, t->architecture);
    pl_json_end(&json, ']');
    pl_json_text(&json, "model_type", t->name);
    t->write(model, &json);
    if (!model->positions) pl_json_int(&json, "max_position_embeddings", positions);
    pl_json_bool(&json, "tie_word_embeddings", model->tied);
    pl_json_text(&json, "torch_dtype", number_type);
    pl_json_end(&json, '}');
    pl_json_close(&json);
    return PL_OK;
}
