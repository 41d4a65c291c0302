/* RMSNorm: y = x / sqrt(mean x^2 + eps) gain (Zhang & Sennrich, arXiv 1910.07467);
 * LayerNorm: y = (x - mean) / sqrt(var + eps) gain + bias (Ba et al., arXiv
 * 1607.06450), the bias where every matrix has one. */
#include "train/layers/norm.h"

void pl_norm_declare(struct pl_net *net, struct pl_layer *l, int param[2],
                     const char *name)
{
    const struct pl_model *m = &net->model;
    param[0] = pl_net_vector(net, l, m->hidden, 1, "%s.weight", name);
    param[1] = m->norm == PL_NORM_LAYER && m->bias == PL_BIAS_ALL
                   ? pl_net_vector(net, l, m->hidden, 0, "%s.bias", name)
                   : PL_NO_PARAM;
}

size_t pl_norm_stats(const struct pl_model *m, size_t rows)
{
    return m->norm == PL_NORM_LAYER ? 2 * rows : rows;
}

int pl_norm(const struct pl_net *net, const struct pl_pass *pass, const int param[2],
            const float *x, float *y, float *stats)
{
    const struct pl_model *m = &net->model;
    const float *gain = pl_net_weight(net, pass, param[0]);
    const float eps = (float)m->norm_eps;
    if (m->norm == PL_NORM_RMS)
        return net->dev->rmsnorm(pass->rows, m->hidden, eps, x, gain, y, stats);
    return net->dev->layernorm(pass->rows, m->hidden, eps, x, gain,
                               pl_net_weight(net, pass, param[1]), y, stats,
                               stats + pass->rows);
}

int pl_norm_back(const struct pl_net *net, const struct pl_pass *pass,
                 const int param[2], const float *x, const float *stats,
                 const float *dy, float *dx)
{
    const struct pl_model *m = &net->model;
    const float *gain = pl_net_weight(net, pass, param[0]);
    float *dgain = pl_net_grad(net, pass, param[0]);
    if (m->norm == PL_NORM_RMS)
        return net->dev->rmsnorm_back(pass->rows, m->hidden, x, gain, stats, dy, dx,
                                      dgain);
    return net->dev->layernorm_back(pass->rows, m->hidden, x, gain, stats,
                                    stats + pass->rows, dy, dx, dgain,
                                    pl_net_grad(net, pass, param[1]));
}
