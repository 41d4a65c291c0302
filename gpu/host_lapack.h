/* Symmetric eigen-decomposition and Householder QR by LAPACK (OpenBLAS brings it), one
 * thread, on host memory: equal input gives equal bits. Caller owns all arrays; work
 * space is this thread's scratch (gpu/host.h). A basis is stored by rows: row i of a
 * row-major matrix is a vector, which is what LAPACK's columns are without a copy.
 * Numbers that are not finite make NaN, as in any arithmetic: the run that they come
 * from ends as diverged. */
#ifndef PL_GPU_HOST_LAPACK_H
#define PL_GPU_HOST_LAPACK_H

#include <stddef.h>

/* Longest side; one of them takes minutes, in which nothing can stop the thread.
 * LAPACK's work space would not be counted by an int from 32767 on. */
enum { PL_EIGEN_MOST = 10000 };

/* Scratch that the two take in their thread at side n, in bytes. */
size_t pl_eigen_bytes(int n);

/* A (n,n) symmetric <- its orthonormal eigenvectors, by rows; values (n), both by
 * descending eigenvalue. ssyevd (divide and conquer), and dsyevd when that does not
 * converge. About 9 n^3 flops. Errors: PL_EDEVICE, neither converged. */
int pl_eigen(int n, float *A, float *values);

/* X (n,n) <- the rows made orthonormal in order: row i is what is left of it beside
 * rows 0 ... i-1, at unit length (Q^T of the QR factorisation of X^T; signs as LAPACK
 * gives). Dependent rows get any orthonormal vectors. sgeqrf and sorgqr, 8/3 n^3 flops.
 * Errors: PL_EDEVICE, LAPACK refused. */
int pl_orthonormalize(int n, float *X);

#endif
