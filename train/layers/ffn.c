#include "train/layers/ffn.h"

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
