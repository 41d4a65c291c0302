/* Memory traffic of what is not a matrix product, in bytes read and written with 2
 * bytes an element, each kernel fused as in Megatron-LM: norm (read, write), residual
 * with bias and dropout (read 2, write 1, mask 1 byte), activation function (read its
 * input, write its output), rotation (read, write); softmax that is not fused with
 * attention (read, write; with dropout again read, write, mask). The backward of a
 * kernel reads the output gradient and what was kept and writes the input gradient.
 * Lower bounds: caches, launches and casts are not in it. */
#include "sim/work_parts.h"

struct traffic {
    double forward, backward, core, core_backward; /* bytes a token; core: scores */
};

static void add_mlp(const struct pl_model *m, double width, double rows, double t,
                    struct traffic *x)
{
    double in = m->mlp == PL_MLP_SWIGLU ? 2 * width : width;
    x->forward += rows * 2 * (in + width) / t;
    x->backward += rows * 2 * (2 * in + width) / t;
}

static void add_layer(const struct pl_work_case *c, struct traffic *x)
{
    const struct pl_model *m = c->model;
    double d = m->hidden, sp = c->shard, t = c->t, mask = m->dropout ? 1 : 0;
    double qk = m->kv_lora_rank ? 2.0 * m->heads * m->qk_rope_head_dim
                                : ((double)m->heads + m->kv_heads) * m->head_dim;
    x->forward += 2 * 4 * d / sp + 2 * (6 + mask) * d / sp;
    x->backward += 2 * 6 * d / sp + 2 * (2 + mask) * d / sp;
    if (m->qk_norm != PL_QK_NONE) {
        x->forward += 4 * qk / t;
        x->backward += 6 * qk / t;
    }
    if (!m->positions) {
        x->forward += 4 * qk / t;
        x->backward += 4 * qk / t;
    }
    if (c->block == PL_BLOCK_MTP) { /* three norms */
        x->forward += 3 * 4 * d / sp;
        x->backward += 3 * 6 * d / sp;
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
    } else { /* norm; fp32 logits written, read for the loss, gradient written */
        double vocab = pl_work_out(c, &c->weight[c->n - 1]);
        x.forward = 4 * d / c->shard + 8 * vocab;
        x.backward = 6 * d / c->shard + 6 * vocab;
    }
    out->forward_traffic = c->tokens * (x.forward + x.core);
    out->backward_traffic = c->tokens * (x.backward + x.core_backward);
    if (!pl_work_is_layer(c)) return;
    if (c->parallel->recompute == PL_RECOMPUTE_FULL)
        out->recompute_traffic = out->forward_traffic;
    else if (c->parallel->recompute == PL_RECOMPUTE_SELECTIVE)
        out->recompute_traffic = c->tokens * x.core;
}
