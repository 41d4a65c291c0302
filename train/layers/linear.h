/* y = x W^T + b with W (out, in), PyTorch layout, as three products. Where b and db are
 * NULL there is no bias; what is added to a product may be where the result goes, or
 * NULL. */
#ifndef PL_TRAIN_LAYERS_LINEAR_H
#define PL_TRAIN_LAYERS_LINEAR_H

#include "gpu/device.h"

/* y (rows, out) = x (rows, in) W^T + addend + b. */
static inline int pl_linear(const struct pl_device *dev, int rows, int in, int out,
                            const float *x, const float *w, const float *b,
                            const float *addend, float *y)
{
    return dev->product(PL_PRODUCT_Y, rows, in, out, x, w, b, addend, y);
}

/* dx (rows, in) = dy (rows, out) W + addend. */
static inline int pl_linear_dx(const struct pl_device *dev, int rows, int in, int out,
                               const float *dy, const float *w, const float *addend,
                               float *dx)
{
    return dev->product(PL_PRODUCT_DX, rows, in, out, dy, w, NULL, addend, dx);
}

/* dw (out, in) += dy^T x. */
static inline int pl_linear_dw(const struct pl_device *dev, int rows, int in, int out,
                               const float *dy, const float *x, float *dw)
{
    return dev->product(PL_PRODUCT_DW, rows, in, out, dy, x, NULL, dw, dw);
}

/* db (out) += sum of dy's rows. */
static inline int pl_bias_db(const struct pl_device *dev, int rows, int out,
                             const float *dy, float *db)
{
    return db ? dev->add_rows_back(rows, 1, out, dy, db) : 0;
}

#endif
