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
