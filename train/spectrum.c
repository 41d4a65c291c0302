#include "train/spectrum.h"

#include <math.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"

const char *const pl_spectrum_names[] = {"log",   "linear", "constant",
                                         "power", "list",   NULL};

static double value(const struct pl_spectrum *s, int n, int i)
{
    double along = n > 1 ? (double)i / (n - 1) : 0;
    switch (s->kind) {
    case PL_SPECTRUM_LOG:
        return s->largest * pow(s->kappa, -along);
    case PL_SPECTRUM_LINEAR:
        return s->largest * (1 - (1 - 1 / s->kappa) * along);
    case PL_SPECTRUM_POWER:
        return s->largest * pow(i + 1, -s->power);
    case PL_SPECTRUM_LIST:
        return s->values[i];
    default:
        return s->largest;
    }
}

int pl_spectrum_fill(const struct pl_spectrum *s, int n, double *h)
{
    if (s->kind == PL_SPECTRUM_LIST && s->n_values != n)
        return pl_fail(PL_ECONFIG,
                       "problem.values: %d values, expected %d of them for "
                       "problem.spectrum list",
                       s->n_values, n);
    for (int i = 0; i < n; i++) {
        h[i] = value(s, n, i);
        if (!isfinite(h[i]))
            return pl_fail(PL_ECONFIG, "curvature %d is %g, expected a finite number",
                           i, h[i]);
    }
    return 0;
}

/* Orthonormalise rows 0..n-1 of q: Gram-Schmidt, each projection done twice so that
 * rounding does not accumulate (Giraud et al., 2005). */
static void orthonormalise(double *q, int n)
{
    for (int i = 0; i < n; i++) {
        double *v = q + (size_t)i * (size_t)n, norm = 0;
        for (int j = 0; j < 2 * i; j++) {
            const double *w = q + (size_t)(j % i) * (size_t)n;
            double dot = 0;
            for (int k = 0; k < n; k++) dot += v[k] * w[k];
            for (int k = 0; k < n; k++) v[k] -= dot * w[k];
        }
        for (int k = 0; k < n; k++) norm += v[k] * v[k];
        for (int k = 0; k < n; k++) v[k] /= sqrt(norm);
    }
}

double *pl_spectrum_basis(uint64_t seed, double amount, int n)
{
    if (amount == 0) return NULL;
    double *q = PL_NEW((size_t)n * (size_t)n, double);
    for (int i = 0; i < n; i++) /* row i is vector i until the transpose below */
        for (int k = 0; k < n; k++) {
            double g = pl_rng_normal(seed, PL_RNG_INIT, (uint64_t)i, (uint32_t)k);
            q[(size_t)i * (size_t)n + (size_t)k] =
                amount * g + (i == k ? (1 - amount) * sqrt(n) : 0);
        }
    orthonormalise(q, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double *a = &q[(size_t)i * (size_t)n + (size_t)j];
            double *b = &q[(size_t)j * (size_t)n + (size_t)i], t = *a;
            *a = *b;
            *b = t;
        }
    return q;
}
