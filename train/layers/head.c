/* loss = mean over rows of -log softmax(Whead y)[target], y = norm(x). Tied:
 * Whead is the embedding table (Press & Wolf, arXiv 1608.05859), wherever its stage is.
 *
 * Logits exist for a chunk of rows at a time: where gradients are wanted, forward turns
 * a chunk's logits into their gradient and adds up that of Whead and y at once, with
 * backward's weights, so nothing of (rows, vocab) is kept (as in Liger's fused linear
 * cross-entropy, arXiv 2410.10989). The gradient of y waits in net->dx. */
#include "train/layers/linear.h"
#include "train/layers/norm.h"
#include "train/net.h"

enum { LOGITS, NORMED, STATS };
enum { GAIN, SHIFT, WHEAD };

/* Rows of a chunk: 2^22 logits, but enough for products that do not wait for Whead's
 * gradient; a multiple of what a product sums at a time (host_gemm.h). A GPU needs 64
 * times as many: each chunk reads and writes that gradient, 8 bytes an element, which a
 * chunk of r rows hides behind 2 r flops (989 TFLOP/s, 4.8 TB/s: r = 824 is as long).
 */
static int chunk_rows(const struct pl_net *net)
{
    enum { LOGITS_HOST = 1 << 22, LOGITS_GPU = 1 << 28, FEWEST = 512 };
    const int most = net->dev->host_memory ? LOGITS_HOST : LOGITS_GPU;
    int rows = most / net->model.vocab / FEWEST * FEWEST;
    if (rows < FEWEST) rows = FEWEST;
    return rows < net->max_rows ? rows : net->max_rows;
}

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    pl_norm_declare(net, l, &l->param[GAIN], "model.norm");
    l->param[WHEAD] = m->tied ? net->layers[0].param[0]
                              : pl_net_param(net, l, PL_PARAM_HEAD, m->vocab, m->hidden,
                                             pl_net_fill(m, false), "lm_head.weight");
    size_t rows = (size_t)net->max_rows;
    l->buffer_floats[LOGITS] =
        pl_net_reals(net, (size_t)chunk_rows(net) * (size_t)m->vocab);
    l->buffer_floats[NORMED] = pl_net_reals(net, rows * (size_t)m->hidden);
    l->buffer_floats[STATS] = pl_norm_stats(m, rows);
}

/* Logits of rows from `first`, their loss, and with grads what follows from it. */
static int chunk(const struct pl_net *net, const struct pl_layer *l,
                 struct pl_pass *pass, int first, int rows)
{
    const struct pl_device *dev = net->dev;
    const int d = net->model.hidden, vocab = net->model.vocab;
    const struct pl_pass back = {.weights = pass->back, .grads = pass->grads};
    const size_t at = (size_t)first * (size_t)d;
    float *logits = l->buffer[LOGITS], *y = pl_device_at(dev, l->buffer[NORMED], at);
    /* scale carries "mean over rows" into every gradient; 0 keeps xent from making one
     */
    float scale = pass->grads ? (float)(pass->scale / pass->rows) : 0;
    int rc = pl_linear(dev, rows, d, vocab, y,
                       pl_net_weight(net, pass, l->param[WHEAD]), NULL, NULL, logits);
    if (!rc)
        rc = dev->xent(rows, vocab, logits, pass->batch->targets + first, scale,
                       net->sums);
    if (rc || !pass->grads) return rc;
    rc = pl_linear_dw(dev, rows, d, vocab, logits, y,
                      pl_net_grad(net, &back, l->param[WHEAD]));
    return rc ? rc
              : pl_linear_dx(dev, rows, d, vocab, logits,
                             pl_net_weight(net, &back, l->param[WHEAD]), NULL,
                             pl_device_at(dev, net->dx, at));
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const int most = chunk_rows(net);
    int rc =
        pl_norm(net, pass, &l->param[GAIN], l->in, l->buffer[NORMED], l->buffer[STATS]);
    for (int first = 0, rows; first < pass->rows && !rc; first += rows) {
        rows = pass->rows - first < most ? pass->rows - first : most;
        rc = chunk(net, l, pass, first, rows);
    }
    return rc;
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    return pl_norm_back(net, pass, &l->param[GAIN], l->in, l->buffer[STATS], net->dx,
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
