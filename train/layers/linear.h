/* y = x W^T + b with W (out, in), PyTorch layout, as three products. Where b and db are
 * NULL there is no bias. */
#ifndef PL_TRAIN_LAYERS_LINEAR_H
#define PL_TRAIN_LAYERS_LINEAR_H

#include "gpu/device.h"

/* y (rows, out) = x (rows, in) W^T + beta y. */
static inline int pl_linear(const struct pl_device *dev, int rows, int in, int out,
                            const float *x, const float *w, float beta, float *y)
{
    return dev->product(PL_PRODUCT_Y, rows, in, out, x, w, beta, y);
}

/* dx (rows, in) = dy (rows, out) W + beta dx. */
static inline int pl_linear_dx(const struct pl_device *dev, int rows, int in, int out,
                               const float *dy, const float *w, float beta, float *dx)
{
    return dev->product(PL_PRODUCT_DX, rows, in, out, dy, w, beta, dx);
}

/* dw (out, in) += dy^T x. */
static inline int pl_linear_dw(const struct pl_device *dev, int rows, int in, int out,
                               const float *dy, const float *x, float *dw)
{
    return dev->product(PL_PRODUCT_DW, rows, in, out, dy, x, 1, dw);
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
