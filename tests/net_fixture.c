#include "tests/net_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"

const struct pl_model tiny = {.layers = 2,
                              .hidden = 8,
                              .heads = 2,
                              .kv_heads = 1,
                              .head_dim = 4,
                              .ffn = 12,
                              .vocab = 11,
                              .rope_theta = 100,
                              .norm_eps = 1e-5};

static void *on_device(const struct pl_device *dev, size_t bytes)
{
    void *x;
    ck_assert_msg(dev->alloc(bytes, &x) == 0, "%s", pl_error_text());
    return x;
}

static int32_t *random_ids(const struct pl_device *dev, int n, int vocab,
                           uint64_t stream)
{
    int32_t *ids = PL_NEW(n, int32_t);
    size_t bytes = (size_t)n * sizeof *ids;
    for (int i = 0; i < n; i++)
        ids[i] =
            (int32_t)pl_rng_below(stream, PL_RNG_TEST, 0, (uint32_t)i, (uint64_t)vocab);
    int32_t *x = on_device(dev, bytes);
    ck_assert_int_eq(dev->upload(x, ids, bytes), 0);
    free(ids);
    return x;
}

void fixture_open(struct fixture *f, const struct pl_device *device,
                  const struct pl_model *model, int P, int B, int T)
{
    *f = (struct fixture){0};
    int rc = pl_problem_net(device, model, P, B, T, &f->p);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    f->weights = PL_NEW(P, float *);
    f->grads = PL_NEW(P, float *);
    for (int s = 0; s < P; s++) {
        f->weights[s] = on_device(device, f->p->stage_floats[s] * sizeof(float));
        f->grads[s] = on_device(device, f->p->stage_floats[s] * sizeof(float));
    }
    f->tokens = random_ids(device, B * T, model->vocab, 11);
    f->targets = random_ids(device, B * T, model->vocab, 12);
    f->batch =
        (struct pl_batch){.B = B, .T = T, .tokens = f->tokens, .targets = f->targets};
    ck_assert_int_eq(f->p->type->init(f->p, 1, f->weights), 0);
}

void fixture_free(struct fixture *f)
{
    const struct pl_device *dev = f->p->device;
    for (int s = 0; s < f->p->n_stages; s++) {
        dev->release(f->weights[s]);
        dev->release(f->grads[s]);
    }
    dev->release(f->tokens);
    dev->release(f->targets);
    free(f->weights);
    free(f->grads);
    pl_problem_free(f->p);
}

float *fixture_get(const struct fixture *f, float *const *blocks, int i)
{
    const struct pl_param *q = &f->p->params[i];
    float *x = PL_NEW(pl_param_size(q), float);
    int rc = f->p->device->download(x, blocks[q->stage] + q->offset,
                                    pl_param_size(q) * sizeof *x);
    ck_assert_int_eq(rc, 0);
    return x;
}

void fixture_set(struct fixture *f, int i, const float *x)
{
    const struct pl_param *q = &f->p->params[i];
    int rc = f->p->device->upload(f->weights[q->stage] + q->offset, x,
                                  pl_param_size(q) * sizeof *x);
    ck_assert_int_eq(rc, 0);
}

void fixture_scatter(struct fixture *f, double sd)
{
    for (int i = 0; i < f->p->n_params; i++) {
        const struct pl_param *q = &f->p->params[i];
        float *x = PL_NEW(pl_param_size(q), float);
        for (uint32_t k = 0; k < pl_param_size(q); k++)
            x[k] = (float)((q->kind == PL_PARAM_VECTOR) +
                           sd * pl_rng_normal(2, PL_RNG_TEST, (uint64_t)i, k));
        fixture_set(f, i, x);
        free(x);
    }
}

double fixture_loss(struct fixture *f)
{
    double loss;
    ck_assert_int_eq(
        f->p->type->loss(f->p, &f->batch, (const float *const *)f->weights, &loss), 0);
    return loss;
}

double fixture_gradient(struct fixture *f, double scale)
{
    const float *const *w = (const float *const *)f->weights;
    double loss;
    ck_assert_int_eq(
        f->p->type->gradient(f->p, &f->batch, w, w, scale, f->grads, &loss), 0);
    return loss;
}

void fixture_zero_grads(struct fixture *f)
{
    for (int s = 0; s < f->p->n_stages; s++)
        ck_assert_int_eq(
            f->p->device->zero(f->grads[s], f->p->stage_floats[s] * sizeof(float)), 0);
}

int fixture_find(const struct fixture *f, const char *name)
{
    for (int i = 0; i < f->p->n_params; i++)
        if (strcmp(f->p->params[i].name, name) == 0) return i;
    ck_abort_msg("no parameter %s", name);
    return -1;
}
