#include "train/small_matrix.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

static bool factor(int n, double *A)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = A[(int64_t)i * n + j];
            for (int k = 0; k < j; k++)
                sum -= A[(int64_t)i * n + k] * A[(int64_t)j * n + k];
            if (i > j)
                A[(int64_t)i * n + j] = sum / A[(int64_t)j * n + j];
            else if (sum > 0)
                A[(int64_t)i * n + i] = sqrt(sum);
            else
                return false;
        }
    return true;
}

bool pl_cholesky_solve(int n, double *A, double *b)
{
    if (!factor(n, A)) return false;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) b[i] -= A[(int64_t)i * n + k] * b[k];
        b[i] /= A[(int64_t)i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) b[i] -= A[(int64_t)k * n + i] * b[k];
        b[i] /= A[(int64_t)i * n + i];
    }
    return true;
}

double pl_symmetric_largest(int n, const double *A)
{
    double *v = PL_NEW(2 * n, double), *w = v + n, before = 0, largest = 0;
    for (int i = 0; i < n; i++) v[i] = pl_rng_normal(1, PL_RNG_INIT, 0, (uint32_t)i);
    for (int round = 0; round < 100000; round++) {
        double norm = 0, vv = 0;
        largest = 0;
        for (int i = 0; i < n; i++) {
            w[i] = 0;
            for (int j = 0; j < n; j++) w[i] += A[(int64_t)i * n + j] * v[j];
            largest += w[i] * v[i];
            norm += w[i] * w[i];
            vv += v[i] * v[i];
        }
        largest /= vv;
        if (norm == 0 || fabs(largest - before) <= 1e-13 * largest) break;
        before = largest;
        for (int i = 0; i < n; i++) v[i] = w[i] / sqrt(norm);
    }
    free(v);
    return largest;
}
