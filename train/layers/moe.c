/* Mixture of experts (Shazeer et al., arXiv 1701.06538). */
#include "train/layers/ffn.h"
#include "train/layers/norm.h"
#include "base/mem.h"

#include <stdio.h>

enum { GAIN, SHIFT, ROUTER, BALANCE, SHARED_GATE };

static void declare_shared(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    char prefix[64];
    l->param[SHARED_GATE] = PL_NO_PARAM;
    if (!m->shared_ffn) return;
    snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.shared_expert%s", l->index,
             m->shared_gate ? "" : "s");
    l->shared = pl_ffn_declare(net, l, m->shared_ffn, prefix);
    if (m->shared_gate) /* one row: a direction, no matrix to be orthogonalised */
        l->param[SHARED_GATE] =
            pl_net_param(net, l, PL_PARAM_VECTOR, 1, m->hidden, pl_net_fill(m, false),
                         "model.layers.%d.mlp.shared_expert_gate.weight", l->index);
}

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "model.layers.%d.post_attention_layernorm",
             l->index);
    pl_norm_declare(net, l, &l->param[GAIN], prefix);
    l->param[ROUTER] = pl_net_param(net, l, PL_PARAM_MATRIX, m->experts, m->hidden,
                                    pl_net_fill(m, false),
                                    "model.layers.%d.mlp.gate.weight", l->index);
    for (int e = 0; e < m->experts; e++) {
        snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.experts.%d", l->index, e);
        struct pl_ffn f = pl_ffn_declare(net, l, m->expert_ffn, prefix);
        if (e == 0) l->ffn = f;
        if (e == 1) l->ffn_step = f.up - l->ffn.up;
    }
    declare_shared(net, l);
    l->counts = PL_NEW(m->experts, int32_t);
}

static void declare_last(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    l->param[BALANCE] =
        m->router_bias
            ? pl_net_param(net, l, PL_PARAM_BALANCE, 1, m->experts,
                           (struct pl_net_fill){0, 0},
                           "model.layers.%d.mlp.gate.e_score_correction_bias", l->index)
            : PL_NO_PARAM;
}

const struct pl_layer_type pl_layer_moe = {
    .name = "moe",
    .summary = "pre-norm mixture of experts",
    .source = "arXiv 1701.06538",
    .declare = declare,
    .declare_last = declare_last,
};
