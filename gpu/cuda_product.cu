/* cuda: matrix products. fp32 (tf32: gpu/cuda.cu) by cuBLAS; bf16 by cuBLASLt: factors
 * bf16, sums float, y and dx rounded once, dW float. Weights are rounded to bf16 before
 * each use: 6 bytes an element that the product, which reads 2, does not need; with
 * 32768 rows that is below 1 % of its time (2 in out rows flops at 989 TFLOP/s against
 * 6 in out bytes at 4.8 TB/s: 19 rows' worth of 32768, times 33). cuBLASLt's choice of
 * a kernel is kept for each shape. A sum that is split is added up in float, in a fixed
 * order.
 */
#include "gpu/cuda_real.cuh"

#include <string.h>

/* cuBLAS is column-major: a row-major C is its C^T = op(B)^T op(A)^T. */
int pl_cuda_gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                 int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    if (!M || !N) return 0;
    cublasStatus_t status = cublasSgemm(pl_cuda.blas, tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                                        ta ? CUBLAS_OP_T : CUBLAS_OP_N, N, M, K, &alpha,
                                        B, ldb, A, lda, &beta, C, ldc);
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return pl_cuda.host->fail(PL_EDEVICE, "device cuda: gemm %d x %d x %d: %s", M, N, K,
                              cublasGetStatusString(status));
}

PL_PRODUCT_BY_GEMM(pl_cuda_product, pl_cuda_gemm)

/* What a product looks like to cuBLAS: D (m,n) = op(A) op(B) + beta D, column-major. */
struct form {
    enum pl_product which;
    int rows, in, out;
    int m, n, k, lda, ldb;
    bool ta, tb;
    cudaDataType_t type; /* of D, whose rows lie m apart */
    unsigned aligned;    /* bytes, of all pointers */
};

struct plan {
    struct form form;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
};

/* Replaced in turn: experts have ever other numbers of rows. */
enum { PLANS = 128 };
static struct plan plans[PLANS];
static int next_plan;

static void plan_free(struct plan *p)
{
    if (p->product) cublasLtMatmulDescDestroy(p->product);
    if (p->a) cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) cublasLtMatrixLayoutDestroy(p->b);
    if (p->d) cublasLtMatrixLayoutDestroy(p->d);
    memset(p, 0, sizeof *p);
}

void pl_cuda_product_close(void)
{
    for (int i = 0; i < PLANS; i++) plan_free(&plans[i]);
}

/* y^T = W x^T, dx^T = W^T dy^T, dW^T = x^T dy, with W, x and dy transposed as cuBLAS
 * sees them. */
static struct form form_of(enum pl_product which, int rows, int in, int out,
                           const void *a, const void *b, const void *c)
{
    struct form f;
    memset(&f, 0, sizeof f); /* compared as bytes */
    f.which = which;
    f.rows = rows;
    f.in = in;
    f.out = out;
    f.type = which == PL_PRODUCT_DW ? CUDA_R_32F : CUDA_R_16BF;
    f.m = which == PL_PRODUCT_Y ? out : in;
    f.n = which == PL_PRODUCT_DW ? out : rows;
    f.k = which == PL_PRODUCT_Y ? in : which == PL_PRODUCT_DX ? out : rows;
    f.lda = in;
    f.ldb = which == PL_PRODUCT_Y ? in : out;
    f.ta = which == PL_PRODUCT_Y;
    f.tb = which == PL_PRODUCT_DW;
    uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | 256;
    f.aligned = (unsigned)(bits & -bits);
    return f;
}

static cublasStatus_t describe(struct plan *p)
{
    const struct form *f = &p->form;
    cublasOperation_t ta = f->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t tb = f->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t s =
        cublasLtMatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!s)
        s = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSA, &ta,
                                           sizeof ta);
    if (!s)
        s = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSB, &tb,
                                           sizeof tb);
    if (!s)
        s = cublasLtMatrixLayoutCreate(&p->a, CUDA_R_16BF,
                                       (uint64_t)(f->ta ? f->k : f->m),
                                       (uint64_t)(f->ta ? f->m : f->k), f->lda);
    if (!s)
        s = cublasLtMatrixLayoutCreate(&p->b, CUDA_R_16BF,
                                       (uint64_t)(f->tb ? f->n : f->k),
                                       (uint64_t)(f->tb ? f->k : f->n), f->ldb);
    if (!s)
        s = cublasLtMatrixLayoutCreate(&p->d, f->type, (uint64_t)f->m, (uint64_t)f->n,
                                       f->m);
    return s;
}

