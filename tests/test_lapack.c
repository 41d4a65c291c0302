/* The door to LAPACK: what defines eigenvectors and a QR factor; the retry in double
 * and the refusal, by routines of LAPACK that fail on demand. */
#include <check.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "gpu/host_lapack.h"
#include "tests/runner.h"

/* These stand before OpenBLAS's own, which they call unless told to fail. */
static int failing; /* 1: in single precision, 2: in both */

#define STAND_IN(name, real, step)                                                   \
    void name(const char *job, const char *half, const int *n, real *a,              \
              const int *lda, real *w, real *work, const int *lwork, int *iwork,     \
              const int *liwork, int *info, size_t job_length, size_t half_length);  \
    void name(const char *job, const char *half, const int *n, real *a,              \
              const int *lda, real *w, real *work, const int *lwork, int *iwork,     \
              const int *liwork, int *info, size_t job_length, size_t half_length)   \
    {                                                                                \
        void (*next)(const char *, const char *, const int *, real *, const int *,   \
                     real *, real *, const int *, int *, const int *, int *, size_t, \
                     size_t);                                                        \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                   \
        ck_assert(next != NULL);                                                     \
        next(job, half, n, a, lda, w, work, lwork, iwork, liwork, info, job_length,  \
             half_length);                                                           \
        if (failing < step) return;                                                  \
        a[0] = 77;                                                                   \
        *info = 3;                                                                   \
    }
STAND_IN(ssyevd_, float, 1)
STAND_IN(dsyevd_, double, 2)

/* Backward errors of both are a modest multiple of n eps times the norm. */
static double slack(int n)
{
    return 8 * n * FLT_EPSILON;
}

static float *random_matrix(int n, uint64_t seed)
{
    float *A = PL_NEW(n * n, float);
    for (int i = 0; i < n * n; i++)
        A[i] = (float)pl_rng_normal(seed, PL_RNG_TEST, 0, (uint32_t)i);
    return A;
}

/* sum of `rank` squares: symmetric, that many eigenvalues above 0 */
static float *random_moment(int n, int rank)
{
    float *A = PL_NEW(n * n, float);
    for (int k = 0; k < rank; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                A[i * n + j] +=
                    (float)(pl_rng_normal(2, PL_RNG_TEST, (uint64_t)k, (uint32_t)i) *
                            pl_rng_normal(2, PL_RNG_TEST, (uint64_t)k, (uint32_t)j));
    return A;
}

static bool orthonormal(int n, const float *Q)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b <= a; b++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += (double)Q[a * n + k] * Q[b * n + k];
            if (!(fabs(sum - (a == b)) <= slack(n))) return false;
        }
    return true;
}

/* Descending values, orthonormal rows, A = sum of value x row row^T. */
static bool is_eigen(int n, const float *A, const float *Q, const float *values)
{
    for (int k = 1; k < n; k++)
        if (values[k] > values[k - 1]) return false;
    if (!orthonormal(n, Q)) return false;
    double top = fmax(fabs((double)values[0]), fabs((double)values[n - 1]));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += (double)Q[k * n + i] * values[k] * Q[k * n + j];
            if (!(fabs(sum - A[i * n + j]) <= slack(n) * top)) return false;
        }
    return true;
}

