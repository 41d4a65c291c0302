#include "train/layers/ffn.h"
#include "train/layers/linear.h"

int pl_ffn_inner(const struct pl_model *m, int width)
{
    return m->mlp == PL_MLP_SWIGLU ? 2 * width : width;
}

struct pl_ffn pl_ffn_declare(struct pl_net *net, struct pl_layer *l, int width,
                             const char *prefix)
{
    const struct pl_model *m = &net->model;
    const bool gated = m->mlp == PL_MLP_SWIGLU, biased = m->bias == PL_BIAS_ALL;
    const int d = m->hidden;
    struct pl_net_fill fill = pl_net_fill(m, false), end = pl_net_fill(m, true);
    struct pl_ffn f = {
        .width = width, .up_bias = PL_NO_PARAM, .down_bias = PL_NO_PARAM};
    int gate = 0, gate_bias = 0;
    if (gated)
        gate = pl_net_param(net, l, PL_PARAM_MATRIX, width, d, fill,
                            "%s.gate_proj.weight", prefix);
    f.up = pl_net_param(net, l, PL_PARAM_MATRIX, width, d, fill, "%s.up_proj.weight",
                        prefix);
    if (gated) f.up = gate;
    if (biased && gated)
        gate_bias = pl_net_vector(net, l, width, 0, "%s.gate_proj.bias", prefix);
    if (biased) f.up_bias = pl_net_vector(net, l, width, 0, "%s.up_proj.bias", prefix);
    if (biased && gated) f.up_bias = gate_bias;
    f.down = pl_net_param(net, l, PL_PARAM_MATRIX, d, width, end, "%s.down_proj.weight",
                          prefix);
    if (biased) f.down_bias = pl_net_vector(net, l, d, 0, "%s.down_proj.bias", prefix);
    return f;
}

int pl_ffn(const struct pl_net *net, const struct pl_pass *pass, const struct pl_ffn *f,
           int rows, const float *x, float *a, float *h, const float *addend, float *y)
{
    const struct pl_device *dev = net->dev;
    const int d = net->model.hidden, inner = pl_ffn_inner(&net->model, f->width);
    int rc = pl_linear(dev, rows, d, inner, x, pl_net_weight(net, pass, f->up),
                       pl_net_weight(net, pass, f->up_bias), NULL, a);
    if (!rc && inner == 2 * f->width)
        rc = dev->swiglu(rows, f->width, a, h);
    else if (!rc)
        rc = dev->gelu((size_t)rows * (size_t)f->width, a, h);
    return rc ? rc
              : pl_linear(dev, rows, f->width, d, h, pl_net_weight(net, pass, f->down),
                          pl_net_weight(net, pass, f->down_bias), addend, y);
}

int pl_ffn_back(const struct pl_net *net, const struct pl_pass *pass,
                const struct pl_ffn *f, int rows, const float *x, const float *a,
                const float *h, const float *dy, float *dh, float *da, float *dx)
{
    const struct pl_device *dev = net->dev;
    const int d = net->model.hidden, inner = pl_ffn_inner(&net->model, f->width);
    int rc =
        pl_linear_dw(dev, rows, f->width, d, dy, h, pl_net_grad(net, pass, f->down));
    if (!rc) rc = pl_bias_db(dev, rows, d, dy, pl_net_grad(net, pass, f->down_bias));
    if (!rc)
        rc = pl_linear_dx(dev, rows, f->width, d, dy, pl_net_weight(net, pass, f->down),
                          NULL, dh);
    if (!rc && inner == 2 * f->width)
        rc = dev->swiglu_back(rows, f->width, a, dh, da);
    else if (!rc)
        rc = dev->gelu_back((size_t)rows * (size_t)f->width, a, dh, da);
    if (!rc)
        rc = pl_linear_dw(dev, rows, d, inner, da, x, pl_net_grad(net, pass, f->up));
    if (!rc) rc = pl_bias_db(dev, rows, inner, da, pl_net_grad(net, pass, f->up_bias));
    return rc ? rc
              : pl_linear_dx(dev, rows, d, inner, da, pl_net_weight(net, pass, f->up),
                             NULL, dx);
}
