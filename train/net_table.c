/* The decoder's tables: which layers it has on which stage, and their tensors. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/net.h"

static int add_param(struct pl_net *net, const struct pl_layer *l,
                     struct pl_param param, struct pl_net_fill fill, const char *format,
                     va_list args)
{
    struct pl_problem *p = net->problem;
    assert(p->n_params < net->most_params);
    struct pl_param *q = &p->params[p->n_params];
    *q = param;
    q->stage = l->stage;
    q->offset = p->stage_floats[l->stage];
    int n = vsnprintf(q->name, sizeof q->name, format, args);
    assert(n > 0 && (size_t)n < sizeof q->name);
    net->fill[p->n_params] = fill;
    p->stage_floats[l->stage] += pl_param_size(q);
    p->first_param[l->stage + 1] = p->n_params + 1;
    return p->n_params++;
}

int pl_net_param(struct pl_net *net, const struct pl_layer *l, enum pl_param_kind kind,
                 int rows, int cols, struct pl_net_fill fill, const char *format, ...)
{
    struct pl_param p = {.rows = rows, .cols = cols, .kind = kind};
    va_list args;
    va_start(args, format);
    int i = add_param(net, l, p, fill, format, args);
    va_end(args);
    return i;
}

int pl_net_vector(struct pl_net *net, const struct pl_layer *l, int n, float value,
                  const char *format, ...)
{
    struct pl_param p = {.rows = 1, .cols = n, .kind = PL_PARAM_VECTOR};
    va_list args;
    va_start(args, format);
    int i = add_param(net, l, p, (struct pl_net_fill){0, value}, format, args);
    va_end(args);
    return i;
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
    for (int s = 0; s < P; s++) {
        for (int i = first[s]; i < first[s + 1]; i++) {
            add_layer(net, &pl_layer_attention, s, i);
            add_layer(net,
                      pl_model_is_moe(&net->model, i) ? &pl_layer_moe : &pl_layer_mlp,
                      s, i);
        }
        if (s == P - 1) add_layer(net, &pl_layer_head, s, 0);
        for (int i = 0; i < net->n_layers; i++)
            if (net->layers[i].stage == s && net->layers[i].type->declare_last)
                net->layers[i].type->declare_last(net, &net->layers[i]);
    }
}

/* Not fewer tensors than the model has. */
static size_t most_params(const struct pl_model *m)
{
    const size_t attention = 12, norm = 2, ffn = 6, router = 3, outside = 6;
    size_t moe = m->experts ? router + ffn * ((size_t)m->experts + 1) : 0;
    return outside + (size_t)m->layers * (attention + norm + ffn + moe);
}

static struct pl_problem *open_tables(const struct pl_device *device,
                                      const struct pl_model *model, int P, int max_rows,
                                      int T)
{
    struct pl_problem *p = PL_NEW(1, struct pl_problem);
    struct pl_net *net = PL_NEW(1, struct pl_net);
    const size_t n_params = most_params(model),
                 choices = (size_t)model->layers * (size_t)model->experts;
    *net = (struct pl_net){.dev = device,
                           .problem = p,
                           .model = *model,
                           .max_rows = max_rows,
                           .T = T,
                           .layers = PL_NEW(2 * model->layers + 2, struct pl_layer),
                           .most_params = (int)n_params,
                           .fill = PL_NEW(n_params, struct pl_net_fill)};
    *p = (struct pl_problem){
        .type = &pl_problem_model,
        .device = device,
        .n_stages = P,
        .params = PL_NEW(n_params, struct pl_param),
        .first_param = PL_NEW(P + 1, int),
        .stage_floats = PL_NEW(P, size_t),
        .shared_across_stages = model->tied && P > 1,
        .balance_rate = model->bias_rate,
        .routers = {.experts = model->experts, .load = PL_NEW(choices, int32_t)},
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

int pl_net_new(const struct pl_device *device, const struct pl_model *model, int P,
               int max_rows, int T, struct pl_problem **out)
{
    enum { MOST = 1 << 24 }; /* tensors; a table of 2 GB */
    *out = NULL;
    int rc = pl_model_check(model);
    if (rc) return rc;
    if (model->kv_lora_rank)
        return pl_fail(
            PL_EUNSUP,
            "model.kv_lora_rank: latent attention cannot be trained, expected 0");
    if (P < 1 || P > model->layers)
        return pl_fail(PL_ECONFIG, "%d stages for %d layers, expected 1 to %d", P,
                       model->layers, model->layers);
    if (most_params(model) > MOST)
        return pl_fail(PL_ECONFIG,
                       "model.experts: %d layers of %d experts are more than %d "
                       "tensors",
                       model->layers, model->experts, MOST);
    int *first = PL_NEW(P + 1, int);
    rc = pl_model_split(model, P, first);
    struct pl_problem *p = rc ? NULL : open_tables(device, model, P, max_rows, T);
    if (p) add_layers(p->state, P, first);
    free(first);
    if (p && (rc = check_params(p))) {
        pl_problem_free(p);
        return rc;
    }
    *out = p;
    return rc;
}

int pl_net_params(const struct pl_model *model, int P, int *n, struct pl_param **params)
{
    struct pl_problem *p;
    int rc = pl_net_new(&pl_device_ref, model, P, 0, 0, &p); /* never computes */
    *n = 0;
    *params = NULL;
    if (rc) return rc;
    *n = p->n_params;
    *params = p->params;
    p->params = NULL;
    pl_problem_free(p);
    return 0;
}
