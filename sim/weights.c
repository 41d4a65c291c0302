/* The matrices of a block, forward order. Parameters as in the public implementations
 * (Hugging Face transformers) of
 *   Llama (Touvron et al. 2302.13971)    norm, qkv, proj, norm, gate and up, down
 *   GPT-2/3 (Radford 2019; 2005.14165)   LayerNorm with bias, biases, plain MLP of 4 h
 *   Qwen2 (2407.10671): bias on qkv; Qwen3 (2505.09388): RMSNorm of each query/key head
 *   OLMoE (2409.02060): RMSNorm over all query/key heads; Mixtral (2401.04088)
 *   DeepSeek-V2 (2405.04434, section 2.1): latent attention
 *       q = Wuq norm(Wdq x), [c, k_rope] = Wdkv x, [k, v] = Wukv norm(c). */
#include "sim/weights.h"

#include <assert.h>

struct list {
    const struct pl_model *model;
    struct pl_weight *out;
    int n;
};

static struct pl_weight *add(struct list *list, const char *name, int64_t in,
                             int64_t out, enum pl_cut cut)
{
    assert(list->n < PL_MAX_WEIGHTS);
    struct pl_weight *w = &list->out[list->n++];
    *w = (struct pl_weight){.name = name, .in = in, .out = out, .cut = cut};
    return w;
}

static void add_norm(struct list *list, const char *name)
{
    const struct pl_model *m = list->model;
    bool biased = m->norm == PL_NORM_LAYER && m->bias == PL_BIAS_ALL;
    add(list, name, 0, 0, PL_CUT_NONE)->vectors = (int64_t)m->hidden * (1 + biased);
}

static void add_attention(struct list *list)
{
    const struct pl_model *m = list->model;
    int64_t d = m->hidden, q = (int64_t)m->heads * m->head_dim;
    int64_t kv = (int64_t)m->kv_heads * m->head_dim;
    struct pl_weight *w = add(list, "qkv", d, q + 2 * kv, PL_CUT_COLUMN);
    if (m->bias >= PL_BIAS_QKV) w->vectors = q + 2 * kv;
    if (m->qk_norm != PL_QK_NONE)
        add(list, "qk_norm", 0, 0, PL_CUT_NONE)->vectors =
            m->qk_norm == PL_QK_HEAD ? 2 * (int64_t)m->head_dim : q + kv;
    w = add(list, "proj", q, d, PL_CUT_ROW);
    if (m->bias >= PL_BIAS_ATTENTION) w->vectors = d;
}

static void add_latent_attention(struct list *list)
{
    const struct pl_model *m = list->model;
    int64_t d = m->hidden, H = m->heads, r = m->kv_lora_rank;
    int64_t q = H * pl_model_qk_dim(m);
    if (m->q_lora_rank) {
        add(list, "q_down", d, m->q_lora_rank, PL_CUT_NONE)->vectors = m->q_lora_rank;
        add(list, "q_up", m->q_lora_rank, q, PL_CUT_COLUMN);
    } else {
        add(list, "q", d, q, PL_CUT_COLUMN);
    }
    add(list, "kv_down", d, r + m->qk_rope_head_dim, PL_CUT_NONE)->vectors = r;
    add(list, "kv_up", r, H * (m->qk_nope_head_dim + m->v_head_dim), PL_CUT_COLUMN);
    add(list, "proj", H * m->v_head_dim, d, PL_CUT_ROW);
}

static void add_mlp(struct list *list, const char *up, const char *down, int64_t width,
                    bool expert)
{
    const struct pl_model *m = list->model;
    int64_t d = m->hidden, out = m->mlp == PL_MLP_SWIGLU ? 2 * width : width;
    struct pl_weight *w = add(list, up, d, out, PL_CUT_COLUMN);
    w->expert = expert;
    if (m->bias == PL_BIAS_ALL) w->vectors = out;
    w = add(list, down, width, d, PL_CUT_ROW);
    w->expert = expert;
    if (m->bias == PL_BIAS_ALL) w->vectors = d;
}

static void add_experts(struct list *list)
{
    const struct pl_model *m = list->model;
    struct pl_weight *router = add(list, "router", m->hidden, m->experts, PL_CUT_NONE);
    if (m->router_bias) router->vectors = m->experts;
    add_mlp(list, "expert_up", "expert_down", m->expert_ffn, true);
    if (!m->shared_ffn) return;
    add_mlp(list, "shared_up", "shared_down", m->shared_ffn, false);
    if (m->shared_gate) add(list, "shared_gate", m->hidden, 1, PL_CUT_NONE);
}

static void add_prediction(struct list *list)
{
    int64_t d = list->model->hidden;
    add_norm(list, "hidden_norm");
    add_norm(list, "embedding_norm");
    add_norm(list, "final_norm");
    add(list, "mtp_proj", 2 * d, d, PL_CUT_COLUMN);
}

int pl_weights(const struct pl_model *model, enum pl_block block,
               struct pl_weight out[PL_MAX_WEIGHTS])
{
    struct list list = {model, out, 0};
    if (block == PL_BLOCK_EMBEDDING) {
        add(&list, "embedding", model->hidden, model->vocab, PL_CUT_COLUMN)->lookup =
            true;
        if (model->positions)
            add(&list, "positions", model->hidden, model->positions, PL_CUT_NONE)
                ->lookup = true;
    } else if (block == PL_BLOCK_HEAD) {
        add_norm(&list, "norm");
        add(&list, "head", model->hidden, model->vocab, PL_CUT_COLUMN)->tied =
            model->tied;
    } else {
        bool moe = block == PL_BLOCK_MOE ||
                   (block == PL_BLOCK_MTP && pl_model_is_moe(model, model->layers - 1));
        if (block == PL_BLOCK_MTP) add_prediction(&list);
        add_norm(&list, "norm_1");
        if (model->kv_lora_rank)
            add_latent_attention(&list);
        else
            add_attention(&list);
        add_norm(&list, "norm_2");
        if (moe)
            add_experts(&list);
        else
            add_mlp(&list, "mlp_up", "mlp_down", model->ffn, false);
    }
    return list.n;
}

uint64_t pl_weight_params(const struct pl_weight *w)
{
    return (uint64_t)w->in * (uint64_t)w->out + (uint64_t)w->vectors;
}
