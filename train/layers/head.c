/* loss = mean over rows of -log softmax(Whead y)[target], y = norm(x). Tied:
 * Whead is the embedding table (Press & Wolf, arXiv 1608.05859), wherever its stage is.
 */
#include "train/layers/linear.h"
#include "train/layers/norm.h"
#include "train/net.h"

enum { LOGITS, NORMED, STATS };
enum { GAIN, SHIFT, WHEAD };
enum { DNORMED };

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    pl_norm_declare(net, l, &l->param[GAIN], "model.norm");
    l->param[WHEAD] = m->tied ? net->layers[0].param[0]
                              : pl_net_param(net, l, PL_PARAM_HEAD, m->vocab, m->hidden,
                                             pl_net_fill(m, false), "lm_head.weight");
    size_t rows = (size_t)net->max_rows;
    l->buffer_floats[LOGITS] = rows * (size_t)m->vocab;
    l->buffer_floats[NORMED] = rows * (size_t)m->hidden;
    l->buffer_floats[STATS] = pl_norm_stats(m, rows);
    l->scratch_floats[DNORMED] = rows * (size_t)m->hidden;
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    int rows = pass->rows, d = net->model.hidden, vocab = net->model.vocab, rc;
    float *const *b = l->buffer;
    /* scale carries "mean over rows" into every gradient; 0 keeps xent from making one
     */
    float scale = pass->grads ? (float)(pass->scale / rows) : 0;
    if ((rc = pl_norm(net, pass, &l->param[GAIN], l->in, b[NORMED], b[STATS])) ||
        (rc = pl_linear(dev, rows, d, vocab, b[NORMED],
                        pl_net_weight(net, pass, l->param[WHEAD]), 0, b[LOGITS])) ||
        (rc = dev->xent(rows, vocab, b[LOGITS], pass->batch->targets, scale,
                        &pass->loss)))
        return rc;
    pass->loss /= rows;
    return 0;
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    const struct pl_device *dev = net->dev;
    int rows = pass->rows, d = net->model.hidden, vocab = net->model.vocab, rc;
    float *const *b = l->buffer, *const *scratch = net->scratch;
    if ((rc = pl_linear_dw(dev, rows, d, vocab, b[LOGITS], b[NORMED],
                           pl_net_grad(net, pass, l->param[WHEAD]))) ||
        (rc = pl_linear_dx(dev, rows, d, vocab, b[LOGITS],
                           pl_net_weight(net, pass, l->param[WHEAD]),
                           scratch[DNORMED])) ||
        (rc = dev->zero(net->dx, sizeof(float) * (size_t)rows * (size_t)d)))
        return rc;
    return pl_norm_back(net, pass, &l->param[GAIN], l->in, b[STATS], scratch[DNORMED],
                        net->dx);
}

const struct pl_layer_type pl_layer_head = {
    .name = "head",
    .summary = "final norm, output matrix and cross-entropy",
    .source = "arXiv 1608.05859 (tied)",
    .declare = declare,
    .forward = forward,
    .backward = backward,
};
