/* cuda: element by element products and quotients of the optimizers, sums of squares of
 * rows and columns, and the symmetric product. */
#include "gpu/cuda_device.cuh"

static __global__ void mul_kernel(size_t n, float a, const float *x, const float *z,
                                  float b, float *y)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads())
        y[i] = b == 0 ? a * x[i] * z[i] : a * x[i] * z[i] + b * y[i];
}

int pl_cuda_mul(size_t n, float a, const float *x, const float *z, float b, float *y)
{
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(mul_kernel, blocks, PL_BLOCK, 0, n, a, x, z, b, y);
    return pl_cuda_launched("mul");
}

struct ratio_floats {
    enum pl_along along;
    float a, b, s, under, eps, least; /* d = max(s sqrt(v + under) + eps, least) */
};

static __global__ void ratio_kernel(size_t size, int n, struct ratio_floats r,
                                    const float *x, const float *v, float *y)
{
    for (size_t i = pl_thread(); i < size; i += pl_threads()) {
        size_t k = r.along == PL_EACH  ? i
                   : r.along == PL_ROW ? i / (size_t)n
                                       : i % (size_t)n;
        float d = fmaxf(r.s * sqrtf(v[k] + r.under) + r.eps, r.least);
        y[i] = r.b == 0 ? r.a * x[i] / d : r.a * x[i] / d + r.b * y[i];
    }
}

int pl_cuda_ratio(int m, int n, const struct pl_ratio_args *args, const float *x,
                  const float *v, float *y)
{
    size_t size = (size_t)m * (size_t)n;
    if (!size) return 0;
    struct ratio_floats r = {args->along,
                             (float)args->a,
                             (float)args->b,
                             (float)args->s,
                             (float)args->under,
                             args->clamp ? 0 : (float)args->eps,
                             args->clamp ? (float)args->eps : 0};
    int blocks = pl_cuda_blocks(size, PL_BLOCKS_MAX);
    PL_LAUNCH(ratio_kernel, blocks, PL_BLOCK, 0, size, n, r, x, v, y);
    return pl_cuda_launched("ratio");
}

/* One warp a row. */
static __global__ void row_squares_kernel(int m, int n, float a, const float *x,
                                          float b, float *out)
{
    int lane = (int)threadIdx.x % PL_WARP, warps = (int)(pl_threads() / PL_WARP);
    for (int i = (int)(pl_thread() / PL_WARP); i < m; i += warps) {
        const float *row = x + (size_t)i * (size_t)n;
        float sum = 0;
        for (int j = lane; j < n; j += PL_WARP) sum += row[j] * row[j];
        sum = a * pl_warp_sum(sum);
        if (lane == 0) out[i] = b == 0 ? sum : sum + b * out[i];
    }
}

/* One thread a column: neighbours read neighbours. */
static __global__ void column_squares_kernel(int m, int n, float a, const float *x,
                                             float b, float *out)
{
    for (size_t j = pl_thread(); j < (size_t)n; j += pl_threads()) {
        float sum = 0;
        for (int i = 0; i < m; i++) {
            float e = x[(size_t)i * (size_t)n + j];
            sum += e * e;
        }
        out[j] = b == 0 ? a * sum : a * sum + b * out[j];
    }
}

int pl_cuda_squares(enum pl_along along, int m, int n, float a, const float *x, float b,
                    float *out)
{
    if (along == PL_ROW) {
        if (!m) return 0;
        int blocks = pl_cuda_blocks((size_t)m * PL_WARP, PL_BLOCKS_MAX);
        PL_LAUNCH(row_squares_kernel, blocks, PL_BLOCK, 0, m, n, a, x, b, out);
    } else {
        if (!n) return 0;
        int blocks = pl_cuda_blocks((size_t)n, PL_BLOCKS_MAX);
        PL_LAUNCH(column_squares_kernel, blocks, PL_BLOCK, 0, m, n, a, x, b, out);
    }
    return pl_cuda_launched("squares");
}

/* Upper triangle of C (n,n) = lower. */
static __global__ void mirror_kernel(int n, float *C, int ldc)
{
    size_t size = (size_t)n * (size_t)n;
    for (size_t e = pl_thread(); e < size; e += pl_threads()) {
        size_t i = e / (size_t)n, j = e % (size_t)n;
        if (i < j) C[i * (size_t)ldc + j] = C[j * (size_t)ldc + i];
    }
}

/* cuBLAS is column-major: a row-major A is its transpose there, and the lower triangle
 * of C the upper one. */
int pl_cuda_syrk(bool ta, int n, int k, float alpha, const float *A, int lda,
                 float beta, float *C, int ldc)
{
    if (!n) return 0;
    cublasStatus_t status = cublasSsyrk(pl_cuda.blas, CUBLAS_FILL_MODE_UPPER,
                                        ta ? CUBLAS_OP_N : CUBLAS_OP_T, n, k, &alpha, A,
                                        lda, &beta, C, ldc);
    if (status != CUBLAS_STATUS_SUCCESS)
        return pl_cuda.host->fail(PL_EDEVICE, "device cuda: syrk %d x %d: %s", n, k,
                                  cublasGetStatusString(status));
    int blocks = pl_cuda_blocks((size_t)n * (size_t)n, PL_BLOCKS_MAX);
    PL_LAUNCH(mirror_kernel, blocks, PL_BLOCK, 0, n, C, ldc);
    return pl_cuda_launched("syrk");
}
