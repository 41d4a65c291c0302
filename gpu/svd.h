/* Exact singular values and polar factor on the CPU, in double (one-sided Jacobi): for
 * checks of Newton-Schulz and for exact LMO directions. Caller owns all arrays. */
#ifndef PL_GPU_SVD_H
#define PL_GPU_SVD_H

/* A (m,n) row-major = U diag(s) V^T with r = min(m,n): U (m,r), s (r) descending, V
 * (n,r). Cost O(m n r) a sweep, about 10 sweeps. Source: Hestenes 1958 (one-sided
 * Jacobi). */
void pl_svd(int m, int n, const double *A, double *U, double *s, double *V);
/* out = U V^T over singular values > 1e-12 s[0]; returns sum of s (the nuclear norm).
 */
double pl_polar(int m, int n, const double *A, double *out);

#endif
