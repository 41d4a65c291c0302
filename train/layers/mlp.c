/* out = x + Wdown (silu(Wgate y) * Wup y), y = rmsnorm(x) gain: pre-norm SwiGLU
 * (Shazeer, arXiv 2002.05202). Wgate and Wup lie one after another: one product serves
 * both. */
#include "train/layers/ffn.h"
#include "train/layers/linear.h"
#include "train/layers/norm.h"
#include "train/net.h"

#include <stdio.h>

enum { OUT, NORMED, RSTD, GATE_UP, H };
enum { GAIN, SHIFT };
enum { DNORMED, DH, DGATE_UP };

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    int d = m->hidden, f = m->ffn;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "model.layers.%d.post_attention_layernorm",
             l->index);
    pl_norm_declare(net, l, &l->param[GAIN], prefix);
    snprintf(prefix, sizeof prefix, "model.layers.%d.mlp", l->index);
    l->ffn = pl_ffn_declare(net, l, f, prefix);
    size_t rows = (size_t)net->max_rows;
    l->buffer_floats[OUT] = rows * (size_t)d;
    l->buffer_floats[NORMED] = rows * (size_t)d;
    l->buffer_floats[RSTD] = rows;
    l->buffer_floats[GATE_UP] = rows * 2 * (size_t)f;
    l->buffer_floats[H] = rows * (size_t)f;
    l->scratch_floats[DNORMED] = rows * (size_t)d;
    l->scratch_floats[DH] = rows * (size_t)f;
    l->scratch_floats[DGATE_UP] = rows * 2 * (size_t)f;
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    int rows = pass->rows, d = net->model.hidden, f = net->model.ffn, rc;
    float *const *b = l->buffer;
    if ((rc = dev->rmsnorm(rows, d, (float)net->model.norm_eps, l->in,
                           pl_net_weight(net, pass, l->param[GAIN]), b[NORMED],
                           b[RSTD])) ||
        (rc = pl_linear(dev, rows, d, 2 * f, b[NORMED],
                        pl_net_weight(net, pass, l->ffn.up), 0, b[GATE_UP])) ||
        (rc = dev->swiglu(rows, f, b[GATE_UP], b[H])) ||
        (rc = dev->copy(b[OUT], l->in, sizeof(float) * (size_t)rows * (size_t)d)))
        return rc;
    return pl_linear(dev, rows, f, d, b[H], pl_net_weight(net, pass, l->ffn.down), 1,
                     b[OUT]);
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    int rows = pass->rows, d = net->model.hidden, f = net->model.ffn, rc;
    float *const *b = l->buffer, *const *scratch = net->scratch;
    if ((rc = pl_linear_dw(dev, rows, f, d, net->dx, b[H],
                           pl_net_grad(net, pass, l->ffn.down))) ||
        (rc = pl_linear_dx(dev, rows, f, d, net->dx,
                           pl_net_weight(net, pass, l->ffn.down), scratch[DH])) ||
        (rc = dev->swiglu_back(rows, f, b[GATE_UP], scratch[DH], scratch[DGATE_UP])) ||
        (rc = pl_linear_dw(dev, rows, d, 2 * f, scratch[DGATE_UP], b[NORMED],
                           pl_net_grad(net, pass, l->ffn.up))) ||
        (rc = pl_linear_dx(dev, rows, d, 2 * f, scratch[DGATE_UP],
                           pl_net_weight(net, pass, l->ffn.up), scratch[DNORMED])))
        return rc;
    return dev->rmsnorm_back(rows, d, l->in, pl_net_weight(net, pass, l->param[GAIN]),
                             b[RSTD], scratch[DNORMED], net->dx,
                             pl_net_grad(net, pass, l->param[GAIN]));
}

const struct pl_layer_type pl_layer_mlp = {
    .name = "mlp",
    .summary = "pre-norm SwiGLU",
    .source = "arXiv 2002.05202",
    .declare = declare,
    .forward = forward,
    .backward = backward,
};
