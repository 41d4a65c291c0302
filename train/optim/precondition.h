/* What the rules with second moments of whole matrices share: the moments G G^T and
 * G^T G of a gradient G (rows, cols), a basis of orthonormal vectors for each side, and
 * the way between the parameters' coordinates and the bases'. Side 0 is the left one,
 * of `rows`, side 1 the right one, of `cols`. Bases are stored by rows (B = Q^T of the
 * papers), so that G in the bases is B_L G B_R^T. Arrays are device memory and belong
 * to the caller; eigenvectors and QR are made on the CPU (gpu/host_lapack.h), where the
 * matrices go and come back on a device with memory of its own. */
#ifndef PL_TRAIN_OPTIM_PRECONDITION_H
#define PL_TRAIN_OPTIM_PRECONDITION_H

#include "train/optim.h"

struct pl_sides {
    const struct pl_device *dev;
    int rows, cols;
    bool has[2];                 /* the side is rotated */
    float *basis[2], *moment[2]; /* (rows,rows), (cols,cols); only of sides that are */
};

/* Floats of one square matrix for each side that is rotated; and where they lie from
 * `at` on. */
size_t pl_sides_floats(const struct pl_sides *s);
int pl_sides_longest(const struct pl_sides *s); /* rotated side; 0: none */
void pl_sides_place(const struct pl_sides *s, float *at, float *matrix[2]);

/* Host copy of n device floats (the floats themselves where the CPU may touch them);
 * written back, if asked, and released by the second. */
int pl_host_take(const struct pl_device *dev, size_t n, float *x, float **host);
int pl_host_give(const struct pl_device *dev, size_t n, float *x, float *host,
                 bool write);

/* moment = keep moment + (1 - keep) X X^T or X^T X on each rotated side. */
int pl_sides_observe(const struct pl_sides *s, const float *X, double keep);
/* Bases = eigenvectors of the moments, by descending eigenvalue. */
int pl_sides_start(const struct pl_sides *s);
/* Bases follow the moments by one power iteration and a QR: vectors are sorted by their
 * Rayleigh quotients, descending, v (rows,cols; held in the bases) is permuted alike,
 * then B <- orthonormal rows of B moment. scratch: pl_sides_scratch. */
int pl_sides_refresh(const struct pl_sides *s, float *v, float *scratch);
size_t pl_sides_scratch(const struct pl_sides *s); /* floats; at least rows * cols */

/* out = B_L X B_R^T, and back: out = B_L^T X B_R; out may be X, tmp (rows,cols) not. */
int pl_sides_rotate(const struct pl_sides *s, const float *X, float *tmp, float *out);
int pl_sides_return(const struct pl_sides *s, const float *X, float *tmp, float *out);

/* Adam's direction of tensor p: m = b1 m + (1-b1) P, v = b2 v + (1-b2) P^2, u = m/bc1 /
 * (sqrt(v/bc2) + eps) as eps_form has it, t counting from 1; bc = 1 without
 * bias_correction. */
int pl_adam_direction(const struct pl_optim *o, const struct pl_device *dev,
                      const struct pl_param *p, const float *P, int64_t t, float *m,
                      float *v, float *u);
/* Average of G G^T over the updates: moment_beta, beta2 where that is negative. */
static inline double pl_moment_beta(const struct pl_optim *o)
{
    return o->moment_beta < 0 ? o->beta2 : o->moment_beta;
}

#endif
