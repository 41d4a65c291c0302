/* cuda: element by element products and quotients of the optimizers, sums of squares of
 * rows and columns, the symmetric product, batches of products, rounding to bf16. */
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
    int lane = pl_lane(), warps = (int)(pl_threads() / PL_WARP);
    for (int i = (int)(pl_thread() / PL_WARP); i < m; i += warps) {
        const float *row = x + (size_t)i * (size_t)n;
        float sum = 0;
        for (int j = lane; j < n; j += PL_WARP) sum += row[j] * row[j];
        sum = a * pl_warp_sum(sum);
        if (lane == 0) out[i] = b == 0 ? sum : sum + b * out[i];
    }
}

int pl_cuda_squares(enum pl_along along, int m, int n, float a, const float *x, float b,
                    float *out)
{
    if (along == PL_COLUMN) return pl_cuda_column_squares(m, n, a, x, b, out);
    if (!m) return 0;
    int blocks = pl_cuda_blocks((size_t)m * PL_WARP, PL_BLOCKS_MAX);
    PL_LAUNCH(row_squares_kernel, blocks, PL_BLOCK, 0, m, n, a, x, b, out);
    return pl_cuda_launched("squares");
}

/* Upper triangle of each C (n,n) = lower. Grid (rows, matrices). */
static __global__ void mirror_kernel(int count, int n, float *C, int ldc, size_t stride)
{
    const int i = (int)blockIdx.x;
    for (int k = (int)blockIdx.y; k < count; k += (int)gridDim.y) {
        float *c = C + (size_t)k * stride;
        for (int j = i + 1 + (int)threadIdx.x; j < n; j += PL_BLOCK)
            c[i * (size_t)ldc + j] = c[j * (size_t)ldc + i];
    }
}

static int mirror(int count, int n, float *C, int ldc, size_t stride)
{
    enum { MOST = 65535 }; /* of a grid, in y */
    const dim3 grid((unsigned)n, (unsigned)(count < MOST ? count : MOST));
    PL_LAUNCH(mirror_kernel, grid, PL_BLOCK, 0, count, n, C, ldc, stride);
    return pl_cuda_launched("syrk");
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
    return mirror(1, n, C, ldc, 0);
}

/* Matrices (M,N) with rows ld apart, `stride` apart. */
static __global__ void place_kernel(int count, int M, int N, const float *from,
                                    float *to, int ld, size_t stride)
{
    size_t size = (size_t)M * (size_t)N;
    for (size_t e = pl_thread(); e < (size_t)count * size; e += pl_threads()) {
        size_t i = e % size / (size_t)N, j = e % (size_t)N;
        size_t at = e / size * stride + i * (size_t)ld + j;
        to[at] = from[at];
    }
}

/* cuBLAS adds to what is in C. */
int pl_cuda_gemm_batch(int count, bool ta, bool tb, int M, int N, int K, float alpha,
                       const float *A, int lda, size_t stride_a, const float *B,
                       int ldb, size_t stride_b, float beta, const float *addend,
                       float *C, int ldc, size_t stride_c)
{
    if (!count || !M || !N) return 0;
    if (beta != 0 && addend != C) {
        size_t elements = (size_t)count * (size_t)M * (size_t)N;
        PL_LAUNCH(place_kernel, pl_cuda_blocks(elements, PL_BLOCKS_MAX), PL_BLOCK, 0,
                  count, M, N, addend, C, ldc, stride_c);
        int rc = pl_cuda_launched("gemm_batch");
        if (rc) return rc;
    }
    if (count == 1)
        return pl_cuda_gemm(ta, tb, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    cublasStatus_t status = cublasSgemmStridedBatched(
        pl_cuda.blas, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, N,
        M, K, &alpha, B, ldb, (long long)stride_b, A, lda, (long long)stride_a, &beta,
        C, ldc, (long long)stride_c, count);
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return pl_cuda.host->fail(PL_EDEVICE, "device cuda: %d gemm %d x %d x %d: %s",
                              count, M, N, K, cublasGetStatusString(status));
}

/* cuBLAS has no batch of these (nor, it seems, one in tf32): products of whole blocks
 * on and under the diagonal. */
int pl_cuda_syrk_batch(int count, bool ta, int n, int k, float alpha, const float *A,
                       int lda, size_t stride_a, float beta, const float *addend,
                       float *C, int ldc, size_t stride_c)
{
    enum { SIDE = 256 };
    if (!count || !n) return 0;
    for (int j = 0; j < n; j += SIDE) {
        const float *a = A + (size_t)j * (ta ? 1 : (size_t)lda);
        const size_t at = (size_t)j * (size_t)ldc + (size_t)j;
        int rc = pl_cuda_gemm_batch(count, ta, !ta, n - j, n - j < SIDE ? n - j : SIDE,
                                    k, alpha, a, lda, stride_a, a, lda, stride_a, beta,
                                    addend + at, C + at, ldc, stride_c);
        if (rc) return rc;
    }
    return mirror(count, n, C, ldc, stride_c);
}

static __global__ void round_bf16_kernel(size_t n, const float *x, float *y)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads()) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000)
            bits = (bits & 0xffff0000) | 0x400000; /* NaN */
        else
            bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

int pl_cuda_round_bf16(size_t n, const float *x, float *y)
{
    if (!n) return 0;
    PL_LAUNCH(round_bf16_kernel, pl_cuda_blocks(n, PL_BLOCKS_MAX), PL_BLOCK, 0, n, x,
              y);
    return pl_cuda_launched("round_bf16");
}
