/* Bytes of activations, per microbatch and GPU.
 *   GPT with dropout: s b h (34 + 5 a s / h) without parallelism, of which
 *     s b h (10 + 24 / t + 5 a s / (h t)) with tensor parallelism,
 *     s b h (34 + 5 a s / h) / t with sequence parallelism too,
 *     34 instead of 34 + 5 a s / h with selective recomputation, 2 s b h with full.
 *   Kept from B to W: input and output gradient of each matrix, 32 s b h for GPT.
 * Each tensor is listed with its width, so that gated MLPs, grouped queries, latent
 * attention and experts have their own counts. Fused attention keeps one fp32 number a
 * row instead of the scores. Full recomputation keeps the layer's input, which is
 * divided by t with sequence parallelism (Megatron-LM; the paper's 2 s b h is without).
 * Source: Korthikanti et al. 2205.05198, section 4; Qi et al. 2401.10241, section 2. */
#include "sim/work_parts.h"

struct held {
    const struct pl_work_case *c;
    double act, core, kept; /* bytes a token; core: the part of act in the scores */
};

/* One tensor of elements a token: bytes each, from F to B. */
static void hold(struct held *h, double elements, double bytes, double parts)
{
    h->act += elements * bytes / parts;
}

/* The input (K) of a matrix, held on to its W; its output gradient (N), from B to W. */
static void hold_input(struct held *h, double elements, double parts)
{
    hold(h, elements, 2, parts);
    h->kept += elements * 2 / parts;
}

static void keep_gradient(struct held *h, double elements, double parts)
{
    h->kept += elements * 2 / parts;
}

static void hold_scores(struct held *h)
{
    const struct pl_model *m = h->c->model;
    double each = m->heads / h->c->t, row = 4; /* log of the sum, fp32 */
    if (!h->c->parallel->flash) row = h->c->s * (m->dropout ? 5 : 2);
    h->core = each * row;
    h->act += h->core;
}

static void hold_attention(struct held *h)
{
    const struct pl_model *m = h->c->model;
    double d = m->hidden, t = h->c->t, sp = h->c->shard;
    double q = (double)m->heads * m->head_dim, kv = (double)m->kv_heads * m->head_dim;
    hold_input(h, d, sp);
    hold(h, q + 2 * kv, 2, t);
    keep_gradient(h, q + 2 * kv, t);
    if (m->qk_norm != PL_QK_NONE) hold(h, q + kv, 2, t); /* before the norm */
    hold_scores(h);
    hold_input(h, q, t);
    keep_gradient(h, d, sp);
}

static void hold_latent_attention(struct held *h)
{
    const struct pl_model *m = h->c->model;
    double d = m->hidden, t = h->c->t, sp = h->c->shard, H = m->heads;
    double q = H * pl_model_qk_dim(m), v = H * m->v_head_dim;
    double up = H * (m->qk_nope_head_dim + m->v_head_dim), r = m->kv_lora_rank;
    hold_input(h, d, sp);
    if (m->q_lora_rank) {
        hold(h, m->q_lora_rank, 2, sp); /* before its norm */
        keep_gradient(h, m->q_lora_rank, sp);
        hold_input(h, m->q_lora_rank, sp);
    }
    hold(h, r + m->qk_rope_head_dim, 2, sp);
    keep_gradient(h, r + m->qk_rope_head_dim, sp);
    hold_input(h, r, sp);
    hold(h, 2 * q + v, 2, t); /* Q, K, V */
    keep_gradient(h, q + up, t);
    hold_scores(h);
    hold_input(h, v, t);
    keep_gradient(h, d, sp);
}

/* From the input of the activation function to the output gradient; rows: tokens that
 * pass per token of the microbatch, whole: parts of the [.., hidden] tensors. */
static void hold_mlp(struct held *h, double width, double rows, double whole)
{
    const struct pl_model *m = h->c->model;
    double up = m->mlp == PL_MLP_SWIGLU ? 2 * width : width, t = h->c->t;
    hold(h, rows * up, 2, t);
    keep_gradient(h, rows * up, t);
    hold_input(h, rows * width, t);
    keep_gradient(h, rows * m->hidden, whole);
}

static void hold_experts(struct held *h)
{
    const struct pl_model *m = h->c->model;
    double d = m->hidden, sp = h->c->shard, k = m->experts_per_token;
    hold(h, m->experts, 4, sp); /* router probabilities, fp32 */
    keep_gradient(h, 2.0 * m->experts, sp);
    hold_input(h, k * d, 1); /* tokens as the experts receive them */
    hold_mlp(h, m->expert_ffn, k, 1);
    hold(h, k * d, 2, sp); /* outputs, for the router's gradient */
    if (m->shared_ffn) hold_mlp(h, m->shared_ffn, 1, sp);
    if (m->shared_gate) hold(h, d, 2, sp); /* shared output before its gate */
}

static void hold_layer(struct held *h)
{
    const struct pl_model *m = h->c->model;
    double d = m->hidden, sp = h->c->shard;
    if (h->c->block == PL_BLOCK_MTP) {
        hold(h, 3 * d, 2, sp);    /* inputs of its three norms */
        hold_input(h, 2 * d, sp); /* of the projection */
        keep_gradient(h, d, h->c->t);
    }
    hold(h, 2 * d, 2, sp); /* inputs of the two norms */
    if (m->dropout) hold(h, 2 * d, 1, sp);
    if (m->kv_lora_rank)
        hold_latent_attention(h);
    else
        hold_attention(h);
    hold_input(h, d, sp);
    if (h->c->moe)
        hold_experts(h);
    else
        hold_mlp(h, m->ffn, 1, sp);
}

/* Korthikanti et al. section 4.3: dropout after the embedding; final norm, head and
 * fp32 logits. */
static void hold_ends(struct held *h)
{
    const struct pl_work_case *c = h->c;
    double d = c->model->hidden;
    if (c->block == PL_BLOCK_EMBEDDING) {
        if (c->model->dropout) hold(h, d, 1, c->shard);
        keep_gradient(h, d, c->shard);
        return;
    }
    double vocab = pl_work_out(c, &c->weight[c->n - 1]);
    hold(h, d, 2, c->shard);
    hold_input(h, d, c->shard);
    hold(h, vocab, 4, 1);
    keep_gradient(h, vocab, 1);
}

void pl_work_activations(const struct pl_work_case *c, struct pl_work *out)
{
    struct held h = {.c = c};
    if (pl_work_is_layer(c))
        hold_layer(&h);
    else
        hold_ends(&h);
    out->live_bytes = out->act_bytes = c->tokens * h.act;
    out->kept_bytes = c->tokens * h.kept;
    if (!pl_work_is_layer(c)) return;
    if (c->parallel->recompute == PL_RECOMPUTE_FULL)
        out->act_bytes = c->tokens * 2 * c->model->hidden / c->shard *
                         (c->block == PL_BLOCK_MTP ? 2 : 1);
    else if (c->parallel->recompute == PL_RECOMPUTE_SELECTIVE)
        out->act_bytes -= c->tokens * h.core;
}
