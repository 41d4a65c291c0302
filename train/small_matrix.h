/* Dense algebra in double for small problems and their known constants. */
#ifndef PL_TRAIN_SMALL_MATRIX_H
#define PL_TRAIN_SMALL_MATRIX_H

#include <stdbool.h>

/* b[n] = A^-1 b for a symmetric positive definite A (n,n), whose lower triangle is
 * replaced by its Cholesky factor. False, with b undefined: A is not. */
bool pl_cholesky_solve(int n, double *A, double *b);

/* Largest eigenvalue of a symmetric positive semidefinite A (n,n) by power iteration,
 * to 1e-12 relative; from below. */
double pl_symmetric_largest(int n, const double *A);

#endif
