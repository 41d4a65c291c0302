/* f(X) = 1/2 <X, H X> = 1/2 sum_ij h_i Z_ij^2, Z = Q^T X, H = Q diag(h) Q^T with Q and
 * h of train/spectrum.h; gradient H X + noise. X is a vector (every Z_i starts at 1) or
 * a matrix (Z starts gaussian, from the seed); its rows are split evenly over the
 * stages. The gradient reads the forward weights only: that of a linear layer's input
 * is constant, so forward-old, backward-new equals forward-old here.
 * Smoothness under the spectral norm of one matrix: max over ||D||_2 <= 1 of the
 * nuclear norm of H D is the sum of the min(n, cols) largest |h| (von Neumann's trace
 * inequality); under the largest entry of a vector, max of ||H d||_1 <= sum |H_ij|. */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/host_problem.h"

struct quadratic {
    int n, cols;
    bool matrix;
    double *h;     /* [n] curvatures */
    double *basis; /* (n,n), column i = eigenvector i; NULL: identity */
    double *z;     /* (n,cols) */
};

/* y += Q x, or Q^T x; all (n,cols). */
static void add_rotated(const struct quadratic *q, bool transpose, const double *x,
                        double *y)
{
    size_t n = (size_t)q->n, c = (size_t)q->cols;
    for (size_t i = 0; i < n; i++)
        for (size_t k = q->basis ? 0 : i; k < (q->basis ? n : i + 1); k++) {
            double a = !q->basis   ? 1
                       : transpose ? q->basis[k * n + i]
                                   : q->basis[i * n + k];
            for (size_t j = 0; j < c; j++) y[i * c + j] += a * x[k * c + j];
        }
}

static double evaluate(void *self, const struct pl_batch *batch, const double *x,
                       const double *xb, double *g)
{
    (void)batch;
    (void)xb;
    struct quadratic *q = self;
    size_t c = (size_t)q->cols, n = (size_t)q->n * c;
    double loss = 0;
    for (size_t e = 0; e < n; e++) q->z[e] = 0;
    add_rotated(q, true, x, q->z);
    for (size_t e = 0; e < n; e++) {
        double h = q->h[e / c];
        loss += 0.5 * h * q->z[e] * q->z[e];
        q->z[e] *= h;
    }
    if (g) add_rotated(q, false, q->z, g);
    return loss;
}

static void start(void *self, uint64_t seed, double *x)
{
    struct quadratic *q = self;
    for (int i = 0; i < q->n; i++)
        for (int j = 0; j < q->cols; j++) {
            size_t e = (size_t)i * (size_t)q->cols + (size_t)j;
            q->z[e] = q->matrix
                          ? pl_rng_normal(seed, PL_RNG_INIT, (uint64_t)i, (uint32_t)j)
                          : 1;
            x[e] = 0;
        }
    add_rotated(q, false, q->z, x);
}

static void release(void *self)
{
    struct quadratic *q = self;
    free(q->h);
    free(q->basis);
    free(q->z);
    free(q);
}

static size_t bytes(const void *self)
{
    const struct quadratic *q = self;
    size_t n = (size_t)q->n;
    return sizeof(double) * (n + n * (size_t)q->cols + (q->basis ? n * n : 0));
}

static int check(const struct pl_problem_spec *spec, int P)
{
    int n = spec->size;
    if (n < 1 || spec->cols < 0)
        return pl_fail(PL_ECONFIG, "quadratic of %d x %d numbers, expected at least 1",
                       n, spec->cols);
    if (!(spec->noise >= 0) || isinf(spec->noise))
        return pl_fail(PL_ECONFIG, "gradient noise %g, expected a finite sd >= 0",
                       spec->noise);
    double numbers = (double)n * (spec->cols ? spec->cols : 1);
    if (numbers > UINT32_MAX)
        return pl_fail(PL_ECONFIG, "problem.size x problem.cols: %d x %d, at most %u",
                       n, spec->cols, (unsigned)UINT32_MAX);
    int rc = pl_host_check_stages(P, n, spec->cols ? "rows" : "coordinates");
    if (rc) return rc;
    double square = spec->rotation > 0 ? (double)n * n : 0;
    return pl_memory_check(8 * (square + 8 * numbers), "a quadratic");
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* sum |H_ij| */
static double entry_sum(const struct quadratic *q)
{
    size_t n = (size_t)q->n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!q->basis) {
            sum += fabs(q->h[i]);
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            double a = 0;
            for (size_t k = 0; k < n; k++)
                a += q->basis[i * n + k] * q->h[k] * q->basis[j * n + k];
            sum += fabs(a);
        }
    }
    return sum;
}

/* Cut into P blocks, both the largest displacement of unit norm and the dual norm of
 * the gradient grow by sqrt(P) at most. */
static struct pl_problem_known quadratic_known(const struct pl_problem *p)
{
    const struct quadratic *q = pl_host_problem_self(p);
    struct pl_problem_known known = {0, 0, 0};
    double *size = PL_NEW(q->n, double);
    for (int i = 0; i < q->n; i++) {
        size[i] = fabs(q->h[i]);
        if (q->h[i] < 0) known.minimum = -INFINITY;
    }
    qsort(size, (size_t)q->n, sizeof *size, descending);
    known.L = size[0];
    if (q->matrix)
        for (int i = 0; i < q->n && i < q->cols; i++)
            known.L_lmo += p->n_stages * size[i];
    else
        known.L_lmo = entry_sum(q);
    free(size);
    return known;
}

static int make(const struct pl_problem_spec *spec, int P, void **self)
{
    int n = spec->size, rc = check(spec, P);
    if (rc) return rc;
    double *h = PL_NEW(n, double);
    if ((rc = pl_spectrum_fill(&spec->spectrum, n, h))) {
        free(h);
        return rc;
    }
    struct quadratic *q = PL_NEW(1, struct quadratic);
    *q = (struct quadratic){.n = n,
                            .cols = spec->cols ? spec->cols : 1,
                            .matrix = spec->cols > 0,
                            .h = h,
                            .basis = pl_spectrum_basis(spec->seed, spec->rotation, n)};
    q->z = PL_NEW((size_t)n * (size_t)q->cols, double);
    *self = q;
    return 0;
}

static void lay(const void *self, struct pl_problem *p)
{
    const struct quadratic *q = self;
    for (int s = 0; s < p->n_stages; s++) {
        int rows = pl_host_part(q->n, p->n_stages, s);
        if (q->matrix)
            pl_host_problem_add(p, s, PL_PARAM_MATRIX, rows, q->cols, "x.%d", s);
        else
            pl_host_problem_add(p, s, PL_PARAM_VECTOR, 1, rows, "x.%d", s);
    }
}

static const struct pl_host_kind kind = {make, lay, evaluate, start, release, bytes};

const struct pl_problem_type pl_problem_quadratic = {
    .name = "quadratic",
    .summary = "1/2 <x, H x> with given curvatures, rotation and gradient noise",
    .source = "reference for the stability theory",
    .settings = "seed size cols spectrum largest kappa power values rotation noise",
    .kind = &kind,
    PL_HOST_PROBLEM,
    .known = quadratic_known,
};
