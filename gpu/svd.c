/* One-sided Jacobi SVD (Hestenes 1958): plane rotations make the rows of W = A^T (or of
 * A, when that has fewer rows) orthogonal; then s are their lengths and the rotations
 * are the other factor. Rotation angles as in Golub and Van Loan, 4th ed.,
 * section 8.6.3. */
#include "gpu/svd.h"
#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 60 }; /* quadratic convergence needs about 10 */

static double product(const double *x, const double *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static void rotate(double *x, double *y, int n, double c, double s)
{
    for (int i = 0; i < n; i++) {
        double a = x[i], b = y[i];
        x[i] = c * a - s * b;
        y[i] = s * a + c * b;
    }
}

/* Make rows p and q of W orthogonal; Z follows. True when they already were. */
static bool rotate_pair(int r, int len, double *W, double *Z, int p, int q)
{
    double *x = W + (size_t)p * (size_t)len, *y = W + (size_t)q * (size_t)len;
    double xx = product(x, x, len), yy = product(y, y, len), xy = product(x, y, len);
    if (xy == 0 || fabs(xy) <= DBL_EPSILON * sqrt(xx) * sqrt(yy)) return true;
    double zeta = (yy - xx) / (2 * xy);
    double t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
    double c = 1 / sqrt(1 + t * t);
    rotate(x, y, len, c, c * t);
    rotate(Z + (size_t)p * (size_t)r, Z + (size_t)q * (size_t)r, r, c, c * t);
    return false;
}

/* Complete row k of W (len long, length zero) to a unit vector orthogonal to rows
 * 0..k-1: the first axis that leaves enough after two Gram-Schmidt passes. */
static void complete_row(double *W, int k, int len)
{
    double *x = W + (size_t)k * (size_t)len;
    for (int axis = 0; axis < len; axis++) {
        memset(x, 0, (size_t)len * sizeof *x);
        x[axis] = 1;
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < k; j++) {
                const double *y = W + (size_t)j * (size_t)len;
                double along = product(x, y, len);
                for (int i = 0; i < len; i++) x[i] -= along * y[i];
            }
        double norm = sqrt(product(x, x, len));
        if (norm * norm * len < 0.5) continue; /* some axis leaves (len - k) / len */
        for (int i = 0; i < len; i++) x[i] /= norm;
        return;
    }
}

static void swap_rows(double *W, int len, int a, int b)
{
    for (int i = 0; i < len; i++) {
        double *x = W + (size_t)a * (size_t)len + i,
               *y = W + (size_t)b * (size_t)len + i;
        double keep = *x;
        *x = *y;
        *y = keep;
    }
}

/* Lengths of the rows of W to s, descending, W and Z permuted alike, W's rows to unit.
 */
static void normalize(int r, int len, double *W, double *Z, double *s)
{
    for (int i = 0; i < r; i++) {
        const double *x = W + (size_t)i * (size_t)len;
        s[i] = sqrt(product(x, x, len));
    }
    for (int i = 0; i < r; i++) {
        int best = i;
        for (int j = i + 1; j < r; j++) best = s[j] > s[best] ? j : best;
        if (best == i) continue;
        double keep = s[i];
        s[i] = s[best];
        s[best] = keep;
        swap_rows(W, len, i, best);
        swap_rows(Z, r, i, best);
    }
    for (int i = 0; i < r; i++) {
        double *x = W + (size_t)i * (size_t)len;
        if (s[i] <= DBL_EPSILON * s[0] * len)
            complete_row(W, i, len);
        else
            for (int k = 0; k < len; k++) x[k] /= s[i];
    }
}

void pl_svd(int m, int n, const double *A, double *U, double *s, double *V)
{
    bool tall = m >= n;
    int r = tall ? n : m, len = tall ? m : n;
    double top =
        0; /* scaled by the largest entry: squares neither overflow nor vanish */
    for (size_t i = 0; i < (size_t)m * (size_t)n; i++) top = fmax(top, fabs(A[i]));
    if (top == 0) top = 1;
    double *W = PL_NEW((size_t)r * (size_t)len, double);
    double *Z = PL_NEW((size_t)r * (size_t)r, double);
    for (int i = 0; i < r; i++) {
        for (int k = 0; k < len; k++)
            W[(size_t)i * (size_t)len + (size_t)k] =
                (tall ? A[(size_t)k * (size_t)n + (size_t)i]
                      : A[(size_t)i * (size_t)n + (size_t)k]) /
                top;
        Z[(size_t)i * (size_t)r + (size_t)i] = 1;
    }
    for (int sweep = 0, done = 0; sweep < SWEEPS && !done; sweep++) {
        done = 1;
        for (int p = 0; p < r; p++)
            for (int q = p + 1; q < r; q++) done &= rotate_pair(r, len, W, Z, p, q);
    }
    normalize(r, len, W, Z, s);
    double *longer = tall ? U : V, *shorter = tall ? V : U;
    for (int i = 0; i < r; i++) {
        s[i] *= top;
        for (int k = 0; k < len; k++)
            longer[(size_t)k * (size_t)r + (size_t)i] =
                W[(size_t)i * (size_t)len + (size_t)k];
        for (int k = 0; k < r; k++)
            shorter[(size_t)k * (size_t)r + (size_t)i] =
                Z[(size_t)i * (size_t)r + (size_t)k];
    }
    free(W);
    free(Z);
}

double pl_polar(int m, int n, const double *A, double *out)
{
    int r = m < n ? m : n;
    double *U = PL_NEW((size_t)m * (size_t)r, double);
    double *V = PL_NEW((size_t)n * (size_t)r, double), *s = PL_NEW(r, double);
    pl_svd(m, n, A, U, s, V);
    double nuclear = 0;
    for (int k = 0; k < r; k++) nuclear += s[k];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < r && s[k] > 1e-12 * s[0]; k++)
                sum += U[(size_t)i * (size_t)r + (size_t)k] *
                       V[(size_t)j * (size_t)r + (size_t)k];
            out[(size_t)i * (size_t)n + (size_t)j] = sum;
        }
    free(U);
    free(V);
    free(s);
    return nuclear;
}
