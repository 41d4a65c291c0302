/* out = x + sum_j w_j expert_j(y) + shared(y), y = norm(x): mixture of experts (Shazeer
 * et al., arXiv 1701.06538), without capacity, so that no token is dropped. The
 * router's logits are Wr y; scores, choice, weights w and the losses of balance (Fedus
 * et al., arXiv 2101.03961, eq. 4; per sequence: DeepSeek, arXiv 2405.04434, eq. 23)
 * and z (Zoph et al., arXiv 2202.08906, eq. 5) are gpu/device.h's route(). A selection
 * bias (DeepSeek-V3, arXiv 2412.19437, eq. 16) takes part in the choice only; in the
 * place of a gradient it gets its expert's share of the choices above the mean, by
 * whose sign the training loop moves it. Shared experts may have a gate sigmoid(wg . y)
 * (Qwen2-MoE): a router with one expert that everybody visits. */
#include "train/layers/ffn.h"
#include "train/layers/linear.h"
#include "train/layers/norm.h"

#include <stdio.h>

enum { GAIN, SHIFT, ROUTER, BALANCE, SHARED_GATE };
/* SCORE to LOAD: of the routed experts, in the order of struct pl_routing; again of the
 * shared ones' gate. X, INNER, H, Y: rows in the order of the experts. */
enum {
    OUT,
    NORMED,
    STATS,
    LOGITS,
    SCORE,
    WEIGHT,
    EXPERT,
    SLOT,
    OF_SLOT,
    LOAD,
    X,
    INNER,
    H,
    Y,
    SHARED_INNER,
    SHARED_H,
    SHARED_Y,
    GATE_LOGIT,
    GATE_SCORE,
    GATE_WEIGHT,
    GATE_EXPERT,
    GATE_SLOT,
    GATE_OF_SLOT,
    GATE_LOAD
};
enum { DNORMED, DY, DH, DINNER, DX, DWEIGHT, DLOGITS };

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

static void declare_params(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "model.layers.%d.post_attention_layernorm",
             l->index);
    pl_norm_declare(net, l, &l->param[GAIN], prefix);
    l->param[ROUTER] = pl_net_param(net, l, PL_PARAM_MATRIX, m->experts, m->hidden,
                                    pl_net_fill(m, false),
                                    "model.layers.%d.mlp.gate.weight", l->index);
    for (int e = 0; e < m->experts; e++) { /* evenly spaced */
        snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.experts.%d", l->index, e);
        struct pl_ffn f = pl_ffn_declare(net, l, m->expert_ffn, prefix);
        const struct pl_param *params = net->problem->params;
        if (e == 0) l->ffn = f;
        if (e == 1)
            l->ffn.groups.stride = params[f.up].offset - params[l->ffn.up].offset;
    }
    l->ffn.groups.n = m->experts;
    declare_shared(net, l);
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

