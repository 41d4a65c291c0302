/* Matrix factorisation: f(U, V) = 1/2 |A - U V^T|_F^2, A (m,n) = Q1 diag(s) Q2^T with
 * singular values s and bases of train/spectrum.h, U (m,r), V (n,r). Not convex, not
 * smooth on the whole space; every local minimum is global (Baldi and Hornik, Neural
 * Networks 2, 1989), and inf f = 1/2 sum of the squares of the s beyond the r largest
 * (Eckart and Young, 1936). Entries of U and V start gaussian with a given sd.
 * U V^T is a sum over the r columns; they are split evenly over the stages, each with
 * its columns of U and of V. Backward: d U = R Vb, d V = R^T Ub, with R = U V^T - A at
 * the forward weights. */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/host_problem.h"

struct factor {
    int m, n, r, P;
    double start;
    double *a;        /* (m,n) */
    double *residual; /* (m,n) */
    double minimum;
};

/* residual += sign U V^T of stage s; returns the floats of its block. */
static size_t add_product(struct factor *f, int s, const double *block)
{
    const size_t m = (size_t)f->m, n = (size_t)f->n;
    const size_t r =
        (size_t)(pl_host_first(f->r, f->P, s + 1) - pl_host_first(f->r, f->P, s));
    const double *U = block, *V = block + m * r;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < r; k++)
                f->residual[i * n + j] += U[i * r + k] * V[j * r + k];
    return (m + n) * r;
}

/* g += gradient of stage s, from the residual and its backward weights. */
static size_t add_stage_gradient(const struct factor *f, int s, const double *xb,
                                 double *g)
{
    const size_t m = (size_t)f->m, n = (size_t)f->n;
    const size_t r =
        (size_t)(pl_host_first(f->r, f->P, s + 1) - pl_host_first(f->r, f->P, s));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < r; k++) {
                double e = f->residual[i * n + j];
                g[i * r + k] += e * xb[(m + j) * r + k];
                g[(m + j) * r + k] += e * xb[i * r + k];
            }
    return (m + n) * r;
}

static double evaluate(void *self, const struct pl_batch *batch, const double *x,
                       const double *xb, double *g)
{
    (void)batch; /* there are no samples: noise is the only randomness */
    struct factor *f = self;
    const size_t n = (size_t)f->m * (size_t)f->n;
    double loss = 0;
    for (size_t e = 0; e < n; e++) f->residual[e] = -f->a[e];
    for (int s = 0; s < f->P; s++) x += add_product(f, s, x);
    for (size_t e = 0; e < n; e++) loss += 0.5 * f->residual[e] * f->residual[e];
    for (int s = 0; s < f->P && g; s++) {
        size_t floats = add_stage_gradient(f, s, xb, g);
        xb += floats;
        g += floats;
    }
    return loss;
}

/* Column k of U and of V is the same for every number of stages. */
static void start(void *self, uint64_t seed, double *x)
{
    const struct factor *f = self;
    for (int s = 0; s < f->P; s++) {
        int first = pl_host_first(f->r, f->P, s),
            end = pl_host_first(f->r, f->P, s + 1);
        for (int row = 0; row < f->m + f->n; row++)
            for (int k = first; k < end; k++)
                *x++ = f->start *
                       pl_rng_normal(seed, PL_RNG_INIT, (uint64_t)row, (uint32_t)k);
    }
}

static void release(void *self)
{
    struct factor *f = self;
    free(f->a);
    free(f->residual);
    free(f);
}

static size_t bytes(const void *self)
{
    const struct factor *f = self;
    return 2 * sizeof(double) * (size_t)f->m * (size_t)f->n;
}

static struct pl_problem_known factor_known(const struct pl_problem *p)
{
    const struct factor *f = pl_host_problem_self(p);
    return (struct pl_problem_known){f->minimum, NAN, NAN};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A, and inf f, of the min(m,n) singular values s, which are then sorted. */
static void fill(struct factor *f, const struct pl_problem_spec *spec, double *s)
{
    const size_t m = (size_t)f->m, n = (size_t)f->n, k = m < n ? m : n;
    double *left = pl_spectrum_basis(spec->seed, spec->rotation, f->m);
    double *right = pl_spectrum_basis(spec->seed + 1, spec->rotation, f->n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = left ? 0 : i; l < (left ? k : i < k ? i + 1 : i); l++) {
                double u = left ? left[i * m + l] : 1;
                f->a[i * n + j] += u * s[l] * (right ? right[j * n + l] : j == l);
            }
    qsort(s, k, sizeof *s, ascending);
    for (size_t l = 0; l + (size_t)f->r < k; l++) f->minimum += 0.5 * s[l] * s[l];
    free(left);
    free(right);
}

static int make(const struct pl_problem_spec *spec, int P, void **self)
{
    const int m = spec->size, n = spec->cols ? spec->cols : m, r = spec->rank;
    const int k = m < n ? m : n;
    int rc = pl_host_check_stages(P, r, "columns of the factors (problem.rank)");
    if (!rc)
        rc = pl_memory_check(
            8.0 * (4.0 * m * n + 1.0 * m * m + 1.0 * n * n + 8.0 * r * (m + n)),
            "matrix factorisation");
    if (rc) return rc;
    double *s = PL_NEW(k, double);
    rc = pl_spectrum_fill(&spec->spectrum, k, s);
    for (int i = 0; i < k && !rc; i++)
        if (s[i] < 0)
            rc = pl_fail(PL_ECONFIG, "singular value %d is %g, expected at least 0", i,
                         s[i]);
    if (!rc) {
        struct factor *f = PL_NEW(1, struct factor);
        size_t entries = (size_t)m * (size_t)n;
        *f = (struct factor){.m = m, .n = n, .r = r, .P = P, .start = spec->start};
        f->a = PL_NEW(entries, double);
        f->residual = PL_NEW(entries, double);
        fill(f, spec, s);
        *self = f;
    }
    free(s);
    return rc;
}

static void lay(const void *self, struct pl_problem *p)
{
    const struct factor *f = self;
    for (int s = 0; s < f->P; s++) {
        const int r = pl_host_part(f->r, f->P, s);
        pl_host_problem_add(p, s, PL_PARAM_MATRIX, f->m, r, "u.%d", s);
        pl_host_problem_add(p, s, PL_PARAM_MATRIX, f->n, r, "v.%d", s);
    }
}

static const struct pl_host_kind kind = {make, lay, evaluate, start, release, bytes};

const struct pl_problem_type pl_problem_factor = {
    .name = "factor",
    .summary = "1/2 |A - U V^T|^2, A with given singular values",
    .source = "Baldi and Hornik, Neural Networks 2 (1989)",
    .settings =
        "seed size cols rank start spectrum largest kappa power values rotation "
        "noise",
    .kind = &kind,
    PL_HOST_PROBLEM,
    .known = factor_known,
};
