/* The device `ref`: plain loops in the order of the formulas, sums in double, storage
 * in float, no library. It is the oracle of the other devices, so nothing here is
 * tuned. */
#include "gpu/ref.h"
#include "gpu/hostmem.h"

#include <math.h>
#include <stdio.h>

static int ref_open(void)
{
    return 0;
}

static void ref_close(void)
{
}

static void ref_describe(char *text, size_t n)
{
    snprintf(text, n, "ref: plain C loops, double accumulation, one thread");
}

int pl_ref_gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    size_t a_row = ta ? 1 : (size_t)lda, a_col = ta ? (size_t)lda : 1;
    size_t b_row = tb ? 1 : (size_t)ldb, b_col = tb ? (size_t)ldb : 1;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const float *a = A + (size_t)i * a_row, *b = B + (size_t)j * b_col;
            float *c = C + (size_t)i * (size_t)ldc + j;
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += (double)a[(size_t)k * a_col] * b[(size_t)k * b_row];
            *c = (float)(alpha * sum + (beta == 0 ? 0.0 : (double)beta * *c));
        }
    return 0;
}

PL_PRODUCT_BY_GEMM(pl_ref_product, pl_ref_gemm, pl_hostmem_copy, pl_ref_add_rows)

int pl_ref_axpby(size_t n, float a, const float *x, float b, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)a * x[i] + (b == 0 ? 0.0 : (double)b * y[i]));
    return 0;
}

int pl_ref_dot(size_t n, const float *x, const float *y, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * y[i];
    *out = sum;
    return 0;
}

int pl_ref_sign(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) y[i] = (float)((x[i] > 0) - (x[i] < 0));
    return 0;
}

static void adamw_one(const struct pl_adamw_tensor *x, const struct pl_adamw_args *args)
{
    double step = args->eta / args->bc1, root = sqrt(args->bc2);
    double decay = args->eta * x->decay;
    for (size_t i = 0; i < x->n; i++) {
        double gi = x->g[i];
        double mi = args->beta1 * x->m[i] + (1 - args->beta1) * gi;
        double vi = args->beta2 * x->v[i] + (1 - args->beta2) * gi * gi;
        x->m[i] = (float)mi;
        x->v[i] = (float)vi;
        x->u[i] = (float)(step * mi / (sqrt(vi) / root + args->eps) + decay * x->w[i]);
    }
}

int pl_ref_adamw(int count, const struct pl_adamw_tensor *list,
                 const struct pl_adamw_args *args)
{
    for (int k = 0; k < count; k++) adamw_one(&list[k], args);
    return 0;
}

const struct pl_device pl_device_ref = {
    .name = "ref",
    .summary = "plain loops with double accumulation, the oracle of the other devices",
    .host_memory = true,
    .real_bytes = sizeof(float),
    .precision = "fp32",
    .open = ref_open,
    .close = ref_close,
    .describe = ref_describe,
    .alloc = pl_hostmem_alloc,
    .release = pl_hostmem_release,
    .upload = pl_hostmem_copy,
    .download = pl_hostmem_copy,
    .copy = pl_hostmem_copy,
    .zero = pl_hostmem_zero,
    .prefetch = pl_hostmem_copy,
    PL_DEVICE_OP_TABLE(pl_ref_)};