/* Sizes of the arrays of struct pl_routing; a group has at least one row. */
static void size_routing(struct pl_layer *l, int first, size_t rows, size_t experts,
                         size_t chosen)
{
    size_t *floats = l->buffer_floats + first;
    floats[0] = rows * experts;
    for (int i = 1; i < 5; i++) floats[i] = rows * chosen;
    floats[5] = (rows + 1) * experts;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void declare(struct pl_net *net, struct pl_layer *l)
{
    const struct pl_model *m = &net->model;
    declare_params(net, l);
    l->router = net->problem->routers.layers++;
    const size_t rows = (size_t)net->max_rows, d = (size_t)m->hidden;
    const size_t E = (size_t)m->experts, n = rows * (size_t)m->experts_per_token;
    const size_t f = (size_t)m->expert_ffn, shared = (size_t)m->shared_ffn;
    const size_t inner = (size_t)pl_ffn_inner(m, m->expert_ffn);
    const size_t shared_inner = (size_t)pl_ffn_inner(m, m->shared_ffn);
    size_t *buffer = l->buffer_floats, *scratch = l->scratch_floats;
    buffer[OUT] = buffer[NORMED] = pl_net_reals(net, rows * d);
    buffer[STATS] = pl_norm_stats(m, rows);
    buffer[LOGITS] = pl_net_reals(net, rows * E);
    size_routing(l, SCORE, rows, E, (size_t)m->experts_per_token);
    buffer[X] = buffer[Y] = pl_net_reals(net, n * d);
    buffer[INNER] = pl_net_reals(net, n * inner);
    buffer[H] = pl_net_reals(net, n * f);
    buffer[SHARED_INNER] = pl_net_reals(net, rows * shared_inner);
    buffer[SHARED_H] = pl_net_reals(net, rows * shared);
    if (m->shared_gate) {
        buffer[SHARED_Y] = pl_net_reals(net, rows * d);
        buffer[GATE_LOGIT] = pl_net_reals(net, rows);
        size_routing(l, GATE_SCORE, rows, 1, 1);
    }
    scratch[DNORMED] = pl_net_reals(net, rows * d);
    scratch[DY] = scratch[DX] = pl_net_reals(net, n * d);
    scratch[DH] = pl_net_reals(net, larger(n * f, rows * shared));
    scratch[DINNER] = pl_net_reals(net, larger(n * inner, rows * shared_inner));
    scratch[DWEIGHT] = n;
    scratch[DLOGITS] = pl_net_reals(net, rows * E);
}

static struct pl_routing routing(const struct pl_net *net, const struct pl_layer *l,
                                 const struct pl_pass *pass, bool gate)
{
    const struct pl_model *m = &net->model;
    const struct pl_batch *batch = pass->batch;
    const int micro = batch->micro ? batch->micro : batch->B;
    float *const *b = l->buffer + (gate ? GATE_SCORE : SCORE);
    struct pl_routing r = {.rows = pass->rows,
                           .experts = 1,
                           .chosen = 1,
                           .group = pass->rows,
                           .sigmoid = true,
                           .scale = 1,
                           .score = b[0],
                           .weight = b[1],
                           .expert = (int32_t *)b[2],
                           .slot = (int32_t *)b[3],
                           .of_slot = (int32_t *)b[4],
                           .load = (int32_t *)b[5]};
    if (gate) return r;
    r.experts = m->experts;
    r.chosen = m->experts_per_token;
    r.group = m->seq_aux ? batch->T : micro * batch->T;
    r.sigmoid = m->scoring == PL_SCORING_SIGMOID;
    r.normed = m->norm_topk;
    r.scale = m->routed_scale > 0 ? (float)m->routed_scale : 1;
    r.balance = (float)m->aux_loss;
    r.z = (float)m->z_loss;
    return r;
}

/* All experts, with the rows that chose them. */
static struct pl_ffn experts(const struct pl_layer *l, const struct pl_routing *r)
{
    struct pl_ffn f = l->ffn;
    f.groups.rows = r->rows * r->chosen;
    f.groups.load = r->load + (size_t)(r->rows / r->group) * (size_t)r->experts;
    return f;
}

/* OUT = in + what the routed experts say. The loads are kept for whoever asks when the
 * batch is done. */
static int forward_experts(const struct pl_net *net, const struct pl_layer *l,
                           const struct pl_pass *pass, const struct pl_routing *r)
{
    const struct pl_device *dev = net->dev;
    const struct pl_ffn f = experts(l, r);
    const size_t E = (size_t)r->experts;
    const int d = net->model.hidden, rows = f.groups.rows;
    float *const *b = l->buffer;
    int rc = dev->copy(net->loads + (size_t)l->router * E, f.groups.load,
                       E * sizeof *net->loads);
    if (!rc) rc = dev->gather(rows, d, r->of_slot, b[NORMED], b[X]);
    if (!rc) rc = pl_ffn(net, pass, &f, rows, b[X], b[INNER], b[H], NULL, b[Y]);
    return rc ? rc
              : dev->combine(r->rows, r->chosen, d, r->slot, r->weight, b[Y], l->in,
                             b[OUT]);
}

/* OUT += what the shared ones say. */
static int forward_shared(const struct pl_net *net, const struct pl_layer *l,
                          const struct pl_pass *pass)
{
    const struct pl_model *m = &net->model;
    float *const *b = l->buffer;
    if (!m->shared_ffn) return 0;
    if (!m->shared_gate)
        return pl_ffn(net, pass, &l->shared, pass->rows, b[NORMED], b[SHARED_INNER],
                      b[SHARED_H], b[OUT], b[OUT]);
    const struct pl_routing r = routing(net, l, pass, true);
    int rc = pl_ffn(net, pass, &l->shared, pass->rows, b[NORMED], b[SHARED_INNER],
                    b[SHARED_H], NULL, b[SHARED_Y]);
    if (!rc)
        rc = pl_linear(net->dev, pass->rows, m->hidden, 1, b[NORMED],
                       pl_net_weight(net, pass, l->param[SHARED_GATE]), NULL, NULL,
                       b[GATE_LOGIT]);
    if (!rc) rc = net->dev->route(&r, b[GATE_LOGIT], NULL, net->sums + 1);
    return rc ? rc
              : net->dev->combine(r.rows, 1, m->hidden, r.slot, r.weight, b[SHARED_Y],
                                  b[OUT], b[OUT]);
}

static int forward(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass)
{
    const struct pl_routing r = routing(net, l, pass, false);
    float *const *b = l->buffer;
    int rc = pl_norm(net, pass, &l->param[GAIN], l->in, b[NORMED], b[STATS]);
    if (!rc)
        rc = pl_linear(net->dev, r.rows, net->model.hidden, r.experts, b[NORMED],
                       pl_net_weight(net, pass, l->param[ROUTER]), NULL, NULL,
                       b[LOGITS]);
    if (!rc)
        rc = net->dev->route(&r, b[LOGITS], pl_net_weight(net, pass, l->param[BALANCE]),
                             net->sums + 1);
    if (!rc) rc = forward_experts(net, l, pass, &r);
    return rc ? rc : forward_shared(net, l, pass);
}

/* What a router of n logits says: dw += dlogits^T x, dx += dlogits W. */
static int logits_back(const struct pl_net *net, const struct pl_layer *l,
                       const struct pl_pass *pass, int n, int param)
{
    float *const *scratch = net->scratch;
    const int d = net->model.hidden;
    int rc = pl_linear_dw(net->dev, pass->rows, d, n, scratch[DLOGITS],
                          l->buffer[NORMED], pl_net_grad(net, pass, param));
    return rc ? rc
              : pl_linear_dx(net->dev, pass->rows, d, n, scratch[DLOGITS],
                             pl_net_weight(net, pass, param), scratch[DNORMED],
                             scratch[DNORMED]);
}

/* DNORMED = what comes through the shared experts, if there are any; uses the other
 * scratch. */
static int backward_shared(const struct pl_net *net, const struct pl_layer *l,
                           const struct pl_pass *pass)
{
    const struct pl_model *m = &net->model;
    float *const *b = l->buffer, *const *scratch = net->scratch;
    const float *dy = net->dx;
    int rc = 0;
    if (!m->shared_ffn) return 0;
    if (m->shared_gate) {
        const struct pl_routing r = routing(net, l, pass, true);
        rc = net->dev->combine_back(r.rows, 1, m->hidden, r.slot, r.weight, b[SHARED_Y],
                                    net->dx, scratch[DY], scratch[DWEIGHT]);
        if (!rc)
            rc = net->dev->route_back(&r, b[GATE_LOGIT], scratch[DWEIGHT], 1,
                                      scratch[DLOGITS], NULL);
        dy = scratch[DY];
    }
    if (!rc)
        rc = pl_ffn_back(net, pass, &l->shared, pass->rows, b[NORMED], b[SHARED_INNER],
                         b[SHARED_H], dy, scratch[DH], scratch[DINNER],
                         scratch[DNORMED]);
    if (rc || !m->shared_gate) return rc;
    return logits_back(net, l, pass, 1, l->param[SHARED_GATE]);
}

/* DNORMED = what comes through the routed experts, beside what came through shared
 * ones; DWEIGHT is set. */
static int backward_experts(const struct pl_net *net, const struct pl_layer *l,
                            const struct pl_pass *pass, const struct pl_routing *r)
{
    const struct pl_device *dev = net->dev;
    const struct pl_ffn f = experts(l, r);
    const int d = net->model.hidden;
    float *const *b = l->buffer, *const *scratch = net->scratch;
    int rc = dev->combine_back(r->rows, r->chosen, d, r->slot, r->weight, b[Y], net->dx,
                               scratch[DY], scratch[DWEIGHT]);
    if (!rc)
        rc = pl_ffn_back(net, pass, &f, f.groups.rows, b[X], b[INNER], b[H],
                         scratch[DY], scratch[DH], scratch[DINNER], scratch[DX]);
    return rc ? rc
              : dev->combine(r->rows, r->chosen, d, r->slot, NULL, scratch[DX],
                             net->model.shared_ffn ? scratch[DNORMED] : NULL,
                             scratch[DNORMED]);
}

static int backward(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass)
{
    const struct pl_routing r = routing(net, l, pass, false);
    float *const *b = l->buffer, *const *scratch = net->scratch;
    int rc = backward_shared(net, l, pass);
    if (!rc) rc = backward_experts(net, l, pass, &r);
    if (!rc)
        rc = net->dev->route_back(&r, b[LOGITS], scratch[DWEIGHT], pass->scale,
                                  scratch[DLOGITS],
                                  pl_net_grad(net, pass, l->param[BALANCE]));
    if (!rc) rc = logits_back(net, l, pass, r.experts, l->param[ROUTER]);
    return rc ? rc
              : pl_norm_back(net, pass, &l->param[GAIN], l->in, b[STATS],
                             scratch[DNORMED], net->dx);
}

const struct pl_layer_type pl_layer_moe = {
    .name = "moe",
    .summary = "pre-norm mixture of experts",
    .source = "arXiv 1701.06538",
    .declare = declare,
    .declare_last = declare_last,
    .forward = forward,
    .backward = backward,
};