static const int sizes[][2] = {
    /* n, rank */ {1, 1},
    {2, 2},
    {7, 7},
    {7, 2},
    {40, 40},
    {40, 5},
    {130, 9},
    {9, 0}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

START_TEST(eigenvectors)
{
    const int n = sizes[_i][0];
    for (failing = 0; failing < 2; failing++) {
        float *A = random_moment(n, sizes[_i][1]), *Q = random_moment(n, sizes[_i][1]);
        float *values = PL_NEW(n, float);
        ck_assert_int_eq(pl_eigen(n, Q, values), 0);
        ck_assert(is_eigen(n, A, Q, values));
        Q[n - 1] += 1e-2f; /* the checker sees a wrong vector */
        ck_assert(!is_eigen(n, A, Q, values));
        Q[n - 1] -= 1e-2f;
        values[0] += 1e-2f * (1 + values[0]); /* and a wrong value */
        ck_assert(!is_eigen(n, A, Q, values));
        free(A), free(Q), free(values);
    }
    failing = 0;
}
END_TEST

START_TEST(known_eigenvectors)
{
    float A[4] = {2, 1, 1, 2}, values[2]; /* 3 along (1,1), 1 along (1,-1) */
    ck_assert_int_eq(pl_eigen(2, A, values), 0);
    ck_assert_float_eq_tol(values[0], 3, 4e-7);
    ck_assert_float_eq_tol(values[1], 1, 4e-7);
    ck_assert_float_eq_tol(A[0], A[1], 4e-7);
    ck_assert_float_eq_tol(A[2], -A[3], 4e-7);
}
END_TEST

START_TEST(failure_is_an_error)
{
    float A[4] = {2, 1, 1, 2}, values[2];
    failing = 2;
    ck_assert_int_eq(pl_eigen(2, A, values), PL_EDEVICE);
    ck_assert(strstr(pl_error_text(), "2 x 2") && strstr(pl_error_text(), "3"));
    failing = 0;
}
END_TEST

/* Rows stay in the order's spans: row i has no part beyond X's rows 0 ... i. */
static bool is_qr(int n, const float *X, const float *Q)
{
    if (!orthonormal(n, Q)) return false;
    for (int i = 0; i < n; i++) {
        double length = 0, beyond = 0;
        for (int k = 0; k < n; k++) length += (double)X[i * n + k] * X[i * n + k];
        for (int j = i + 1; j < n; j++) {
            double along = 0;
            for (int k = 0; k < n; k++) along += (double)X[i * n + k] * Q[j * n + k];
            beyond += along * along;
        }
        if (!(sqrt(beyond) <= slack(n) * sqrt(length))) return false;
    }
    return true;
}

START_TEST(orthonormal_rows)
{
    const int n = sizes[_i][0];
    float *X = random_matrix(n, 5), *Q = PL_NEW(n * n, float);
    memcpy(Q, X, sizeof(float) * (size_t)(n * n));
    ck_assert_int_eq(pl_orthonormalize(n, Q), 0);
    ck_assert(is_qr(n, X, Q));
    if (n > 1) {
        for (int k = 0; k < n; k++) { /* two rows exchanged: orthonormal still */
            float keep = Q[k];
            Q[k] = Q[(n - 1) * n + k];
            Q[(n - 1) * n + k] = keep;
        }
        ck_assert(orthonormal(n, Q) && !is_qr(n, X, Q));
    }
    free(X), free(Q);

    float *low = random_moment(n, sizes[_i][1]); /* dependent rows */
    ck_assert_int_eq(pl_orthonormalize(n, low), 0);
    ck_assert(orthonormal(n, low));
    free(low);
}
END_TEST

START_TEST(not_finite)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float A[9] = {1, 2, 3, 2, bad[_i], 4, 3, 4, 5}, B[9], values[3];
    memcpy(B, A, sizeof A);
    ck_assert_int_eq(pl_eigen(3, A, values), 0);
    ck_assert_int_eq(pl_orthonormalize(3, B), 0);
    for (int i = 0; i < 9; i++) ck_assert(isnan(A[i]) && isnan(B[i]));
    for (int i = 0; i < 3; i++) ck_assert(isnan(values[i]));
}
END_TEST

/* Equal input, equal bits, wherever the array lies. */
START_TEST(deterministic)
{
    enum { n = 48 };
    float *first = random_moment(n, n), values[n], again[n];
    ck_assert_int_eq(pl_eigen(n, first, values), 0);
    for (int shift = 0; shift < 4; shift++) {
        float *A = random_moment(n, n), *block = PL_NEW(n * n + shift, float);
        memcpy(block + shift, A, sizeof(float) * n * n);
        ck_assert_int_eq(pl_eigen(n, block + shift, again), 0);
        ck_assert_mem_eq(block + shift, first, sizeof(float) * n * n);
        ck_assert_mem_eq(again, values, sizeof values);
        free(A), free(block);
    }
    free(first);
}
END_TEST

static void fill(TCase *all)
{
    tcase_add_loop_test(all, eigenvectors, 0, N_SIZES);
    tcase_add_test(all, known_eigenvectors);
    tcase_add_test(all, failure_is_an_error);
    tcase_add_loop_test(all, orthonormal_rows, 0, N_SIZES);
    tcase_add_loop_test(all, not_finite, 0, 3);
    tcase_add_test(all, deterministic);
}

int main(void)
{
    return run_tests("lapack", fill);
}
