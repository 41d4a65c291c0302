/* ref: weighted sums of arrays and their distance, element by element products and
 * quotients of the optimizers, sums of squares of rows and columns, the symmetric
 * product, batches of products, rounding to bf16. */
#include "gpu/ref.h"

#include <math.h>
#include <string.h>

int pl_ref_blend(size_t n, int terms, const float *a, const float *const *x, float *y)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < terms; k++) sum += (double)a[k] * x[k][i];
        y[i] = (float)sum;
    }
    return 0;
}

int pl_ref_distance(size_t n, const float *x, const float *y, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float d = x[i] - y[i];
        sum += (double)d * d;
    }
    *out = sum;
    return 0;
}

int pl_ref_mul(size_t n, float a, const float *x, const float *z, float b, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)a * x[i] * z[i] + (b == 0 ? 0.0 : (double)b * y[i]));
    return 0;
}

int pl_ref_ratio(int m, int n, const struct pl_ratio_args *args, const float *x,
                 const float *v, float *y)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            size_t e = (size_t)i * (size_t)n + (size_t)j;
            size_t k =
                args->along == PL_EACH ? e : (size_t)(args->along == PL_ROW ? i : j);
            double root = args->s * sqrt(v[k] + args->under);
            double d = args->clamp ? fmax(root, args->eps) : root + args->eps;
            y[e] = (float)(args->a * x[e] / d + (args->b == 0 ? 0.0 : args->b * y[e]));
        }
    return 0;
}

int pl_ref_squares(enum pl_along along, int m, int n, float a, const float *x, float b,
                   float *out)
{
    const int outer = along == PL_ROW ? m : n, inner = along == PL_ROW ? n : m;
    for (int k = 0; k < outer; k++) {
        double sum = 0;
        for (int l = 0; l < inner; l++) {
            size_t i = (size_t)(along == PL_ROW ? k : l);
            double e = x[i * (size_t)n + (size_t)(along == PL_ROW ? l : k)];
            sum += e * e;
        }
        out[k] = (float)(a * sum + (b == 0 ? 0.0 : (double)b * out[k]));
    }
    return 0;
}

int pl_ref_syrk(bool ta, int n, int k, float alpha, const float *A, int lda, float beta,
                float *C, int ldc)
{
    size_t row = ta ? 1 : (size_t)lda, col = ta ? (size_t)lda : 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            float *c = C + (size_t)i * (size_t)ldc + j;
            const float *a = A + (size_t)i * row, *b = A + (size_t)j * row;
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)a[(size_t)l * col] * b[(size_t)l * col];
            *c = (float)(alpha * sum + (beta == 0 ? 0.0 : (double)beta * *c));
            C[(size_t)j * (size_t)ldc + (size_t)i] = *c;
        }
    return 0;
}

static void put(int m, int n, const float *from, float *to, int ld)
{
    for (size_t i = 0; i < (size_t)m && from != to; i++)
        memcpy(to + i * (size_t)ld, from + i * (size_t)ld, (size_t)n * sizeof *to);
}

int pl_ref_gemm_batch(int count, bool ta, bool tb, int M, int N, int K, float alpha,
                      const float *A, int lda, size_t stride_a, const float *B, int ldb,
                      size_t stride_b, float beta, const float *addend, float *C,
                      int ldc, size_t stride_c)
{
    for (size_t i = 0; i < (size_t)count; i++) {
        float *c = C + i * stride_c;
        if (beta != 0) put(M, N, addend + i * stride_c, c, ldc);
        pl_ref_gemm(ta, tb, M, N, K, alpha, A + i * stride_a, lda, B + i * stride_b,
                    ldb, beta, c, ldc);
    }
    return 0;
}

int pl_ref_syrk_batch(int count, bool ta, int n, int k, float alpha, const float *A,
                      int lda, size_t stride_a, float beta, const float *addend,
                      float *C, int ldc, size_t stride_c)
{
    for (size_t i = 0; i < (size_t)count; i++) {
        float *c = C + i * stride_c;
        if (beta != 0) put(n, n, addend + i * stride_c, c, ldc);
        pl_ref_syrk(ta, n, k, alpha, A + i * stride_a, lda, beta, c, ldc);
    }
    return 0;
}

/* The upper half of a float, up where the lower half is more than half a unit, or half
 * of one and the upper is odd; NaN stays NaN. */
int pl_ref_round_bf16(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits, lower;
        memcpy(&bits, &x[i], sizeof bits);
        lower = bits & 0xffff;
        bits &= 0xffff0000;
        if (isnan(x[i]))
            bits |= 0x400000;
        else if (lower > 0x8000 || (lower == 0x8000 && bits & 0x10000))
            bits += 0x10000;
        memcpy(&y[i], &bits, sizeof bits);
    }
    return 0;
}
