/* y = x W^T + b with W (out, in), PyTorch layout, as three products. Where b and db are
 * NULL there is no bias. */
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

/* y (rows, out) += b. */
static inline int pl_bias(const struct pl_device *dev, int rows, int out,
                          const float *b, float *y)
{
    return b ? dev->add_rows(rows, 1, out, b, y) : 0;
}

/* db (out) += sum of dy's rows. */
static inline int pl_bias_db(const struct pl_device *dev, int rows, int out,
                             const float *dy, float *db)
{
    return db ? dev->add_rows_back(rows, 1, out, dy, db) : 0;
}

#endif
