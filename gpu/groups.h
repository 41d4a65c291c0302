/* What the devices in memory of the host share: product_groups and bias_groups_back of
 * gpu/device.h, each group after the one before by the operation for one (whose errors
 * they return), and what route_back says of the selection biases. */
#ifndef PL_GPU_GROUPS_H
#define PL_GPU_GROUPS_H

#include "gpu/device.h"

typedef int pl_product_op(enum pl_product which, int rows, int in, int out,
                          const float *a, const float *b, const float *bias,
                          const float *addend, float *c);
typedef int pl_add_rows_op(int rows, int period, int d, const float *x, float *y);

static inline int pl_groups_product(pl_product_op *product, enum pl_product which,
                                    const struct pl_groups *groups, int in, int out,
                                    const float *a, const float *b, const float *bias,
                                    float *c)
{
    const bool dw = which == PL_PRODUCT_DW;
    const size_t of_a = (size_t)(which == PL_PRODUCT_Y ? in : out);
    const size_t other = (size_t)(which == PL_PRODUCT_Y ? out : in);
    const size_t of_b = dw ? (size_t)in : 0, of_c = dw ? 0 : other;
    int rc = 0;
    for (int e = 0; e < groups->n && !rc; e++) {
        const int rows = groups->load[e];
        const size_t own = (size_t)e * groups->stride;
        const float *right = dw ? b : b + own;
        float *to = dw ? c + own : c;
        if (!rows) continue;
        rc = product(which, rows, in, out, a, right, bias ? bias + own : NULL,
                     dw ? to : NULL, to);
        a += (size_t)rows * of_a;
        b += (size_t)rows * of_b;
        c += (size_t)rows * of_c;
    }
    return rc;
}

static inline int pl_groups_bias_back(pl_add_rows_op *add_rows_back,
                                      const struct pl_groups *groups, int d,
                                      const float *dy, float *db)
{
    int rc = 0;
    for (int e = 0; e < groups->n && !rc; e++, db += groups->stride) {
        const int rows = groups->load[e];
        if (rows) rc = add_rows_back(rows, 1, d, dy, db);
        dy += (size_t)rows * (size_t)d;
    }
    return rc;
}

/* dbias (experts) += factor (share of all choices - 1 / experts). */
static inline void pl_routing_excess(const struct pl_routing *route, double factor,
                                     float *dbias)
{
    const int E = route->experts;
    const int32_t *load =
        route->load + (size_t)(route->rows / route->group) * (size_t)E;
    const double all = (double)route->rows * route->chosen;
    for (int e = 0; e < E; e++) dbias[e] += (float)(factor * (load[e] / all - 1.0 / E));
}

#endif