static cublasStatus_t choose(struct plan *p)
{
    const size_t workspace = PL_CUBLAS_BYTES;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t aligned = p->form.aligned;
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    cublasStatus_t s = cublasLtMatmulPreferenceCreate(&want);
    if (s) return s;
    s = cublasLtMatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (!s)
        s = cublasLtMatmulPreferenceSetAttribute(
            want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    for (int i = 0; i < 4 && !s; i++)
        s = cublasLtMatmulPreferenceSetAttribute(want, alignments[i], &aligned,
                                                 sizeof aligned);
    if (!s)
        s = cublasLtMatmulAlgoGetHeuristic(pl_cuda.lt, p->product, p->a, p->b, p->d,
                                           p->d, want, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(want);
    if (!s && !found) s = CUBLAS_STATUS_NOT_SUPPORTED;
    if (!s) p->algo = best.algo;
    return s;
}

static cublasStatus_t plan_of(const struct form *f, struct plan **out)
{
    for (int i = 0; i < PLANS; i++)
        if (plans[i].product && !memcmp(&plans[i].form, f, sizeof *f)) {
            *out = &plans[i];
            return CUBLAS_STATUS_SUCCESS;
        }
    struct plan *p = *out = &plans[next_plan];
    plan_free(p);
    p->form = *f;
    cublasStatus_t s = describe(p);
    if (!s) s = choose(p);
    if (s)
        plan_free(p);
    else
        next_plan = (next_plan + 1) % PLANS;
    return s;
}

template <int N>
static __global__ void round_kernel(size_t n, const float *x, __nv_bfloat16 *y)
{
    float v[N];
    for (size_t i = pl_thread() * N; i < n; i += pl_threads() * N) {
        pl_get<N>(x + i, v);
        pl_put<N>(y + i, v);
    }
}

/* The weights in bf16. */
static int rounded(size_t n, const float *w, const void **out)
{
    int rc = pl_cuda_keep(&pl_cuda.weight, n * sizeof(__nv_bfloat16));
    if (rc) return rc;
    auto *kernel =
        pl_wide<__nv_bfloat16>((int)(n % 16), w) ? round_kernel<8> : round_kernel<1>;
    PL_LAUNCH(kernel, pl_cuda_blocks(n, PL_BLOCKS_MAX), PL_BLOCK, 0, n, w,
              (__nv_bfloat16 *)pl_cuda.weight.at);
    *out = pl_cuda.weight.at;
    return pl_cuda_launched("rounding weights");
}

int pl_cuda16_product(enum pl_product which, int rows, int in, int out, const float *a,
                      const float *b, float beta, float *c)
{
    const void *left = b, *right = a; /* dW: x, dy */
    const float one = 1;
    if (!rows || !in || !out) return 0;
    int rc = which == PL_PRODUCT_DW ? 0 : rounded((size_t)in * (size_t)out, b, &left);
    if (rc) return rc;
    const struct form f = form_of(which, rows, in, out, left, right, c);
    struct plan *p;
    cublasStatus_t s = plan_of(&f, &p);
    if (!s)
        s = cublasLtMatmul(pl_cuda.lt, p->product, &one, left, p->a, right, p->b, &beta,
                           c, p->d, c, p->d, &p->algo, pl_cuda.workspace,
                           PL_CUBLAS_BYTES, pl_cuda.stream);
    if (s == CUBLAS_STATUS_NOT_SUPPORTED) /* odd distances between rows, say */
        s = cublasGemmEx(pl_cuda.blas, f.ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                         f.tb ? CUBLAS_OP_T : CUBLAS_OP_N, f.m, f.n, f.k, &one, left,
                         CUDA_R_16BF, f.lda, right, CUDA_R_16BF, f.ldb, &beta, c,
                         f.type, f.m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (!s) return 0;
    return pl_cuda.host->fail(PL_EDEVICE,
                              "device cuda: product of %d rows, %d to %d, in bf16: %s",
                              rows, in, out, cublasGetStatusString(s));
}
