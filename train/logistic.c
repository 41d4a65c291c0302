/* Logistic regression: f(w) = 1/n sum_k log(1 + exp(-y_k <x_k, w>)) + l2/2 |w|^2.
 * Samples are fixed by problem.seed: x = Q sqrt(h) z, z gaussian, so that features have
 * the covariance Q diag(h) Q^T of train/spectrum.h; y is +1 with probability
 * 1 / (1 + exp(-<x, w*>)), w* gaussian and scaled so that <x, w*> has variance 4. A
 * batch is drawn with replacement, or is the whole set (full). Weights start at 0.
 * Features are split evenly over the stages; the score <x, w> is linear in each part,
 * so that the gradient reads the forward weights only, the l2 term too.
 * inf f by Newton's method with a line search (Boyd and Vandenberghe, Convex
 * Optimization, 9.5.2). Smoothness: H <= M = X^T X / 4n + l2: its largest eigenvalue,
 * and under the largest entry max d^T M d <= sum |M_ij|. */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/host_problem.h"
#include "train/small_matrix.h"

struct logistic {
    int n, d;
    bool full;
    double l2;
    double *x; /* (n,d), each row times its label y */
};

/* log(1 + exp(-t)) without overflow. */
static double softplus(double t)
{
    return t > 0 ? log1p(exp(-t)) : log1p(exp(t)) - t;
}

/* -d softplus / dt */
static double slope(double t)
{
    return t > 0 ? exp(-t) / (1 + exp(-t)) : 1 / (1 + exp(t));
}

static double score(const struct logistic *l, int64_t k, const double *w)
{
    const double *x = l->x + k * l->d;
    double t = 0;
    for (int i = 0; i < l->d; i++) t += x[i] * w[i];
    return t;
}

static double evaluate(void *self, const struct pl_batch *batch, const double *w,
                       const double *wb, double *g)
{
    (void)wb;
    const struct logistic *l = self;
    const bool all = l->full || !batch;
    const int m = all ? l->n : batch->B;
    double loss = 0;
    for (int k = 0; k < m; k++) {
        int64_t at = all ? k : (int64_t)pl_host_sample(batch, k, l->n);
        double t = score(l, at, w);
        loss += softplus(t) / m;
        for (int i = 0; g && i < l->d; i++) g[i] -= slope(t) / m * l->x[at * l->d + i];
    }
    for (int i = 0; i < l->d; i++) {
        loss += 0.5 * l->l2 * w[i] * w[i];
        if (g) g[i] += l->l2 * w[i];
    }
    return loss;
}

static void start(void *self, uint64_t seed, double *w)
{
    (void)seed;
    const struct logistic *l = self;
    for (int i = 0; i < l->d; i++) w[i] = 0;
}

static void release(void *self)
{
    struct logistic *l = self;
    free(l->x);
    free(l);
}

static size_t bytes(const void *self)
{
    const struct logistic *l = self;
    return sizeof(double) * (size_t)l->n * (size_t)l->d;
}

/* (d,d) = 1/n sum_k c_k x_k x_k^T + l2 I; c_k = s(1-s) at w, or 1/4 without w. */
static void hessian(const struct logistic *l, const double *w, double *H)
{
    const int64_t d = l->d;
    for (int64_t i = 0; i < d * d; i++) H[i] = i % (d + 1) ? 0 : l->l2;
    for (int64_t k = 0; k < l->n; k++) {
        const double *x = l->x + k * d;
        double s = w ? slope(score(l, k, w)) : 0.5, c = s * (1 - s) / l->n;
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++) H[i * d + j] += c * x[i] * x[j];
    }
}

/* One Newton step of w; *left gets the decrement squared over two, an estimate of f
 * minus inf f. False where the Hessian is singular or the step does not descend. */
static bool newton(struct logistic *l, double *w, double *H, double *g, double *step,
                   double *left)
{
    const int d = l->d;
    double *moved = H + (int64_t)d * d, f, decrement = 0, size = 1;
    for (int i = 0; i < d; i++) g[i] = 0;
    f = evaluate(l, NULL, w, w, g);
    hessian(l, w, H);
    for (int i = 0; i < d; i++) step[i] = g[i];
    if (!pl_cholesky_solve(d, H, step)) return false;
    for (int i = 0; i < d; i++) decrement += g[i] * step[i];
    *left = decrement / 2;
    for (; size > 1e-10; size /= 2) {
        for (int i = 0; i < d; i++) moved[i] = w[i] - size * step[i];
        if (evaluate(l, NULL, moved, moved, NULL) <= f - 0.25 * size * decrement) {
            for (int i = 0; i < d; i++) w[i] = moved[i];
            return true;
        }
    }
    return *left < 1e-12 * (1 + f); /* at the minimum, where rounding decides */
}

