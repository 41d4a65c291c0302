/* Memory traffic of what is not a matrix product, in bytes read and written with 2
 * bytes an element, each kernel fused as in Megatron-LM (its `local` layers; names in
 * brackets are its files):
 *   norm      read, write; backward reads x and dy twice, for dx and for the gains, and
 *             writes dx (Apex layer_norm_cuda)
 *   residual  with bias and dropout read 2, write 1, mask 1 byte [fused_bias_dropout];
 *             backward read, mask, write; the two branches' gradients are added: read
 *             2, write 1
 *   activation function  read its input, write its output; backward reads both and
 *             dy, writes dx; rotation read, write, both ways
 *   bias      inside the kernels above; that of q, k, v is added to the output: read,
 *             write [tensor_parallel/layers]; a bias gradient reads dy
 *   softmax that is not fused with attention  read, write; with dropout again read,
 *             write, mask; backward likewise with what was kept; the output is copied
 *             to the layout of the projection, and so are the gradients of q, k, v
 *   loss      cast to fp32, maximum, difference, exponential, sum, quotient; backward
 *             product, cast [tensor_parallel/cross_entropy, not the fused one]
 * Lower bounds: caches are not in it. */
#include "sim/work_parts.h"

struct traffic {
    double forward, backward, core, core_backward; /* bytes a token; core: scores */
};

static void add_mlp(const struct pl_model *m, double width, double rows, double t,
                    struct traffic *x)
{
    double in = m->mlp == PL_MLP_SWIGLU ? 2 * width : width;
    double bias = m->bias == PL_BIAS_ALL ? 1 : 0;
    x->forward += rows * 2 * (in + width) / t;
    x->backward += rows * 2 * ((2 + bias) * in + width) / t;
}

static void add_layer(const struct pl_work_case *c, struct traffic *x)
{
    const struct pl_model *m = c->model;
    double d = m->hidden, sp = c->shard, t = c->t, mask = m->dropout ? 1 : 0;
    double out_bias = m->bias == PL_BIAS_ALL || m->bias == PL_BIAS_ATTENTION ? 1 : 0;
    double ffn_bias = m->bias == PL_BIAS_ALL ? 1 : 0;
    double qkv = ((double)m->heads + 2.0 * m->kv_heads) * m->head_dim;
    double qk = m->kv_lora_rank ? 2.0 * m->heads * m->qk_rope_head_dim
                                : ((double)m->heads + m->kv_heads) * m->head_dim;
    x->forward += 2 * 4 * d / sp + 2 * (6 + mask) * d / sp;
    x->backward += 2 * 10 * d / sp + 2 * (mask * 5 + 6) * d / sp;
    x->backward += 2 * (out_bias + ffn_bias) * d / sp;
    if (m->bias != PL_BIAS_NONE) {
        x->forward += 4 * qkv / t;
        x->backward += 2 * qkv / t;
    }
    if (m->qk_norm != PL_QK_NONE) {
        x->forward += 4 * qk / t;
        x->backward += 10 * qk / t;
    }
    if (!m->positions) {
        x->forward += 4 * qk / t;
        x->backward += 4 * qk / t;
    }
    if (c->block == PL_BLOCK_MTP) { /* three norms */
        x->forward += 3 * 4 * d / sp;
        x->backward += 3 * 10 * d / sp;
    }
    if (c->moe) {
        double k = m->experts_per_token;
        add_mlp(m, m->expert_ffn, k, t, x);
        add_mlp(m, m->shared_ffn, 1, t, x);
        /* tokens gathered for the experts and scattered back */
        x->forward += 2 * 4 * k * d;
        x->backward += 2 * 4 * k * d;
    } else {
        add_mlp(m, m->ffn, 1, t, x);
    }
    if (!c->parallel->flash) {
        double v = (double)m->heads * pl_model_v_dim(m);
        x->forward += 4 * v / t;
        x->backward += 4 * (v + qkv) / t;
        double scores = c->s * m->heads / t;
        x->core = scores * (m->dropout ? 9 : 4);
        x->core_backward = scores * (m->dropout ? 11 : 6);
    }
}

void pl_work_traffic(const struct pl_work_case *c, struct pl_work *out)
{
    struct traffic x = {0};
    double d = c->model->hidden;
    if (pl_work_is_layer(c)) {
        add_layer(c, &x);
    } else if (c->block == PL_BLOCK_EMBEDDING) {
        x.forward = 4 * d / c->shard;
        x.backward = 4 * d / c->shard;
    } else { /* norm; cast 6, maximum 4, difference 8, exponential 8, sum 4, quotient
                8; product 8, cast 6 */
        double vocab = pl_work_out(c, &c->weight[c->n - 1]);
        x.forward = 4 * d / c->shard + 38 * vocab;
        x.backward = 10 * d / c->shard + 14 * vocab;
    }
    out->forward_traffic = c->tokens * (x.forward + x.core);
    out->backward_traffic = c->tokens * (x.backward + x.core_backward);
    if (!pl_work_is_layer(c)) return;
    if (c->parallel->recompute == PL_RECOMPUTE_FULL)
        out->recompute_traffic = out->forward_traffic;
    else if (c->parallel->recompute == PL_RECOMPUTE_SELECTIVE)
        out->recompute_traffic = c->tokens * x.core;
}
