/* out = x + ffn(norm(x)): the pre-norm dense MLP. */
#include "train/layers/ffn.h"
#include "train/layers/norm.h"
#include "train/net.h"

#include <stdio.h>

enum { OUT, NORMED, STATS, INNER, H };
enum { GAIN, SHIFT };
enum { DNORMED, DH, DINNER };

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "model.layers.%d.post_attention_layernorm",
             l->index);
    pl_norm_declare(net, l, &l->param[GAIN], prefix);
    snprintf(prefix, sizeof prefix, "model.layers.%d.mlp", l->index);
    l->ffn = pl_ffn_declare(net, l, m->ffn, prefix);
    const size_t rows = (size_t)net->max_rows, d = (size_t)m->hidden;
    const size_t f = (size_t)m->ffn, inner = (size_t)pl_ffn_inner(m, m->ffn);
    l->buffer_floats[OUT] = pl_net_reals(net, rows * d);
    l->buffer_floats[NORMED] = pl_net_reals(net, rows * d);
    l->buffer_floats[STATS] = pl_norm_stats(m, rows);
    l->buffer_floats[INNER] = pl_net_reals(net, rows * inner);
    l->buffer_floats[H] = pl_net_reals(net, rows * f);
    l->scratch_floats[DNORMED] = pl_net_reals(net, rows * d);
    l->scratch_floats[DH] = pl_net_reals(net, rows * f);
    l->scratch_floats[DINNER] = pl_net_reals(net, rows * inner);
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    float *const *b = l->buffer;
    int rc = pl_norm(net, pass, &l->param[GAIN], l->in, b[NORMED], b[STATS]);
    return rc ? rc
              : pl_ffn(net, pass, &l->ffn, pass->rows, b[NORMED], b[INNER], b[H], l->in,
                       b[OUT]);
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    float *const *b = l->buffer, *const *scratch = net->scratch;
    int rc = pl_ffn_back(net, pass, &l->ffn, pass->rows, b[NORMED], b[INNER], b[H],
                         net->dx, scratch[DH], scratch[DINNER], scratch[DNORMED]);
    return rc ? rc
              : pl_norm_back(net, pass, &l->param[GAIN], l->in, b[STATS],
                             scratch[DNORMED], net->dx);
}

const struct pl_layer_type pl_layer_mlp = {
    .name = "mlp",
    .summary = "pre-norm SwiGLU or GELU",
    .source = "arXiv 2002.05202, 1606.08415",
    .declare = declare,
    .forward = forward,
    .backward = backward,
};
