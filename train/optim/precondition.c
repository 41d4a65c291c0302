/* Moments, bases and rotations (train/optim/precondition.h). The refresh is one step of
 * orthogonal iteration with the sorting of SOAP: Vyas et al., arXiv 2409.11321, and its
 * reference code, which permutes v but does not rotate it. */
#include "train/optim/precondition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/host_lapack.h"

static size_t area(int rows, int cols)
{
    return (size_t)rows * (size_t)cols;
}

static int length(const struct pl_sides *s, int side)
{
    return side ? s->cols : s->rows;
}

size_t pl_sides_floats(const struct pl_sides *s)
{
    return s->has[0] * area(s->rows, s->rows) + s->has[1] * area(s->cols, s->cols);
}

int pl_sides_longest(const struct pl_sides *s)
{
    const int rows = s->has[0] ? s->rows : 0, cols = s->has[1] ? s->cols : 0;
    return rows > cols ? rows : cols;
}

void pl_sides_place(const struct pl_sides *s, float *at, float *matrix[2])
{
    matrix[0] = at;
    matrix[1] = at + s->has[0] * area(s->rows, s->rows);
}

int pl_host_take(const struct pl_device *dev, size_t n, float *x, float **host)
{
    *host = x;
    if (dev->host_memory) return 0;
    *host = PL_NEW(n, float);
    return dev->download(*host, x, sizeof(float) * n);
}

int pl_host_give(const struct pl_device *dev, size_t n, float *x, float *host,
                 bool write)
{
    if (dev->host_memory) return 0;
    int rc = write ? dev->upload(x, host, sizeof(float) * n) : 0;
    free(host);
    return rc;
}

int pl_sides_observe(const struct pl_sides *s, const float *X, double keep)
{
    int rc = 0;
    for (int side = 0; side < 2 && !rc; side++) {
        const int n = length(s, side);
        if (s->has[side])
            rc = s->dev->syrk(side, n, length(s, !side), (float)(1 - keep), X, s->cols,
                              (float)keep, s->moment[side], n);
    }
    return rc;
}

static int start_side(const struct pl_sides *s, int side)
{
    const int n = length(s, side);
    const size_t size = area(n, n);
    float *host, *values = PL_NEW(n, float);
    int rc = s->dev->copy(s->basis[side], s->moment[side], sizeof(float) * size);
    if (!rc) rc = pl_host_take(s->dev, size, s->basis[side], &host);
    if (!rc) {
        rc = pl_eigen(n, host, values);
        int written = pl_host_give(s->dev, size, s->basis[side], host, !rc);
        rc = rc ? rc : written;
    }
    free(values);
    return rc;
}

int pl_sides_start(const struct pl_sides *s)
{
    int rc = 0;
    for (int side = 0; side < 2 && !rc; side++)
        if (s->has[side]) rc = start_side(s, side);
    return rc;
}

/* Places of the n numbers in descending order; equal ones stay in order. NaN keeps the
 * places as they are as far as it is met: such a run ends anyway. */
static void sort_descending(int n, const float *key, int32_t *order)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && key[order[at - 1]] < key[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static void permute_columns(int rows, int cols, const int32_t *order, float *v,
                            float *row)
{
    for (int i = 0; i < rows; i++) {
        float *x = v + area(i, cols);
        for (int k = 0; k < cols; k++) row[k] = x[order[k]];
        memcpy(x, row, sizeof *row * (size_t)cols);
    }
}

/* In place, cycle by cycle; order is used up. */
static void permute_rows(int rows, int cols, int32_t *order, float *v, float *row)
{
    const size_t bytes = sizeof *row * (size_t)cols;
    for (int first = 0; first < rows; first++) {
        if (order[first] == first || order[first] < 0) continue;
        int to = first;
        memcpy(row, v + area(first, cols), bytes);
        while (order[to] != first) {
            int from = order[to];
            memcpy(v + area(to, cols), v + area(from, cols), bytes);
            order[to] = -1;
            to = from;
        }
        memcpy(v + area(to, cols), row, bytes);
        order[to] = -1;
    }
}

/* Scratch beside the product: keys, order, a row. */
static size_t small(const struct pl_sides *s, int side)
{
    return 2 * (size_t)length(s, side) + (size_t)s->cols;
}

/* B (n,n) and X = B moment in host memory -> the new B; v follows the order. */
static int refresh_on_host(const struct pl_sides *s, int side, float *B, const float *X,
                           float *v, float *key)
{
    const int n = length(s, side);
    int32_t *order = (int32_t *)(key + n);
    float *row = key + 2 * n;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = area(i, n); k < area(i + 1, n); k++) sum += (double)B[k] * X[k];
        key[i] = (float)sum;
    }
    sort_descending(n, key, order);
    for (int i = 0; i < n; i++)
        memcpy(B + area(i, n), X + area(order[i], n), sizeof *B * (size_t)n);
    if (side)
        permute_columns(s->rows, s->cols, order, v, row);
    else
        permute_rows(s->rows, s->cols, order, v, row);
    return pl_orthonormalize(n, B);
}

