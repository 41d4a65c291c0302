#include "base/mem.h"
#include "base/rng.h"
#include "gpu/svd.h"
#include "tests/runner.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Jacobi is backward stable: errors are a small multiple of n eps s[0]; the multiple
 * covers the rotations, of which each sweep applies n to an element in about 10 sweeps.
 */
static double slack(int m, int n)
{
    return 10 * (m > n ? m : n) * DBL_EPSILON;
}

static double *random_matrix(int m, int n, int rank)
{
    double *A = PL_NEW((size_t)m * (size_t)n, double);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < rank; k++)
                A[i * n + j] +=
                    pl_rng_normal(3, PL_RNG_TEST, 2 * (uint64_t)k, (uint32_t)i) *
                    pl_rng_normal(3, PL_RNG_TEST, 2 * (uint64_t)k + 1, (uint32_t)j);
    return A;
}

/* Columns of X (rows, r) orthonormal. */
static bool orthonormal(int rows, int r, const double *X, double bound)
{
    for (int a = 0; a < r; a++)
        for (int b = 0; b <= a; b++) {
            double sum = 0;
            for (int i = 0; i < rows; i++) sum += X[i * r + a] * X[i * r + b];
            if (!(fabs(sum - (a == b)) <= bound)) return false;
        }
    return true;
}

/* Everything that defines an SVD. */
static bool is_svd(int m, int n, const double *A, const double *U, const double *s,
                   const double *V)
{
    int r = m < n ? m : n;
    for (int k = 0; k < r; k++)
        if (!(s[k] >= 0) || (k && s[k] > s[k - 1])) return false;
    if (!orthonormal(m, r, U, slack(m, n)) || !orthonormal(n, r, V, slack(m, n)))
        return false;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < r; k++) sum += U[i * r + k] * s[k] * V[j * r + k];
            if (!(fabs(sum - A[i * n + j]) <= slack(m, n) * s[0])) return false;
        }
    return true;
}

static const int shapes[][3] = {/* m, n, rank */
                                {1, 1, 1},    {1, 7, 1},    {7, 1, 1},   {5, 5, 5},
                                {40, 13, 13}, {13, 40, 13}, {20, 20, 3}, {33, 9, 2},
                                {8, 31, 1},   {6, 6, 0},    {64, 64, 64}};

START_TEST(random_matrices)
{
    int m = shapes[_i][0], n = shapes[_i][1], rank = shapes[_i][2], r = m < n ? m : n;
    double *A = random_matrix(m, n, rank), *U = PL_NEW(m * r, double);
    double *V = PL_NEW(n * r, double), *s = PL_NEW(r, double);
    pl_svd(m, n, A, U, s, V);
    ck_assert(is_svd(m, n, A, U, s, V));
    for (int k = rank; k < r; k++) ck_assert(s[k] <= slack(m, n) * s[0]);
    U[0] += 1e-6; /* the checker sees a wrong factor */
    ck_assert(!is_svd(m, n, A, U, s, V));

    /* polar: U V^T over the rank, so P P^T P = P, <P, A> = sum s, |P|_F^2 = rank */
    double *P = PL_NEW(m * n, double), nuclear = pl_polar(m, n, A, P), dot = 0,
           square = 0;
    double sum = 0;
    for (int k = 0; k < r; k++) sum += s[k];
    for (int i = 0; i < m * n; i++) dot += P[i] * A[i], square += P[i] * P[i];
    ck_assert(fabs(nuclear - sum) <= slack(m, n) * sum);
    ck_assert(fabs(dot - sum) <= r * slack(m, n) * sum);
    ck_assert(fabs(square - rank) <= r * slack(m, n));
    free(A), free(U), free(V), free(s), free(P);
}
END_TEST

START_TEST(known_values)
{
    /* A = (3 0; 4 5): A^T A has eigenvalues 45 and 5 */
    double A[4] = {3, 0, 4, 5}, U[4], s[2], V[4];
    pl_svd(2, 2, A, U, s, V);
    ck_assert(fabs(s[0] - sqrt(45)) <= 1e-14 && fabs(s[1] - sqrt(5)) <= 1e-14);
    /* diagonal, signs and order: -7, 2, 5 */
    double D[9] = {2, 0, 0, 0, -7, 0, 0, 0, 5}, W[9], t[3], Z[9], P[9];
    pl_svd(3, 3, D, W, t, Z);
    ck_assert(t[0] == 7 && t[1] == 5 && t[2] == 2);
    ck_assert(pl_polar(3, 3, D, P) == 14);
    for (int i = 0; i < 9; i++) ck_assert(P[i] == (D[i] > 0) - (D[i] < 0));
    /* all ones (4, 3): one singular value sqrt(12) */
    double ones[12], X[12], y[3], Q[9];
    for (int i = 0; i < 12; i++) ones[i] = 1;
    pl_svd(4, 3, ones, X, y, Q);
    ck_assert(fabs(y[0] - sqrt(12)) <= 1e-14 && y[1] <= 1e-15 && y[2] <= 1e-15);
}
END_TEST

START_TEST(extreme_scales)
{
    for (int k = -1; k <= 1; k += 2) {
        double A[6] = {1, 2, 3, 4, 5, 7}, U[6], V[4], s[2], base[2];
        pl_svd(3, 2, A, U, base, V);
        for (int i = 0; i < 6; i++) A[i] = ldexp(A[i], 900 * k);
        pl_svd(3, 2, A, U, s, V);
        for (int i = 0; i < 2; i++)
            ck_assert(fabs(ldexp(s[i], -900 * k) - base[i]) <= slack(3, 2) * base[0]);
    }
}
END_TEST

static void fill(TCase *all)
{
    tcase_add_loop_test(all, random_matrices, 0, sizeof shapes / sizeof *shapes);
    tcase_add_test(all, known_values);
    tcase_add_test(all, extreme_scales);
}

int main(void)
{
    return run_tests("svd", fill);
}
