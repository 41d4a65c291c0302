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

/* Of all rows, or of each expert's; c += a product (dW only) or c = it. */
static int product(const struct pl_device *dev, enum pl_product which,
                   const struct pl_ffn *f, int rows, int in, int out, const float *a,
                   const float *b, const float *bias, float *c)
{
    if (f->groups.n)
        return dev->product_groups(which, &f->groups, in, out, a, b, bias, c);
    return dev->product(which, rows, in, out, a, b, bias,
                        which == PL_PRODUCT_DW ? c : NULL, c);
}

static int bias_back(const struct pl_device *dev, const struct pl_ffn *f, int rows,
                     int out, const float *dy, float *db)
{
    if (!f->groups.n || !db) return pl_bias_db(dev, rows, out, dy, db);
    return dev->bias_groups_back(&f->groups, out, dy, db);
}

int pl_ffn(const struct pl_net *net, const struct pl_pass *pass, const struct pl_ffn *f,
           int rows, const float *x, float *a, float *h, const float *addend, float *y)
{
    const struct pl_device *dev = net->dev;
    const int d = net->model.hidden, inner = pl_ffn_inner(&net->model, f->width);
    const float *down = pl_net_weight(net, pass, f->down);
    const float *bias = pl_net_weight(net, pass, f->down_bias);
    int rc = product(dev, PL_PRODUCT_Y, f, rows, d, inner, x,
                     pl_net_weight(net, pass, f->up),
                     pl_net_weight(net, pass, f->up_bias), a);
    if (!rc && inner == 2 * f->width)
        rc = dev->swiglu(rows, f->width, a, h);
    else if (!rc)
        rc = dev->gelu((size_t)rows * (size_t)f->width, a, h);
    if (!rc && addend)
        return pl_linear(dev, rows, f->width, d, h, down, bias, addend, y);
    return rc ? rc : product(dev, PL_PRODUCT_Y, f, rows, f->width, d, h, down, bias, y);
}

int pl_ffn_back(const struct pl_net *net, const struct pl_pass *pass,
                const struct pl_ffn *f, int rows, const float *x, const float *a,
                const float *h, const float *dy, float *dh, float *da, float *dx)
{
    const struct pl_device *dev = net->dev;
    const int d = net->model.hidden, inner = pl_ffn_inner(&net->model, f->width);
    int rc = product(dev, PL_PRODUCT_DW, f, rows, f->width, d, dy, h, NULL,
                     pl_net_grad(net, pass, f->down));
    if (!rc) rc = bias_back(dev, f, rows, d, dy, pl_net_grad(net, pass, f->down_bias));
    if (!rc)
        rc = product(dev, PL_PRODUCT_DX, f, rows, f->width, d, dy,
                     pl_net_weight(net, pass, f->down), NULL, dh);
    if (!rc && inner == 2 * f->width)
        rc = dev->swiglu_back(rows, f->width, a, dh, da);
    else if (!rc)
        rc = dev->gelu_back((size_t)rows * (size_t)f->width, a, dh, da);
    if (!rc)
        rc = product(dev, PL_PRODUCT_DW, f, rows, d, inner, da, x, NULL,
                     pl_net_grad(net, pass, f->up));
    if (!rc)
        rc = bias_back(dev, f, rows, inner, da, pl_net_grad(net, pass, f->up_bias));
    return rc ? rc
              : product(dev, PL_PRODUCT_DX, f, rows, d, inner, da,
                        pl_net_weight(net, pass, f->up), NULL, dx);
}
