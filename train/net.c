/* Llama-style decoder (Touvron et al., arXiv 2302.13971) as a problem: a list of layers
 * on stages, run forward in order and backward in reverse, in the same order of
 * operations for every number of stages. */
#include "train/net.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

enum { PARAMS_PER_BLOCK = 9, PARAMS_OUTSIDE = 3, ALIGN_FLOATS = 16 };

int pl_net_param(struct pl_net *net, const struct pl_layer *l, enum pl_param_kind kind,
                 int rows, int cols, double init_sd, const char *format)
{
    struct pl_problem *p = net->problem;
    assert(p->n_params < PARAMS_PER_BLOCK * net->model.layers + PARAMS_OUTSIDE);
    struct pl_param *q = &p->params[p->n_params];
    *q = (struct pl_param){.stage = l->stage,
                           .rows = rows,
                           .cols = cols,
                           .offset = p->stage_floats[l->stage],
                           .kind = kind};
    int n = snprintf(q->name, sizeof q->name, format, l->index);
    assert(n > 0 && (size_t)n < sizeof q->name);
    net->init_sd[p->n_params] = init_sd;
    p->stage_floats[l->stage] += pl_param_size(q);
    p->first_param[l->stage + 1] = p->n_params + 1;
    return p->n_params++;
}

static void add_layer(struct pl_net *net, const struct pl_layer_type *type, int stage,
                      int index)
{
    struct pl_layer *l = &net->layers[net->n_layers++];
    *l = (struct pl_layer){.type = type, .stage = stage, .index = index};
    type->declare(net, l);
}

static void add_layers(struct pl_net *net, int P, const int *first)
{
    add_layer(net, &pl_layer_embed, 0, 0);
    for (int s = 0; s < P; s++)
        for (int i = first[s]; i < first[s + 1]; i++) {
            add_layer(net, &pl_layer_attention, s, i);
            add_layer(net, &pl_layer_mlp, s, i);
        }
    add_layer(net, &pl_layer_head, P - 1, 0);
}

