/* Newton-Schulz approximation of the polar factor, X <- a X + (b A + c A^2) X with A =
 * X X^T on the short side, after X / (||X|| + 1e-7): Jordan's quintic,
 * KellerJordan/Muon. It does not converge to 1: singular values land in about
 * [0.68, 1.13]. */
#include "train/optim.h"

#include <math.h>

static const double quintic[3] = {3.4445, -4.7750, 2.0315};

/* Y <- a X + B X (short rows) or a X + X B (short columns), B = b A + c A^2. */
static int iterate(const struct pl_device *dev, int m, int n, const float *X, float *Y,
                   float *A, float *B)
{
    const int r = m < n ? m : n, s = m < n ? n : m;
    const float a = (float)quintic[0], b = (float)quintic[1], c = (float)quintic[2];
    const bool rows = m <= n;
    int rc = dev->gemm(!rows, rows, r, r, s, 1, X, n, X, n, 0, A, r);
    if (!rc) rc = dev->copy(B, A, sizeof(float) * (size_t)r * (size_t)r);
    if (!rc) rc = dev->gemm(false, false, r, r, r, c, A, r, A, r, b, B, r);
    if (!rc) rc = dev->copy(Y, X, sizeof(float) * (size_t)m * (size_t)n);
    if (rc) return rc;
    if (rows) return dev->gemm(false, false, m, n, m, 1, B, m, X, n, a, Y, n);
    return dev->gemm(false, false, m, n, n, 1, X, n, B, n, a, Y, n);
}

int pl_newton_schulz(const struct pl_device *dev, int m, int n, int steps, float *X,
                     float *scratch)
{
    const size_t r = (size_t)(m < n ? m : n), size = (size_t)m * (size_t)n;
    float *A = scratch, *B = A + r * r, *from = X, *to = B + r * r;
    double square;
    int rc = dev->dot(size, X, X, &square);
    if (!rc) rc = dev->axpby(size, (float)(1 / (sqrt(square) + 1e-7)), X, 0, to);
    for (int k = 0; k < steps && !rc; k++) {
        float *swap = from;
        from = to;
        to = swap;
        rc = iterate(dev, m, n, from, to, A, B);
    }
    if (!rc && to != X) rc = dev->copy(X, to, sizeof(float) * size);
    return rc;
}
