/* y = x W^T with W (out, in), as three products: no bias, PyTorch layout. */
#ifndef PL_TRAIN_LAYERS_LINEAR_H
#define PL_TRAIN_LAYERS_LINEAR_H

#include "gpu/device.h"

/* y (rows, out) = x (rows, in) W^T + beta y. */
static inline int pl_linear(const struct pl_device *dev, int rows, int in, int out,
                            const float *x, const float *w, float beta, float *y)
{
    return dev->gemm(false, true, rows, out, in, 1, x, in, w, in, beta, y, out);
}

/* dx (rows, in) = dy (rows, out) W. */
static inline int pl_linear_dx(const struct pl_device *dev, int rows, int in, int out,
                               const float *dy, const float *w, float *dx)
{
    return dev->gemm(false, false, rows, in, out, 1, dy, out, w, in, 0, dx, in);
}

/* dw (out, in) += dy^T x. */
static inline int pl_linear_dw(const struct pl_device *dev, int rows, int in, int out,
                               const float *dy, const float *x, float *dw)
{
    return dev->gemm(true, false, out, in, rows, 1, dy, out, x, in, 1, dw, in);
}

#endif
