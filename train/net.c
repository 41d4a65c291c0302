/* A decoder, Llama-style (Touvron et al., arXiv 2302.13971), GPT-2-style (Radford et
 * al. 2019) or a mixture of both, as struct pl_model says, as a problem: layers on
 * stages, run forward in order and backward in reverse, in the same order of operations
 * for every number of stages. */
#include "train/net.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { ALIGN_FLOATS = 16 };

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
    net->sums =
        (double *)take(net, PL_NET_SUMS * sizeof(double) / sizeof(float), &used);
    net->loads = (int32_t *)take(net, pl_net_loads(net), &used);
    net->dx =
        take(net, pl_net_reals(net, (size_t)net->max_rows * (size_t)net->model.hidden),
             &used);
    for (int k = 0; k < PL_LAYER_SCRATCH; k++)
        net->scratch[k] = take(net, scratch[k], &used);
    return used;
}

/* What the work of a stage on a batch depends on: where everything is. Stage 0, the
 * first of the pairs, has the table that a tied head reads. */
struct key {
    const float *arena; /* the net's */
    int stage, B, T, micro;
    bool forward;
    const int32_t *tokens, *targets;
    const float *weights[2], *back[2];
    float *grads[2];
    double scale;
};

static struct key key_of(const struct pl_net *net, const struct pl_pass *pass, int s,
                         bool forward)
{
    const struct pl_batch *batch = pass->batch;
    struct key key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.arena = net->arena;
    key.stage = s;
    key.B = batch->B;
    key.T = batch->T;
    key.micro = batch->micro;
    key.forward = forward;
    key.tokens = batch->tokens;
    key.targets = batch->targets;
    for (int i = net->model.tied ? 0 : 1; i < 2; i++) {
        key.weights[i] = pass->weights[i * s];
        key.back[i] = pass->back ? pass->back[i * s] : NULL;
        key.grads[i] = pass->grads ? pass->grads[i * s] : NULL;
    }
    key.scale = pass->scale;
    return key;
}

/* The layers of stage s, in order or in reverse. */
static int layers(const struct pl_net *net, struct pl_pass *pass, int s, bool forward)
{
    int rc = 0;
    for (int k = 0; k < net->n_layers && rc == 0; k++) {
        const struct pl_layer *l = &net->layers[forward ? k : net->n_layers - 1 - k];
        if (l->stage != s) continue;
        rc = (forward ? l->type->forward : l->type->backward)(net, l, pass);
    }
    return rc;
}

int pl_net_stage(const struct pl_net *net, struct pl_pass *pass, int s, bool forward)
{
    const struct pl_device *dev = net->dev;
    if (!dev->begin) return layers(net, pass, s, forward);
    const struct key key = key_of(net, pass, s, forward);
    char name[48];
    snprintf(name, sizeof name, "%c s%d m%lld", forward ? 'F' : 'B', s,
             (long long)(pass->batch->index / pass->batch->B));
    const struct pl_span span = {name, &key, sizeof key};
    bool done;
    int rc = dev->begin(&span, &done);
    if (!rc && !done) rc = layers(net, pass, s, forward);
    const int ended = dev->end();
    return rc ? rc : ended;
}

static int forward(const struct pl_net *net, struct pl_pass *pass)
{
    const struct pl_batch *batch = pass->batch;
    assert(batch->B >= 1 && batch->T >= 1 && batch->T <= net->T);
    assert((int64_t)batch->B * batch->T <= net->max_rows);
    assert(batch->tokens && batch->targets);
    assert(batch->micro >= 0 && (!batch->micro || batch->B % batch->micro == 0));
    int rc = net->dev->zero(net->sums, PL_NET_SUMS * sizeof *net->sums);
    for (int s = 0; s < net->problem->n_stages && rc == 0; s++)
        rc = pl_net_stage(net, pass, s, true);
    return rc;
}

/* Of the routers: the terms as they are, and without their coefficients. */
static void sum_up(const struct pl_net *net, const double terms[2])
{
    struct pl_routers *r = &net->problem->routers;
    const double balance = r->layers * (double)(float)net->model.aux_loss,
                 z = r->layers * (double)(float)net->model.z_loss; /* as route() */
    r->aux = terms[0] + terms[1];
    r->balance = balance > 0 ? terms[0] / balance : NAN;
    r->z = z > 0 ? terms[1] / z : NAN;
}