/* inf f; NaN where no Newton step exists (no l2, fewer samples than features). */
static double minimum(struct logistic *l)
{
    const size_t d = (size_t)l->d;
    double *w = PL_NEW(3 * d, double), *H = PL_NEW(d * d + d, double);
    double left = INFINITY, best = NAN;
    for (int i = 0; i < 100 && left > 1e-14; i++)
        if (!newton(l, w, H, w + d, w + 2 * d, &left)) break;
    if (left < 1e-12) best = evaluate(l, NULL, w, w, NULL) - left;
    free(w);
    free(H);
    return best;
}

static struct pl_problem_known logistic_known(const struct pl_problem *p)
{
    struct logistic *l = pl_host_problem_self(p);
    const int d = l->d;
    double *M = PL_NEW((size_t)d * (size_t)d, double), sum = 0;
    hessian(l, NULL, M);
    for (int64_t i = 0; i < (int64_t)d * d; i++) sum += fabs(M[i]);
    struct pl_problem_known known = {minimum(l), pl_symmetric_largest(d, M), sum};
    free(M);
    return known;
}

/* Features and labels of sample k; z[d] is room. */
static void draw(struct logistic *l, uint64_t seed, int k, const double *h,
                 const double *basis, const double *teacher, double *z)
{
    const int d = l->d;
    double *x = l->x + (int64_t)k * d, t = 0;
    for (int i = 0; i < d; i++)
        z[i] =
            sqrt(h[i]) * pl_rng_normal(seed, PL_RNG_CORPUS, (uint64_t)k, (uint32_t)i);
    for (int i = 0; i < d; i++) {
        x[i] = basis ? 0 : z[i];
        for (int j = 0; basis && j < d; j++) x[i] += basis[(int64_t)i * d + j] * z[j];
        t += x[i] * teacher[i];
    }
    double up = pl_rng_uniform(seed, PL_RNG_CORPUS, (uint64_t)k, (uint32_t)d);
    if (up > 1 / (1 + exp(-t)))
        for (int i = 0; i < d; i++) x[i] = -x[i];
}

/* Labels of the problem's samples; h[d] is replaced. */
static void draw_all(struct logistic *l, const struct pl_problem_spec *spec,
                     const double *h)
{
    const int d = l->d;
    double *basis = pl_spectrum_basis(spec->seed, spec->rotation, d), square = 0;
    double *teacher = PL_NEW(2 * d, double), *z = teacher + d;
    for (int i = 0; i < d; i++) { /* in the eigenbasis first, for its variance */
        z[i] = pl_rng_normal(spec->seed, PL_RNG_CORPUS, UINT64_MAX, (uint32_t)i);
        square += h[i] * z[i] * z[i];
    }
    for (int i = 0; i < d; i++) {
        teacher[i] = basis ? 0 : z[i];
        for (int j = 0; basis && j < d; j++)
            teacher[i] += basis[(int64_t)i * d + j] * z[j];
        teacher[i] *= 2 / sqrt(square);
    }
    for (int k = 0; k < l->n; k++) draw(l, spec->seed, k, h, basis, teacher, z);
    free(teacher);
    free(basis);
}

static int read_covariance(const struct pl_problem_spec *spec, double *h)
{
    int rc = pl_spectrum_fill(&spec->spectrum, spec->size, h);
    double sum = 0;
    for (int i = 0; i < spec->size && !rc; i++) {
        sum += h[i];
        if (h[i] < 0)
            rc = pl_fail(PL_ECONFIG,
                         "variance %d of the features is %g, expected at "
                         "least 0",
                         i, h[i]);
    }
    if (rc || sum > 0) return rc;
    return pl_fail(PL_ECONFIG, "the variances of all features are 0");
}

static int make(const struct pl_problem_spec *spec, int P, void **self)
{
    const int n = spec->samples, d = spec->size;
    int rc = pl_host_check_stages(P, d, "features");
    if (!rc) rc = pl_memory_check(8.0 * n * d + 24.0 * d * d, "logistic regression");
    if (rc) return rc;
    double *h = PL_NEW(d, double);
    if ((rc = read_covariance(spec, h))) {
        free(h);
        return rc;
    }
    struct logistic *l = PL_NEW(1, struct logistic);
    *l = (struct logistic){.n = n, .d = d, .full = spec->full, .l2 = spec->l2};
    l->x = PL_NEW((size_t)n * (size_t)d, double);
    draw_all(l, spec, h);
    free(h);
    *self = l;
    return 0;
}

static void lay(const void *self, struct pl_problem *p)
{
    const struct logistic *l = self;
    for (int s = 0; s < p->n_stages; s++)
        pl_host_problem_add(p, s, PL_PARAM_VECTOR, 1,
                            pl_host_part(l->d, p->n_stages, s), "w.%d", s);
}

static const struct pl_host_kind kind = {make, lay, evaluate, start, release, bytes};

const struct pl_problem_type pl_problem_logistic = {
    .name = "logistic",
    .summary = "logistic regression on random samples, with l2 term",
    .source = "Boyd and Vandenberghe, Convex Optimization, 7.1.1",
    .settings =
        "seed size samples full l2 spectrum largest kappa power values rotation "
        "noise",
    .kind = &kind,
    PL_HOST_PROBLEM,
    .known = logistic_known,
};
