/* f(x) = 1/2 sum_i h_i z_i^2, z = Q^T x, gradient Q (h z) + noise, Q of
 * train/spectrum.h. Every eigencoordinate starts at 1. n coordinates are split evenly
 * over the stages. The gradient reads the forward weights only: a linear layer's input
 * gradient is constant, so forward-old, backward-new equals forward-old here. Computed
 * in double on the host whatever the device: n is small. */
#include "train/problem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/spectrum.h"

struct quadratic {
    int n;
    double noise;
    double *h;         /* [n] curvatures */
    double *basis;     /* (n,n), column i = eigenvector i; NULL: identity */
    double *x, *z, *g; /* [n] */
    float *block;      /* [n] a stage's block on its way to or from the device */
};

/* y = Q x, or Q^T x. */
static void rotate(const struct quadratic *q, bool transpose, const double *x,
                   double *y)
{
    size_t n = (size_t)q->n;
    for (size_t i = 0; i < n; i++) {
        if (!q->basis) {
            y[i] = x[i];
            continue;
        }
        double sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += (transpose ? q->basis[k * n + i] : q->basis[i * n + k]) * x[k];
        y[i] = sum;
    }
}

/* Fill x and z from the weights; the loss. */
static int evaluate(struct pl_problem *p, const float *const *weights, double *loss)
{
    struct quadratic *q = p->state;
    double *x = q->x;
    for (int s = 0; s < p->n_stages; s++) {
        size_t n = p->stage_floats[s];
        int rc = p->device->download(q->block, weights[s], n * sizeof(float));
        if (rc) return rc;
        for (size_t i = 0; i < n; i++) *x++ = q->block[i];
    }
    rotate(q, true, q->x, q->z);
    *loss = 0;
    for (int i = 0; i < q->n; i++) *loss += 0.5 * q->h[i] * q->z[i] * q->z[i];
    return 0;
}

static int quadratic_loss(struct pl_problem *p, const struct pl_batch *batch,
                          const float *const *weights, double *loss)
{
    (void)batch; /* the noise is the gradient's only */
    return evaluate(p, weights, loss);
}

static int add_gradient(struct pl_problem *p, double scale, float *const *grads)
{
    struct quadratic *q = p->state;
    const double *g = q->g;
    for (int s = 0; s < p->n_stages; s++) {
        size_t n = p->stage_floats[s], bytes = n * sizeof(float);
        int rc = p->device->download(q->block, grads[s], bytes);
        if (rc) return rc;
        for (size_t i = 0; i < n; i++)
            q->block[i] = (float)(q->block[i] + scale * *g++);
        if ((rc = p->device->upload(grads[s], q->block, bytes))) return rc;
    }
    return 0;
}

static int quadratic_gradient(struct pl_problem *p, const struct pl_batch *batch,
                              const float *const *wf, const float *const *wb,
                              double scale, float *const *grads, double *loss)
{
    (void)wb;
    struct quadratic *q = p->state;
    double f;
    int rc = evaluate(p, wf, &f);
    if (rc) return rc;
    for (int i = 0; i < q->n; i++) q->z[i] *= q->h[i];
    rotate(q, false, q->z, q->g);
    if (q->noise > 0)
        for (int i = 0; i < q->n; i++)
            q->g[i] += q->noise * pl_rng_normal(batch->seed, PL_RNG_NOISE,
                                                (uint64_t)batch->index, (uint32_t)i);
    if ((rc = add_gradient(p, scale, grads))) return rc;
    *loss = f;
    return 0;
}

/* Every eigencoordinate 1, whatever the seed: closed forms start there. */
static int quadratic_init(struct pl_problem *p, uint64_t seed, float *const *weights)
{
    (void)seed;
    struct quadratic *q = p->state;
    for (int i = 0; i < q->n; i++) q->z[i] = 1;
    rotate(q, false, q->z, q->x);
    const double *x = q->x;
    for (int s = 0; s < p->n_stages; s++) {
        size_t n = p->stage_floats[s];
        for (size_t i = 0; i < n; i++) q->block[i] = (float)*x++;
        int rc = p->device->upload(weights[s], q->block, n * sizeof(float));
        if (rc) return rc;
    }
    return 0;
}

static void quadratic_free(struct pl_problem *p)
{
    struct quadratic *q = p->state;
    free(q->h);
    free(q->basis);
    free(q->x);
    free(q->z);
    free(q->g);
    free(q->block);
    free(q);
}

static size_t quadratic_bytes(const struct pl_problem *p)
{
    const struct quadratic *q = p->state;
    size_t n = (size_t)q->n;
    return n * (4 * sizeof(double) + sizeof(float)) +
           (q->basis ? n * n * sizeof(double) : 0);
}

static int check(const struct pl_problem_spec *spec, int P)
{
    int n = spec->size;
    if (n < 1)
        return pl_fail(PL_ECONFIG, "quadratic of %d coordinates, expected at least 1",
                       n);
    if (P < 1 || P > n)
        return pl_fail(PL_ECONFIG, "%d stages for %d coordinates, expected 1 to %d", P,
                       n, n);
    if (!(spec->noise >= 0) || isinf(spec->noise))
        return pl_fail(PL_ECONFIG, "gradient noise %g, expected a finite sd >= 0",
                       spec->noise);
    return 0;
}

static int quadratic_open(const struct pl_problem_spec *spec,
                          const struct pl_device *device, int P,
                          struct pl_problem **out)
{
    int n = spec->size, rc = check(spec, P);
    *out = NULL;
    if (rc) return rc;
    double *h = PL_NEW(n, double);
    if ((rc = pl_spectrum_fill(&spec->spectrum, n, h))) {
        free(h);
        return rc;
    }
    struct quadratic *q = PL_NEW(1, struct quadratic);
    *q = (struct quadratic){.n = n,
                            .noise = spec->noise,
                            .h = h,
                            .basis = pl_spectrum_basis(spec->seed, spec->rotation, n),
                            .x = PL_NEW(n, double),
                            .z = PL_NEW(n, double),
                            .g = PL_NEW(n, double),
                            .block = PL_NEW(n, float)};
    struct pl_problem *p = PL_NEW(1, struct pl_problem);
    *p = (struct pl_problem){.type = &pl_problem_type_quadratic,
                             .device = device,
                             .n_stages = P,
                             .n_params = P,
                             .params = PL_NEW(P, struct pl_param),
                             .first_param = PL_NEW(P + 1, int),
                             .stage_floats = PL_NEW(P, size_t),
                             .state = q};
    for (int s = 0; s < P; s++) {
        int cols = n / P + (s < n % P);
        struct pl_param *x = &p->params[s];
        *x = (struct pl_param){
            .stage = s, .rows = 1, .cols = cols, .kind = PL_PARAM_VECTOR};
        snprintf(x->name, sizeof x->name, "x.%d", s);
        p->stage_floats[s] = (size_t)cols;
        p->first_param[s + 1] = s + 1;
    }
    *out = p;
    return 0;
}

const struct pl_problem_type pl_problem_type_quadratic = {
    .name = "quadratic",
    .summary = "quadratic with given curvatures, optional rotation and gradient noise",
    .source = "reference for the stability theory",
    .settings = "seed size spectrum largest kappa power values rotation noise",
    .open = quadratic_open,
    .init = quadratic_init,
    .gradient = quadratic_gradient,
    .loss = quadratic_loss,
    .free = quadratic_free,
    .bytes = quadratic_bytes,
};
