/* out = x + Wo attention(rope(Wq y), rope(Wk y), Wv y), y = rmsnorm(x) gain: pre-norm
 * causal grouped-query attention (Ainslie et al., arXiv 2305.13245) with rotary
 * embedding (Su et al., arXiv 2104.09864). Wq, Wk, Wv lie one after another, so one
 * product serves all three while the optimizer sees three matrices. */
#include "train/layers/linear.h"
#include "train/layers/norm.h"
#include "train/net.h"

#include <stdio.h>

enum { OUT, NORMED, RSTD, QKV, HEADS_OUT, LSE };
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
    const bool full = m->qk_norm == PL_QK_FULL;
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
        pl_net_vector(net, l, full ? widths[i] : m->head_dim, 1, "%s.%c_norm.weight",
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
    size_t rows = (size_t)net->max_rows;
    l->buffer_floats[OUT] = rows * (size_t)d;
    l->buffer_floats[NORMED] = rows * (size_t)d;
    l->buffer_floats[RSTD] = rows;
    l->buffer_floats[QKV] = rows * (size_t)qkv_width(m);
    l->buffer_floats[HEADS_OUT] = rows * (size_t)q;
    l->buffer_floats[LSE] = rows * (size_t)m->heads;
    l->scratch_floats[DNORMED] = rows * (size_t)d;
    l->scratch_floats[DHEADS_OUT] = rows * (size_t)q;
    l->scratch_floats[DQKV] = rows * (size_t)qkv_width(m);
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    const struct pl_model *m = &net->model;
    struct pl_attention_shape s = shape(m, pass);
    int rows = pass->rows, d = m->hidden, width = qkv_width(m), rc;
    float *const *b = l->buffer;
    if ((rc = dev->rmsnorm(rows, d, (float)m->norm_eps, l->in,
                           pl_net_weight(net, pass, l->param[GAIN]), b[NORMED],
                           b[RSTD])) ||
        (rc = pl_linear(dev, rows, d, width, b[NORMED],
                        pl_net_weight(net, pass, l->param[WQKV]), 0, b[QKV])) ||
        /* queries and keys are neighbours: one call rotates both */
        (rc = dev->rope(rows, s.T, s.heads + s.kv_heads, s.head_dim, width,
                        m->rope_theta, 1, b[QKV])) ||
        (rc = dev->attention(&s, b[QKV], b[HEADS_OUT], b[LSE])) ||
        (rc = dev->copy(b[OUT], l->in, sizeof(float) * (size_t)rows * (size_t)d)))
        return rc;
    return pl_linear(dev, rows, q_width(m), d, b[HEADS_OUT],
                     pl_net_weight(net, pass, l->param[WO]), 1, b[OUT]);
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    const struct pl_model *m = &net->model;
    struct pl_attention_shape s = shape(m, pass);
    int rows = pass->rows, d = m->hidden, q = q_width(m), width = qkv_width(m), rc;
    float *const *b = l->buffer, *const *scratch = net->scratch;
    if ((rc = pl_linear_dw(dev, rows, q, d, net->dx, b[HEADS_OUT],
                           pl_net_grad(net, pass, l->param[WO]))) ||
        (rc = pl_linear_dx(dev, rows, q, d, net->dx,
                           pl_net_weight(net, pass, l->param[WO]),
                           scratch[DHEADS_OUT])) ||
        (rc = dev->attention_back(&s, b[QKV], b[HEADS_OUT], b[LSE], scratch[DHEADS_OUT],
                                  scratch[DQKV])) ||
        (rc = dev->rope(rows, s.T, s.heads + s.kv_heads, s.head_dim, width,
                        m->rope_theta, -1, scratch[DQKV])) ||
        (rc = pl_linear_dw(dev, rows, d, width, scratch[DQKV], b[NORMED],
                           pl_net_grad(net, pass, l->param[WQKV]))) ||
        (rc = pl_linear_dx(dev, rows, d, width, scratch[DQKV],
                           pl_net_weight(net, pass, l->param[WQKV]), scratch[DNORMED])))
        return rc;
    return dev->rmsnorm_back(rows, d, l->in, pl_net_weight(net, pass, l->param[GAIN]),
                             b[RSTD], scratch[DNORMED], net->dx,
                             pl_net_grad(net, pass, l->param[GAIN]));
}

const struct pl_layer_type pl_layer_attention = {
    .name = "attention",
    .summary = "pre-norm grouped-query causal attention with rotary embedding",
    .source = "arXiv 2305.13245, 2104.09864",
    .declare = declare,
    .forward = forward,
    .backward = backward,
};