/* Next slice of the arena; the first walk, with no arena yet, only counts. */
static float *take(struct pl_net *net, size_t floats, size_t *used)
{
    float *slice = net->arena ? net->arena + *used : NULL;
    *used += (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
    return slice;
}

static size_t lay_out(struct pl_net *net)
{
    size_t used = 0, scratch[PL_LAYER_SCRATCH] = {0};
    for (int i = 0; i < net->n_layers; i++) {
        struct pl_layer *l = &net->layers[i];
        for (int k = 0; k < PL_LAYER_BUFFERS; k++)
            l->buffer[k] = take(net, l->buffer_floats[k], &used);
        for (int k = 0; k < PL_LAYER_SCRATCH; k++)
            if (l->scratch_floats[k] > scratch[k]) scratch[k] = l->scratch_floats[k];
        l->in = i > 0 ? net->layers[i - 1].buffer[0] : NULL;
    }
    net->dx = take(net, (size_t)net->max_rows * (size_t)net->model.hidden, &used);
    for (int k = 0; k < PL_LAYER_SCRATCH; k++)
        net->scratch[k] = take(net, scratch[k], &used);
    return used;
}

static int forward(const struct pl_net *net, struct pl_pass *pass)
{
    const struct pl_batch *batch = pass->batch;
    assert(batch->B >= 1 && batch->T >= 1 && batch->T <= net->T);
    assert((int64_t)batch->B * batch->T <= net->max_rows);
    assert(batch->tokens && batch->targets);
    int rc = 0;
    for (int i = 0; i < net->n_layers && rc == 0; i++)
        rc = net->layers[i].type->forward(net, &net->layers[i], pass);
    return rc;
}

static int net_gradient(struct pl_problem *p, const struct pl_batch *batch,
                        const float *const *wf, const float *const *wb, double scale,
                        float *const *grads, double *loss)
{
    const struct pl_net *net = p->state;
    struct pl_pass pass = {.batch = batch,
                           .rows = batch->B * batch->T,
                           .weights = wf,
                           .grads = grads,
                           .scale = scale};
    int rc = forward(net, &pass);
    pass.weights = wb;
    for (int i = net->n_layers - 1; i >= 0 && rc == 0; i--)
        rc = net->layers[i].type->backward(net, &net->layers[i], &pass);
    if (rc == 0) *loss = pass.loss;
    return rc;
}

static int net_loss(struct pl_problem *p, const struct pl_batch *batch,
                    const float *const *weights, double *loss)
{
    struct pl_pass pass = {
        .batch = batch, .rows = batch->B * batch->T, .weights = weights};
    int rc = forward(p->state, &pass);
    if (rc == 0) *loss = pass.loss;
    return rc;
}

static void net_free(struct pl_problem *p)
{
    struct pl_net *net = p->state;
    if (net->arena) net->dev->release(net->arena);
    free(net->layers);
    free(net->init_sd);
    free(net);
}

static size_t net_bytes(const struct pl_problem *p)
{
    return ((const struct pl_net *)p->state)->arena_floats * sizeof(float);
}

static int net_open(const struct pl_problem_spec *spec, const struct pl_device *device,
                    int P, struct pl_problem **out)
{
    return pl_problem_llama(device, spec->model, P, spec->max_B, spec->T, out);
}

const struct pl_problem_type pl_problem_model = {
    .name = "model",
    .summary = "Llama-style decoder: RMSNorm, rotary grouped-query attention, SwiGLU",
    .source = "arXiv 2302.13971",
    .settings = "",
    .on_data = true,
    .open = net_open,
    .init = pl_net_init,
    .gradient = net_gradient,
    .loss = net_loss,
    .free = net_free,
    .bytes = net_bytes,
};

static struct pl_problem *net_new(const struct pl_device *device,
                                  const struct pl_model *model, int P, int max_rows,
                                  int T)
{
    struct pl_problem *p = PL_NEW(1, struct pl_problem);
    struct pl_net *net = PL_NEW(1, struct pl_net);
    int n_params = PARAMS_PER_BLOCK * model->layers + PARAMS_OUTSIDE;
    *net = (struct pl_net){.dev = device,
                           .problem = p,
                           .model = *model,
                           .max_rows = max_rows,
                           .T = T,
                           .layers = PL_NEW(2 * model->layers + 2, struct pl_layer),
                           .init_sd = PL_NEW(n_params, double)};
    *p = (struct pl_problem){.type = &pl_problem_model,
                             .device = device,
                             .n_stages = P,
                             .params = PL_NEW(n_params, struct pl_param),
                             .first_param = PL_NEW(P + 1, int),
                             .stage_floats = PL_NEW(P, size_t),
                             .shared_across_stages = model->tied && P > 1,
                             .state = net};
    return p;
}

/* Initial values are numbered in 32 bits. */
static int check_params(const struct pl_problem *p)
{
    for (int i = 0; i < p->n_params; i++)
        if (pl_param_size(&p->params[i]) > UINT32_MAX)
            return pl_fail(PL_ECONFIG,
                           "model.*: %s has %d x %d numbers, at most %u are supported",
                           p->params[i].name, p->params[i].rows, p->params[i].cols,
                           (unsigned)UINT32_MAX);
    return 0;
}

int pl_problem_llama(const struct pl_device *device, const struct pl_model *model,
                     int P, int max_B, int T, struct pl_problem **out)
{
    *out = NULL;
    int rc = pl_model_check(model);
    if (!rc) rc = pl_model_check_plain(model);
    if (rc) return rc;
    if (P < 1 || P > model->layers)
        return pl_fail(PL_ECONFIG, "%d stages for %d layers, expected 1 to %d", P,
                       model->layers, model->layers);
    if (max_B < 1 || T < 1 || max_B > INT_MAX / T)
        return pl_fail(PL_ECONFIG,
                       "batch of %d sequences of %d tokens, expected both "
                       "positive and at most %d tokens in all",
                       max_B, T, INT_MAX);
    int *first = PL_NEW(P + 1, int);
    if ((rc = pl_model_split(model, P, first))) {
        free(first);
        return rc;
    }
    struct pl_problem *p = net_new(device, model, P, max_B * T, T);
    struct pl_net *net = p->state;
    add_layers(net, P, first);
    free(first);
    if ((rc = check_params(p))) {
        pl_problem_free(p);
        return rc;
    }
    net->arena_floats = lay_out(net);
    void *arena;
    if ((rc = device->alloc(net->arena_floats * sizeof(float), &arena))) {
        pl_problem_free(p);
        return rc;
    }
    net->arena = arena;
    lay_out(net);
    *out = p;
    return 0;
}
