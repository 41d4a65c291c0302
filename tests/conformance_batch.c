/* Conformance of what the optimizers do to many matrices, or to all of one: batches of
 * products, rounding to bf16. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum { GAP = 5 }; /* floats between the matrices of a batch, which must not change */

/* Batches: as gemm and syrk, matrix by matrix. symmetric: op(B) = op(A)^T, N = M;
 * apart: the addend is another array, and C is NaN. */
static void batch_one(struct trial *t, int count, int M, int N, int K, int form,
                      bool symmetric, bool apart)
{
    const bool ta = form & 1, tb = symmetric ? !ta : form >> 1 & 1;
    const float alpha = -0.5f, beta = form >> 2 ? 0.5f : 0;
    const int lda = ta ? M : K, ldb = tb ? K : N;
    const size_t one_a = (size_t)M * (size_t)K + GAP,
                 one_b = (size_t)K * (size_t)N + GAP,
                 one_c = (size_t)M * (size_t)N + GAP, na = (size_t)count * one_a,
                 nb = (size_t)count * one_b, nc = (size_t)count * one_c;
    float *a = trial_random(na, 50), *b = trial_random(nb, 51),
          *c = trial_random(nc, 52);
    double *want = PL_NEW(2 * nc, double), *weight = want + nc;
    const float *right = symmetric ? a : b;
    for (size_t e = 0; e < nc; e++) want[e] = c[e];
    for (int e = 0; e < count * M * N; e++) {
        const int g = e / (M * N), row = e / N % M, j = e % N;
        /* the lower triangle says what the upper one is */
        const int i = symmetric && row < j ? j : row,
                  l = symmetric && row < j ? row : j;
        const float *x = a + (size_t)g * one_a,
                    *y = right + (size_t)g * (symmetric ? one_a : one_b);
        const size_t at = (size_t)g * one_c + (size_t)(row * N + j),
                     from = (size_t)g * one_c + (size_t)(i * N + l);
        double sum = 0, size = 0, old = beta == 0 ? 0 : (double)beta * c[from];
        for (int k = 0; k < K; k++) {
            double p = (double)x[ta ? k * lda + i : i * lda + k] *
                       y[tb ? l * ldb + k : k * ldb + l];
            sum += p;
            size += fabs(p);
        }
        want[at] = (double)alpha * sum + old;
        weight[at] = (K + 3) * (fabs(alpha * size) + fabs(old));
    }
    float *da = trial_upload(t, a, na), *db = trial_upload(t, b, nb);
    float *dd = trial_upload(t, c, nc);
    for (size_t e = 0; e < nc; e++)
        if (e % one_c < (size_t)(M * N)) c[e] = NAN;
    float *dc = apart ? trial_upload(t, c, nc) : dd;
    trial_status(t, symmetric ? t->device->syrk_batch(count, ta, M, K, alpha, da, lda,
                                                      one_a, beta, dd, dc, M, one_c)
                              : t->device->gemm_batch(count, ta, tb, M, N, K, alpha, da,
                                                      lda, one_a, db, ldb, one_b, beta,
                                                      dd, dc, N, one_c));
    trial_compare(t, "C", dc, nc, want, weight);
    trial_clear(t);
    free(a), free(b), free(c), free(want);
}

void check_gemm_batch(struct trial *t)
{
    for (int form = 0; form < 8; form++) {
        batch_one(t, 1, 3, 5, 4, form, false, false);
        batch_one(t, 4, 17, 33, 20, form, false, true);
    }
    batch_one(t, 1, 300, 70, 300, 4, false, true); /* sums of two depths */
}

void check_syrk_batch(struct trial *t)
{
    for (int form = 0; form < 8; form++) {
        batch_one(t, 1, 5, 5, 3, form, true, form % 3);
        batch_one(t, 3, 70, 70, 9, form, true, true);
    }
    batch_one(t, 2, 300, 300, 2, 4, true, false); /* more than a block */
    batch_one(t, 1, 40, 40, 300, 5, true, true);
}

/* Exact: the nearest number of 8 bits, of two the even one; what overflows is
 * infinite. Doubles hold the halfway points of floats. */
void check_round_bf16(struct trial *t)
{
    enum { N = 1000, MOST = N + 11 };
    float *x = trial_random(MOST, 53);
    const float edges[] = {0,      -0.f,     1.00390625f, 1.01171875f,
                           5,      INFINITY, -3.4e38f,    3.3961775e38f,
                           1e-40f, -1e-45f,  1.0039063f};
    double want[MOST], weight[MOST] = {0};
    for (int i = 0; i < N; i++) x[i] *= powf(2, (float)(i % 200 - 100));
    for (int i = N; i < MOST; i++) x[i] = edges[i - N];
    for (int i = 0; i < MOST; i++) {
        int power = ilogb(x[i] == 0 || isinf(x[i]) ? 1 : x[i]);
        const double unit = ldexp(1, (power < -126 ? -126 : power) - 7);
        const double down = floor(x[i] / unit), over = x[i] / unit - down;
        const bool up = over > .5 || (over == .5 && fmod(down, 2) != 0);
        want[i] = isinf(x[i]) ? x[i] : (down + up) * unit;
        if (fabs(want[i]) > 3.4e38) want[i] = copysign(INFINITY, x[i]);
    }
    float *dx = trial_upload(t, x, MOST), *dy = trial_upload(t, x, MOST);
    trial_status(t, t->device->round_bf16(MOST, dx, dy));
    trial_compare(t, "y", dy, MOST, want, weight);
    trial_status(t, t->device->round_bf16(MOST, dx, dx));
    trial_compare(t, "y in place", dx, MOST, want, weight);
    const float nan = NAN;
    float got = 0, *dn = trial_upload(t, &nan, 1);
    trial_status(t, t->device->round_bf16(1, dn, dn));
    trial_status(t, t->device->download(&got, dn, sizeof got));
    trial_compare_double(t, "NaN", !isnan(got), 0, 0);
    trial_clear(t);
    free(x);
}
