/* Stationary noise on curvature h with white gradient noise xi, q = 1/z:
 *
 *   x = -eta (1-beta) q^(tau+1) N(q) [(1+c) - c q] / D(q) xi,   D as in stability.c.
 *
 * The variance is the sum of squares of the impulse response, here by Astrom's
 * recursion (Introduction to Stochastic Control Theory, 1970, ch. 5): exact in
 * O(degree^2) however close to the limit, and it fails exactly when D is unstable. */
#include "theory/stability.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

double pl_noise_ratio(double a, double beta)
{
    if (!(a > 0.0 && a < 1.0 && beta >= 0.0 && beta < 1.0)) return NAN;
    double k = (1.0 - beta) * a;
    return (1.0 + beta + k) * (2.0 + 2.0 * beta - k) /
           ((1.0 + beta) * (1.0 - a) * (2.0 + 2.0 * beta + k));
}

/* Sum of squares of the impulse response of B(q)/A(q), both of degree n, A[0] = 1; both
 * are overwritten. Infinite when A has a root |z| >= 1. */
static double response_energy(double *A, double *B, int n)
{
    double energy = 0.0;
    for (int k = n; k >= 0; k--) {
        if (!(A[0] > 0.0)) return INFINITY;
        energy += B[k] * B[k] / A[0];
        double reflect = A[k] / A[0], share = B[k] / A[0];
        for (int i = 0; i <= k; i++) B[i] -= share * A[k - i];
        for (int i = 0, j = k; i <= j; i++, j--) { /* A[i] - reflect A[k-i], in place */
            double low = A[i], high = A[j];
            A[i] = low - reflect * high;
            A[j] = high - reflect * low;
        }
    }
    return energy;
}

double pl_noise_variance(double a, double beta, int tau, double c,
                         enum pl_momentum momentum)
{
    assert(beta >= 0.0 && beta < 1.0 && tau >= 0);
    double *A = PL_NEW(tau + 5, double), *B = PL_NEW(tau + 5, double);
    double n1 = momentum == PL_NESTEROV ? beta : 0.0, k = -a * (1.0 - beta);
    pl_stability_polynomial(a, beta, tau, c, momentum, A);
    B[tau + 1] = k * (1.0 + n1) * (1.0 + c);
    B[tau + 2] = -k * ((1.0 + n1) * c + n1 * (1.0 + c));
    B[tau + 3] = k * n1 * c;
    double energy = a > 0.0 ? response_energy(A, B, tau + 3) : INFINITY;
    free(B);
    free(A);
    return energy;
}