/* The same where B, X and v are not in host memory. */
static int refresh_through_host(const struct pl_sides *s, int side, const float *X,
                                float *v)
{
    const size_t size = area(length(s, side), length(s, side));
    const size_t elements = area(s->rows, s->cols);
    const struct pl_device *dev = s->dev;
    float *host = PL_NEW(2 * size + elements + small(s, side), float);
    float *x = host + size, *w = x + size;
    int rc = dev->download(host, s->basis[side], sizeof(float) * size);
    if (!rc) rc = dev->download(x, X, sizeof(float) * size);
    if (!rc) rc = dev->download(w, v, sizeof(float) * elements);
    if (!rc) rc = refresh_on_host(s, side, host, x, w, w + elements);
    if (!rc) rc = dev->upload(s->basis[side], host, sizeof(float) * size);
    if (!rc) rc = dev->upload(v, w, sizeof(float) * elements);
    free(host);
    return rc;
}

int pl_sides_refresh(const struct pl_sides *s, float *v, float *scratch)
{
    int rc = 0;
    for (int side = 0; side < 2 && !rc; side++) {
        if (!s->has[side]) continue;
        const int n = length(s, side);
        float *B = s->basis[side];
        rc = s->dev->gemm(false, false, n, n, n, 1, B, n, s->moment[side], n, 0,
                          scratch, n);
        if (rc) continue;
        rc = s->dev->host_memory
                 ? refresh_on_host(s, side, B, scratch, v, scratch + area(n, n))
                 : refresh_through_host(s, side, scratch, v);
    }
    return rc;
}

size_t pl_sides_scratch(const struct pl_sides *s)
{
    size_t most = area(s->rows, s->cols);
    for (int side = 0; side < 2; side++) {
        const int n = length(s, side);
        if (s->has[side] && area(n, n) + small(s, side) > most)
            most = area(n, n) + small(s, side);
    }
    return most;
}

/* out = op(B_L) X op(B_R)^T with op transposing on the way back. */
static int turn(const struct pl_sides *s, bool back, const float *X, float *tmp,
                float *out)
{
    const struct pl_device *dev = s->dev;
    const int m = s->rows, n = s->cols;
    const size_t bytes = sizeof(float) * area(m, n);
    int rc = 0;
    if (!s->has[0] && !s->has[1]) return X == out ? 0 : dev->copy(out, X, bytes);
    if (s->has[0])
        rc = dev->gemm(back, false, m, n, m, 1, s->basis[0], m, X, n, 0, tmp, n);
    else
        rc = dev->copy(tmp, X, bytes);
    if (rc) return rc;
    if (s->has[1])
        return dev->gemm(false, !back, m, n, n, 1, tmp, n, s->basis[1], n, 0, out, n);
    return dev->copy(out, tmp, bytes);
}

int pl_sides_rotate(const struct pl_sides *s, const float *X, float *tmp, float *out)
{
    return turn(s, false, X, tmp, out);
}

int pl_sides_return(const struct pl_sides *s, const float *X, float *tmp, float *out)
{
    return turn(s, true, X, tmp, out);
}

int pl_adam_direction(const struct pl_optim *o, const struct pl_device *dev,
                      const struct pl_param *p, const float *P, int64_t t, float *m,
                      float *v, float *u)
{
    const size_t n = pl_param_size(p);
    const double bc1 = o->bias_correction ? 1 - pow(o->beta1, (double)t) : 1;
    const double bc2 = o->bias_correction ? 1 - pow(o->beta2, (double)t) : 1;
    int rc = pl_optim_average(dev, n, o->beta1, P, m);
    if (!rc) rc = dev->mul(n, (float)(1 - o->beta2), P, P, (float)o->beta2, v);
    if (!rc) rc = dev->axpby(n, (float)(1 / bc1), m, 0, u);
    return rc ? rc : pl_optim_divide(o, dev, p, bc2, v, u);
}
