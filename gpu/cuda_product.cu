/* cuda: matrix products. fp32 (tf32: gpu/cuda.cu) by cuBLAS; bf16 by cuBLASLt: factors
 * bf16, sums float, y and dx rounded once, dW float. Weights are rounded to bf16 before
 * each use: 6 bytes an element that the product, which reads 2, does not need; with
 * 32768 rows that is below 1 % of its time (2 in out rows flops at 989 TFLOP/s against
 * 6 in out bytes at 4.8 TB/s: 19 rows' worth of 32768, times 33). cuBLASLt's choice of
 * a kernel is kept for each shape. A sum that is split is added up in float, in a fixed
 * order.
 *
 * cuBLASLt adds addend and bias before the result is rounded, so neither costs a pass:
 * the addend is its C, the bias an epilogue. A bias vector has the type of the result
 * (cublasLt.h, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), so it is rounded as the weights
 * are. Shapes that cuBLASLt refuses take cuBLAS and a pass for each.
 *
 * Not taken: epilogues with GELU and its derivative. In GPT-2's block they would save
 * 4 d of 103 d activations moved (forward) and 8 d (backward), about 1.5 % and 3 % of a
 * step at 124M by bytes, of which llm.c measured 0.7 % for forward (H100, pull request
 * 591), and a loss "very slightly worse" (653); elsewhere than on Hopper they are
 * slower (338). Whether their tanh keeps our bounds only a GPU can tell. */
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

PL_PRODUCT_BY_GEMM(pl_cuda_product, pl_cuda_gemm, pl_cuda_copy, pl_cuda_add_rows)

/* What a product looks like to cuBLAS: D (m,n) = op(A) op(B) + beta C, column-major,
 * + a number for each row. */
struct form {
    enum pl_product which;
    int rows, in, out;
    int m, n, k, lda, ldb;
    bool ta, tb, biased;
    cudaDataType_t type; /* of D, whose rows lie m apart */
    unsigned aligned;    /* bytes, of all pointers */
};

struct plan {
    struct form form;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d; /* d: of C, too */
    cublasLtMatmulAlgo_t algo;
};

/* Replaced in turn. */
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
                           bool biased, uintptr_t pointers)
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
    f.biased = biased;
    uintptr_t bits = pointers | 256;
    f.aligned = (unsigned)(bits & -bits);
    return f;
}

template <class T>
static cublasStatus_t attribute(struct plan *p, cublasLtMatmulDescAttributes_t what,
                                T value)
{
    return cublasLtMatmulDescSetAttribute(p->product, what, &value, sizeof value);
}