/* The losses of the batch, when its work is done; before, the caller may go on. */
static int finish(const struct pl_net *net, const struct pl_pass *pass, double *loss)
{
    const struct pl_batch *batch = pass->batch;
    double sums[PL_NET_SUMS];
    int rc = batch->meanwhile ? batch->meanwhile(batch->context) : 0;
    if (!rc) rc = net->dev->download(sums, net->sums, sizeof sums);
    if (!rc && pl_net_loads(net))
        rc = net->dev->download(net->problem->routers.load, net->loads,
                                pl_net_loads(net) * sizeof *net->loads);
    if (rc) return rc;
    *loss = sums[0] / pass->rows;
    sum_up(net, sums + 1);
    return 0;
}

static int net_gradient(struct pl_problem *p, const struct pl_batch *batch,
                        const float *const *wf, const float *const *wb, double scale,
                        float *const *grads, double *loss)
{
    const struct pl_net *net = p->state;
    struct pl_pass pass = {.batch = batch,
                           .rows = batch->B * batch->T,
                           .weights = wf,
                           .back = wb,
                           .grads = grads,
                           .scale = scale};
    int rc = forward(net, &pass);
    pass.weights = wb;
    for (int s = p->n_stages - 1; s >= 0 && rc == 0; s--)
        rc = pl_net_stage(net, &pass, s, false);
    return rc ? rc : finish(net, &pass, loss);
}

static int net_loss(struct pl_problem *p, const struct pl_batch *batch,
                    const float *const *weights, double *loss)
{
    struct pl_pass pass = {
        .batch = batch, .rows = batch->B * batch->T, .weights = weights};
    int rc = forward(p->state, &pass);
    return rc ? rc : finish(p->state, &pass, loss);
}

static void net_free(struct pl_problem *p)
{
    struct pl_net *net = p->state;
    if (net->arena) net->dev->release(net->arena);
    free(net->layers);
    free(net->fill);
    free(net);
}

static size_t net_bytes(const struct pl_problem *p)
{
    const struct pl_net *net = p->state;
    return net->arena_floats * sizeof(float) +
           pl_device_scratch(net->dev, net->T, net->model.head_dim);
}

static int open_sized(const struct pl_device *device, const struct pl_model *model,
                      int P, int max_B, int T, bool dry, struct pl_problem **out)
{
    *out = NULL;
    if (max_B < 1 || T < 1 || max_B > INT_MAX / T)
        return pl_fail(PL_ECONFIG,
                       "batch of %d sequences of %d tokens, expected both "
                       "positive and at most %d tokens in all; train.at_once "
                       "computes fewer at once",
                       max_B, T, INT_MAX);
    if (model->positions && T > model->positions)
        return pl_fail(PL_ECONFIG,
                       "train.seq is %d, expected at most model.positions (%d)", T,
                       model->positions);
    struct pl_problem *p;
    int rc = pl_model_check(model);
    if (!rc) rc = pl_model_check_trainable(model);
    if (rc) return rc;
    rc = pl_net_new(device, model, P, max_B * T, T, &p);
    if (rc) return rc;
    struct pl_net *net = p->state;
    net->arena_floats = lay_out(net);
    void *arena = NULL;
    if (!dry && (rc = device->alloc(net->arena_floats * sizeof(float), &arena))) {
        pl_problem_free(p);
        return rc;
    }
    net->arena = arena;
    if (arena) lay_out(net);
    *out = p;
    return 0;
}

static int net_open(const struct pl_problem_spec *spec, const struct pl_device *device,
                    int P, struct pl_problem **out)
{
    return open_sized(device, spec->model, P, spec->max_B, spec->T, spec->dry, out);
}

const struct pl_problem_type pl_problem_model = {
    .name = "model",
    .summary = "decoder as model.* says: Llama, GPT-2, mixtures of experts",
    .source = "arXiv 2302.13971; Radford et al. 2019",
    .settings = "",
    .on_data = true,
    .open = net_open,
    .init = pl_net_init,
    .gradient = net_gradient,
    .loss = net_loss,
    .free = net_free,
    .bytes = net_bytes,
};

int pl_problem_net(const struct pl_device *device, const struct pl_model *model, int P,
                   int max_B, int T, struct pl_problem **out)
{
    return open_sized(device, model, P, max_B, T, false, out);
}
