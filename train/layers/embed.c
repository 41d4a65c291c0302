/* x[r] = E[token r], E (vocab, hidden); with learned positions + P[position of r]
 * (Radford et al. 2019). */
#include "train/net.h"

enum { OUT };
enum { TABLE, POSITIONS };

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    l->param[TABLE] = pl_net_param(net, l, PL_PARAM_EMBED, m->vocab, m->hidden,
                                   pl_net_fill(m, false), "model.embed_tokens.weight");
    l->param[POSITIONS] =
        m->positions
            ? pl_net_param(net, l, PL_PARAM_EMBED, m->positions, m->hidden,
                           pl_net_fill(m, false), "model.embed_positions.weight")
            : PL_NO_PARAM;
    l->buffer_floats[OUT] =
        pl_net_reals(net, (size_t)net->max_rows * (size_t)m->hidden);
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const int d = net->model.hidden;
    const float *positions = pl_net_weight(net, pass, l->param[POSITIONS]);
    int rc = net->dev->embed(pass->rows, d, pass->batch->tokens,
                             pl_net_weight(net, pass, l->param[TABLE]), l->buffer[OUT]);
    if (rc || !positions) return rc;
    return net->dev->add_rows(pass->rows, pass->batch->T, d, positions, l->buffer[OUT]);
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    const int d = net->model.hidden;
    float *dpositions = pl_net_grad(net, pass, l->param[POSITIONS]);
    int rc = net->dev->embed_back(pass->rows, d, pass->batch->tokens, net->dx,
                                  pl_net_grad(net, pass, l->param[TABLE]));
    if (rc || !dpositions) return rc;
    return net->dev->add_rows_back(pass->rows, pass->batch->T, d, net->dx, dpositions);
}

const struct pl_layer_type pl_layer_embed = {
    .name = "embed",
    .summary = "token embedding and learned positions",
    .source = "Vaswani et al., arXiv 1706.03762",
    .declare = declare,
    .forward = forward,
    .backward = backward,
};
