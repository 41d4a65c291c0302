/* out = x + Wo attention(q, k, Wv y) with q = rope(Wq y), k = rope(Wk y), y = norm(x):
 * pre-norm causal grouped-query attention (Ainslie et al., arXiv 2305.13245) with
 * rotary embedding (Su et al., arXiv 2104.09864) unless positions are learned; before
 * it, where the model has that, RMSNorm of each head of q and k (Qwen3, arXiv
 * 2505.09388) or of all of them at once (OLMoE, arXiv 2409.02060). Wq, Wk, Wv lie one
 * after another, so one product serves all three while the optimizer sees three
 * matrices. */
#include "train/layers/linear.h"
#include "train/layers/norm.h"
#include "train/net.h"

#include <stdio.h>

enum { OUT, NORMED, STATS, QKV, HEADS_OUT, LSE, RAW, QRSTD, KRSTD };
enum { GAIN, SHIFT, WQKV, BQKV, QGAIN, KGAIN, WO, BO };
enum { DNORMED, DHEADS_OUT, DQKV };

static int q_width(const struct pl_model *m)
{
    return m->heads * m->head_dim;
}

static int qkv_width(const struct pl_model *m)
{
    return (m->heads + 2 * m->kv_heads) * m->head_dim;
}

/* What one RMSNorm of queries, or of keys, goes over. */
struct qk_norm {
    int heads, dim;
};

static struct qk_norm q_norm(const struct pl_model *m)
{
    if (m->qk_norm == PL_QK_FULL) return (struct qk_norm){1, q_width(m)};
    return (struct qk_norm){m->heads, m->head_dim};
}

static struct qk_norm k_norm(const struct pl_model *m)
{
    if (m->qk_norm == PL_QK_FULL) return (struct qk_norm){1, m->kv_heads * m->head_dim};
    return (struct qk_norm){m->kv_heads, m->head_dim};
}

static struct pl_attention_shape shape(const struct pl_model *m,
                                       const struct pl_pass *pass)
{
    return (struct pl_attention_shape){.B = pass->batch->B,
                                       .T = pass->batch->T,
                                       .heads = m->heads,
                                       .kv_heads = m->kv_heads,
                                       .head_dim = m->head_dim};
}

static void declare_qkv(struct pl_net *net, struct pl_layer *l, const char *self)
{
    static const char letters[] = "qkv";
    const struct pl_model *m = &net->model;
    const int kv = m->kv_heads * m->head_dim, widths[] = {q_width(m), kv, kv};
    l->param[WQKV] = net->problem->n_params;
    for (int i = 0; i < 3; i++)
        pl_net_param(net, l, PL_PARAM_MATRIX, widths[i], m->hidden,
                     pl_net_fill(m, false), "%s.%c_proj.weight", self, letters[i]);
    l->param[BQKV] = m->bias >= PL_BIAS_QKV ? net->problem->n_params : PL_NO_PARAM;
    for (int i = 0; i < 3 && m->bias >= PL_BIAS_QKV; i++)
        pl_net_vector(net, l, widths[i], 0, "%s.%c_proj.bias", self, letters[i]);
    l->param[QGAIN] = m->qk_norm == PL_QK_NONE ? PL_NO_PARAM : net->problem->n_params;
    l->param[KGAIN] = m->qk_norm == PL_QK_NONE ? PL_NO_PARAM : l->param[QGAIN] + 1;
    for (int i = 0; i < 2 && m->qk_norm != PL_QK_NONE; i++)
        pl_net_vector(net, l, i ? k_norm(m).dim : q_norm(m).dim, 1, "%s.%c_norm.weight",
                      self, letters[i]);
}

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    int d = m->hidden, q = q_width(m);
    char self[48], name[64];
    snprintf(name, sizeof name, "model.layers.%d.input_layernorm", l->index);
    snprintf(self, sizeof self, "model.layers.%d.self_attn", l->index);
    pl_norm_declare(net, l, &l->param[GAIN], name);
    declare_qkv(net, l, self);
    l->param[WO] = pl_net_param(net, l, PL_PARAM_MATRIX, d, q, pl_net_fill(m, true),
                                "%s.o_proj.weight", self);
    l->param[BO] = m->bias >= PL_BIAS_ATTENTION
                       ? pl_net_vector(net, l, d, 0, "%s.o_proj.bias", self)
                       : PL_NO_PARAM;
    const size_t rows = (size_t)net->max_rows, width = (size_t)qkv_width(m);
    l->buffer_floats[OUT] = pl_net_reals(net, rows * (size_t)d);
    l->buffer_floats[NORMED] = pl_net_reals(net, rows * (size_t)d);
    l->buffer_floats[STATS] = pl_norm_stats(m, rows);
    l->buffer_floats[QKV] = pl_net_reals(net, rows * width);
    l->buffer_floats[HEADS_OUT] = pl_net_reals(net, rows * (size_t)q);
    l->buffer_floats[LSE] = rows * (size_t)m->heads;
    if (m->qk_norm != PL_QK_NONE) {
        l->buffer_floats[RAW] = pl_net_reals(net, rows * width);
        l->buffer_floats[QRSTD] = rows * (size_t)q_norm(m).heads;
        l->buffer_floats[KRSTD] = rows * (size_t)k_norm(m).heads;
    }
    l->scratch_floats[DNORMED] = pl_net_reals(net, rows * (size_t)d);
    l->scratch_floats[DHEADS_OUT] = pl_net_reals(net, rows * (size_t)q);
    l->scratch_floats[DQKV] = pl_net_reals(net, rows * width);
}