/* bias: of D's type. */
static cublasStatus_t describe(struct plan *p, const void *bias)
{
    const struct form *f = &p->form;
    cublasOperation_t ta = f->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t tb = f->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t s =
        cublasLtMatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!s) s = attribute(p, CUBLASLT_MATMUL_DESC_TRANSA, ta);
    if (!s) s = attribute(p, CUBLASLT_MATMUL_DESC_TRANSB, tb);
    if (!s && f->biased)
        s = attribute(p, CUBLASLT_MATMUL_DESC_EPILOGUE,
                      (uint32_t)CUBLASLT_EPILOGUE_BIAS);
    if (!s && f->biased) s = attribute(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
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

static cublasStatus_t plan_of(const struct form *f, const void *bias, struct plan **out)
{
    for (int i = 0; i < PLANS; i++)
        if (plans[i].product && !memcmp(&plans[i].form, f, sizeof *f)) {
            *out = &plans[i];
            return bias ? attribute(*out, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)
                        : CUBLAS_STATUS_SUCCESS;
        }
    struct plan *p = *out = &plans[next_plan];
    plan_free(p);
    p->form = *f;
    cublasStatus_t s = describe(p, bias);
    if (!s) s = choose(p);
    if (s)
        plan_free(p);
    else
        next_plan = (next_plan + 1) % PLANS;
    return s;
}

static int refused(const struct form *f, cublasStatus_t status)
{
    return pl_cuda.host->fail(PL_EDEVICE,
                              "device cuda: product of %d rows, %d to %d, in bf16: %s",
                              f->rows, f->in, f->out, cublasGetStatusString(status));
}

/* y = x, then z. */
template <int N>
static __global__ void round_kernel(size_t n, const float *x, size_t m, const float *z,
                                    __nv_bfloat16 *y)
{
    float v[N];
    for (size_t i = pl_thread() * N; i < n + m; i += pl_threads() * N) {
        pl_get<N>(i < n ? x + i : z + (i - n), v);
        pl_put<N>(y + i, v);
    }
}

/* The weights and, behind them, the bias in bf16. */
static int rounded(size_t n, const float *w, size_t m, const float *z,
                   const __nv_bfloat16 **out)
{
    int rc = pl_cuda_keep(&pl_cuda.weight, (n + m) * sizeof(__nv_bfloat16));
    if (rc) return rc;
    auto *kernel = pl_wide<__nv_bfloat16>((int)((n | m) % 16), w, z) ? round_kernel<8>
                                                                     : round_kernel<1>;
    *out = (const __nv_bfloat16 *)pl_cuda.weight.at;
    PL_LAUNCH(kernel, pl_cuda_blocks(n + m, PL_BLOCKS_MAX), PL_BLOCK, 0, n, w, m, z,
              (__nv_bfloat16 *)pl_cuda.weight.at);
    return pl_cuda_launched("rounding weights");
}

/* By cuBLAS, the addend in a pass before it and the bias in one after it. */
static int in_passes(const struct form *f, const void *left, const void *right,
                     const float *bias, const float *addend, float *c)
{
    const float one = 1, beta = addend ? 1 : 0;
    const size_t size = f->type == CUDA_R_16BF ? sizeof(__nv_bfloat16) : sizeof(float);
    int rc = addend && addend != c
                 ? pl_cuda_copy(c, addend, (size_t)f->m * (size_t)f->n * size)
                 : 0;
    if (rc) return rc;
    cublasStatus_t s =
        cublasGemmEx(pl_cuda.blas, f->ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                     f->tb ? CUBLAS_OP_T : CUBLAS_OP_N, f->m, f->n, f->k, &one, left,
                     CUDA_R_16BF, f->lda, right, CUDA_R_16BF, f->ldb, &beta, c, f->type,
                     f->m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (s) return refused(f, s);
    return bias ? pl_cuda16_add_rows(f->rows, 1, f->out, bias, c) : 0;
}

int pl_cuda16_product(enum pl_product which, int rows, int in, int out, const float *a,
                      const float *b, const float *bias, const float *addend, float *c)
{
    const void *left = b, *right = a; /* dW: x, dy */
    const float one = 1, beta = addend ? 1 : 0;
    const __nv_bfloat16 *w = NULL, *z = NULL;
    const size_t n = (size_t)in * (size_t)out;
    if (!rows || !in || !out) return 0;
    if (which != PL_PRODUCT_DW) {
        int rc = rounded(n, b, bias ? (size_t)out : 0, bias, &w);
        if (rc) return rc;
        left = w;
        if (bias) z = w + n;
    }
    const struct form f = form_of(which, rows, in, out, bias,
                                  (uintptr_t)left | (uintptr_t)right | (uintptr_t)z |
                                      (uintptr_t)addend | (uintptr_t)c);
    struct plan *p;
    cublasStatus_t s = plan_of(&f, z, &p);
    if (!s)
        s = cublasLtMatmul(pl_cuda.lt, p->product, &one, left, p->a, right, p->b, &beta,
                           addend ? addend : c, p->d, c, p->d, &p->algo,
                           pl_cuda.workspace, PL_CUBLAS_BYTES, pl_cuda.stream);
    if (s == CUBLAS_STATUS_NOT_SUPPORTED) /* odd distances between rows, say */
        return in_passes(&f, left, right, bias, addend, c);
    return s ? refused(&f, s) : 0;
}
