#include "train/host_problem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "gpu/svd.h"

struct host {
    const struct pl_host_kind *kind;
    void *self;
    double noise;
    size_t n;
    double *x, *xb, *g; /* [n] */
    float *block;       /* [n] a stage's block on its way to or from the device */
};

void pl_host_problem_add(struct pl_problem *p, int stage, enum pl_param_kind kind,
                         int rows, int cols, const char *format, int number)
{
    p->params = pl_grow(p->params, (size_t)p->n_params + 1, sizeof *p->params);
    struct pl_param *q = &p->params[p->n_params++];
    *q = (struct pl_param){.stage = stage,
                           .rows = rows,
                           .cols = cols,
                           .offset = p->stage_floats[stage],
                           .kind = kind};
    int length = snprintf(q->name, sizeof q->name, format, number);
    assert(length > 0 && (size_t)length < sizeof q->name);
    p->stage_floats[stage] += pl_param_size(q);
    p->first_param[stage + 1] = p->n_params;
}

int pl_host_open(const struct pl_problem_spec *spec, const struct pl_device *device,
                 int P, struct pl_problem **out)
{
    const struct pl_host_kind *kind = spec->type->kind;
    void *self;
    *out = NULL;
    int rc = kind->make(spec, P, &self);
    if (rc) return rc;
    struct host *h = PL_NEW(1, struct host);
    struct pl_problem *p = PL_NEW(1, struct pl_problem);
    *h = (struct host){.kind = kind, .self = self, .noise = spec->noise};
    *p = (struct pl_problem){.type = spec->type,
                             .device = device,
                             .n_stages = P,
                             .first_param = PL_NEW(P + 1, int),
                             .stage_floats = PL_NEW(P, size_t),
                             .state = h};
    kind->lay(self, p);
    for (int s = 0; s < P; s++) h->n += p->stage_floats[s];
    h->x = PL_NEW(h->n, double);
    h->xb = PL_NEW(h->n, double);
    h->g = PL_NEW(h->n, double);
    h->block = PL_NEW(h->n, float);
    *out = p;
    return 0;
}

void *pl_host_problem_self(const struct pl_problem *p)
{
    return ((const struct host *)p->state)->self;
}

double pl_host_problem_evaluate(struct pl_problem *p, const struct pl_batch *batch,
                                const double *x, const double *xb, double *g)
{
    const struct host *h = p->state;
    return h->kind->evaluate(h->self, batch, x, xb, g);
}

static int gather(struct pl_problem *p, const float *const *weights, double *x)
{
    struct host *h = p->state;
    for (int s = 0; s < p->n_stages; s++) {
        size_t n = p->stage_floats[s];
        int rc = p->device->download(h->block, weights[s], n * sizeof(float));
        if (rc) return rc;
        for (size_t i = 0; i < n; i++) *x++ = h->block[i];
    }
    return 0;
}

int pl_host_init(struct pl_problem *p, uint64_t seed, float *const *weights)
{
    struct host *h = p->state;
    const double *x = h->x;
    h->kind->start(h->self, seed, h->x);
    for (int s = 0; s < p->n_stages; s++) {
        size_t n = p->stage_floats[s];
        for (size_t i = 0; i < n; i++) h->block[i] = (float)*x++;
        int rc = p->device->upload(weights[s], h->block, n * sizeof(float));
        if (rc) return rc;
    }
    return 0;
}

static int add_gradient(struct pl_problem *p, double scale, float *const *grads)
{
    struct host *h = p->state;
    const double *g = h->g;
    for (int s = 0; s < p->n_stages; s++) {
        size_t n = p->stage_floats[s], bytes = n * sizeof(float);
        int rc = p->device->download(h->block, grads[s], bytes);
        if (rc) return rc;
        for (size_t i = 0; i < n; i++)
            h->block[i] = (float)(h->block[i] + scale * *g++);
        if ((rc = p->device->upload(grads[s], h->block, bytes))) return rc;
    }
    return 0;
}