/* b[QKV] = queries and keys of b[RAW] normed, and its values. */
static int norm_qk(const struct pl_net *net, const struct pl_layer *l,
                   const struct pl_pass *pass)
{
    const struct pl_model *m = &net->model;
    const struct qk_norm q = q_norm(m), k = k_norm(m);
    const int rows = pass->rows, width = qkv_width(m);
    const size_t keys = (size_t)q_width(m);
    const float eps = (float)m->norm_eps;
    float *const *b = l->buffer;
    int rc =
        net->dev->headnorm(rows, q.heads, q.dim, 0, width, eps, b[RAW],
                           pl_net_weight(net, pass, l->param[QGAIN]), b[QKV], b[QRSTD]);
    return rc ? rc
              : net->dev->headnorm(rows, k.heads, k.dim, k.heads * k.dim, width, eps,
                                   pl_device_at(net->dev, b[RAW], keys),
                                   pl_net_weight(net, pass, l->param[KGAIN]),
                                   pl_device_at(net->dev, b[QKV], keys), b[KRSTD]);
}

/* dqkv, of the normed, becomes that of the raw. */
static int norm_qk_back(const struct pl_net *net, const struct pl_layer *l,
                        const struct pl_pass *pass, float *dqkv)
{
    const struct pl_model *m = &net->model;
    const struct qk_norm q = q_norm(m), k = k_norm(m);
    const int rows = pass->rows, width = qkv_width(m);
    const size_t keys = (size_t)q_width(m);
    float *const *b = l->buffer;
    int rc = net->dev->headnorm_back(
        rows, q.heads, q.dim, width, b[RAW], pl_net_weight(net, pass, l->param[QGAIN]),
        b[QRSTD], dqkv, pl_net_grad(net, pass, l->param[QGAIN]));
    return rc ? rc
              : net->dev->headnorm_back(rows, k.heads, k.dim, width,
                                        pl_device_at(net->dev, b[RAW], keys),
                                        pl_net_weight(net, pass, l->param[KGAIN]),
                                        b[KRSTD], pl_device_at(net->dev, dqkv, keys),
                                        pl_net_grad(net, pass, l->param[KGAIN]));
}

/* Queries and keys are neighbours: one call rotates both. */
static int rotate(const struct pl_net *net, const struct pl_pass *pass, int direction,
                  float *qkv)
{
    const struct pl_model *m = &net->model;
    if (m->positions) return 0;
    return net->dev->rope(pass->rows, pass->batch->T, m->heads + m->kv_heads,
                          m->head_dim, qkv_width(m), m->rope_theta, direction, qkv);
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    const struct pl_model *m = &net->model;
    const struct pl_attention_shape s = shape(m, pass);
    const bool normed = m->qk_norm != PL_QK_NONE;
    int rows = pass->rows, d = m->hidden, width = qkv_width(m), rc;
    float *const *b = l->buffer, *qkv = normed ? b[RAW] : b[QKV];
    if ((rc = pl_norm(net, pass, &l->param[GAIN], l->in, b[NORMED], b[STATS])) ||
        (rc = pl_linear(dev, rows, d, width, b[NORMED],
                        pl_net_weight(net, pass, l->param[WQKV]),
                        pl_net_weight(net, pass, l->param[BQKV]), NULL, qkv)) ||
        (normed && (rc = norm_qk(net, l, pass))) ||
        (rc = rotate(net, pass, 1, b[QKV])) ||
        (rc = dev->attention(&s, b[QKV], b[HEADS_OUT], b[LSE])))
        return rc;
    return pl_linear(dev, rows, q_width(m), d, b[HEADS_OUT],
                     pl_net_weight(net, pass, l->param[WO]),
                     pl_net_weight(net, pass, l->param[BO]), l->in, b[OUT]);
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    const struct pl_model *m = &net->model;
    const struct pl_attention_shape s = shape(m, pass);
    int rows = pass->rows, d = m->hidden, q = q_width(m), width = qkv_width(m), rc;
    float *const *b = l->buffer, *const *scratch = net->scratch;
    if ((rc = pl_linear_dw(dev, rows, q, d, net->dx, b[HEADS_OUT],
                           pl_net_grad(net, pass, l->param[WO]))) ||
        (rc =
             pl_bias_db(dev, rows, d, net->dx, pl_net_grad(net, pass, l->param[BO]))) ||
        (rc = pl_linear_dx(dev, rows, q, d, net->dx,
                           pl_net_weight(net, pass, l->param[WO]), NULL,
                           scratch[DHEADS_OUT])) ||
        (rc = dev->attention_back(&s, b[QKV], b[HEADS_OUT], b[LSE], scratch[DHEADS_OUT],
                                  scratch[DQKV])) ||
        (rc = rotate(net, pass, -1, scratch[DQKV])) ||
        (m->qk_norm != PL_QK_NONE &&
         (rc = norm_qk_back(net, l, pass, scratch[DQKV]))) ||
        (rc = pl_bias_db(dev, rows, width, scratch[DQKV],
                         pl_net_grad(net, pass, l->param[BQKV]))) ||
        (rc = pl_linear_dw(dev, rows, d, width, scratch[DQKV], b[NORMED],
                           pl_net_grad(net, pass, l->param[WQKV]))) ||
        (rc = pl_linear_dx(dev, rows, d, width, scratch[DQKV],
                           pl_net_weight(net, pass, l->param[WQKV]), NULL,
                           scratch[DNORMED])))
        return rc;
    return pl_norm_back(net, pass, &l->param[GAIN], l->in, b[STATS], scratch[DNORMED],
                        net->dx);
}

const struct pl_layer_type pl_layer_attention = {
    .name = "attention",
    .summary = "pre-norm grouped-query causal attention",
    .source = "arXiv 2305.13245, 2104.09864",
    .declare = declare,
    .forward = forward,
    .backward = backward,
};