static void add_noise(struct host *h, const struct pl_batch *batch)
{
    for (size_t i = 0; h->noise > 0 && i < h->n; i++) {
        double sum = 0;
        for (int k = 0; k < batch->B; k++)
            sum += pl_rng_normal(batch->seed, PL_RNG_NOISE,
                                 (uint64_t)(batch->index + k), (uint32_t)i);
        h->g[i] += h->noise * sum / batch->B;
    }
}

int pl_host_gradient(struct pl_problem *p, const struct pl_batch *batch,
                     const float *const *wf, const float *const *wb, double scale,
                     float *const *grads, double *loss)
{
    struct host *h = p->state;
    int rc = gather(p, wf, h->x);
    if (!rc) rc = gather(p, wb, h->xb);
    if (rc) return rc;
    for (size_t i = 0; i < h->n; i++) h->g[i] = 0;
    double f = h->kind->evaluate(h->self, batch, h->x, h->xb, h->g);
    add_noise(h, batch);
    if ((rc = add_gradient(p, scale, grads))) return rc;
    *loss = f;
    return 0;
}

int pl_host_loss(struct pl_problem *p, const struct pl_batch *batch,
                 const float *const *weights, double *loss)
{
    (void)batch; /* noise and samples are the gradient's only */
    struct host *h = p->state;
    int rc = gather(p, weights, h->x);
    if (!rc) *loss = h->kind->evaluate(h->self, NULL, h->x, h->x, NULL);
    return rc;
}

/* l1 norm of a vector, nuclear norm of a matrix. */
static double dual_norm(const struct pl_param *p, const double *g)
{
    enum { LARGEST = 256 }; /* r m n a sweep of the SVD */
    const size_t n = pl_param_size(p);
    double sum = 0;
    if (p->kind == PL_PARAM_VECTOR) {
        for (size_t i = 0; i < n; i++) sum += fabs(g[i]);
        return sum;
    }
    if (p->rows > LARGEST && p->cols > LARGEST) return NAN;
    double *polar = PL_NEW(n, double);
    sum = pl_polar(p->rows, p->cols, g, polar);
    free(polar);
    return sum;
}

int pl_host_slope(struct pl_problem *p, const float *const *weights, double *norm,
                  double *dual)
{
    struct host *h = p->state;
    double square = 0;
    int rc = gather(p, weights, h->x);
    if (rc) return rc;
    for (size_t i = 0; i < h->n; i++) h->g[i] = 0;
    h->kind->evaluate(h->self, NULL, h->x, h->x, h->g);
    for (size_t i = 0; i < h->n; i++) square += h->g[i] * h->g[i];
    *norm = sqrt(square);
    *dual = 0;
    const double *g = h->g;
    for (int i = 0; i < p->n_params; g += pl_param_size(&p->params[i++]))
        *dual += isfinite(square) ? dual_norm(&p->params[i], g) : INFINITY;
    return 0;
}

void pl_host_free(struct pl_problem *p)
{
    struct host *h = p->state;
    h->kind->free(h->self);
    free(h->x);
    free(h->xb);
    free(h->g);
    free(h->block);
    free(h);
}

size_t pl_host_bytes(const struct pl_problem *p)
{
    const struct host *h = p->state;
    return h->n * (3 * sizeof(double) + sizeof(float)) + h->kind->bytes(h->self);
}

int pl_host_check_stages(int P, int n, const char *parts)
{
    if (P >= 1 && P <= n) return 0;
    return pl_fail(PL_ECONFIG, "%d stages for %d %s, expected 1 to %d", P, n, parts, n);
}

uint64_t pl_host_sample(const struct pl_batch *batch, int k, int n)
{
    return pl_rng_below(batch->seed, PL_RNG_DATA, (uint64_t)(batch->index + k), 0,
                        (uint64_t)n);
}
