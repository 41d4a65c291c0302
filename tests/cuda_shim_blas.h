/* Of tests/cuda_shim.h, the calls of cuBLAS and cuBLASLt that gpu/cuda*.cu make, in the
 * plainest way. Included by it only. */
#ifndef TESTS_CUDA_SHIM_BLAS_H
#define TESTS_CUDA_SHIM_BLAS_H

namespace shim
{
inline bool tf32; /* factors of products of floats have 11 bits */
}

/* cuBLAS: column-major. */
struct shim_blas {
    cudaStream_t stream;
    void *workspace;
};
typedef shim_blas *cublasHandle_t;
enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_16BF = 14 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
static inline cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = new shim_blas();
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
/* Takes the workspace away. */
static inline cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    *h = {s, nullptr};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *at, size_t)
{
    if ((uintptr_t)at % 256 || !shim::on_device(at)) return CUBLAS_STATUS_INVALID_VALUE;
    h->workspace = at;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode)
{
    shim::tf32 = mode == CUBLAS_TF32_TENSOR_OP_MATH;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasGetVersion(cublasHandle_t, int *version)
{
    *version = 0;
    return CUBLAS_STATUS_SUCCESS;
}
static inline const char *cublasGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS         ? "success"
           : s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported"
                                              : "an invalid value";
}

namespace shim
{
/* One factor: element (i, j) of op(X), column-major. */
struct factor {
    const void *x;
    cudaDataType_t type;
    bool transposed;
    int ld;
    bool tf32 = shim::tf32;
    float at(int i, int j) const
    {
        size_t e = transposed ? (size_t)i * ld + j : (size_t)j * ld + i;
        if (type == CUDA_R_16BF) return __bfloat162float(((const __nv_bfloat16 *)x)[e]);
        uint32_t bits;
        memcpy(&bits, (const float *)x + e, sizeof bits);
        return __uint_as_float(tf32 ? (bits + 0x1000) & ~0x1fffu : bits);
    }
};

/* Without one of ours it allocates, which breaks a capture. */
inline stream *of_blas(cublasHandle_t h)
{
    if (!h->workspace) forbidden();
    return h->stream;
}

inline float element(const void *x, cudaDataType_t type, size_t e)
{
    return type == CUDA_R_16BF ? __bfloat162float(((const __nv_bfloat16 *)x)[e])
                               : ((const float *)x)[e];
}

/* D (m,n) = alpha A B + beta C + bias (m), rounded to the type of all three; bias NULL:
 * none. */
inline void product(stream *s, factor A, factor B, int m, int n, int k, float alpha,
                    float beta, const void *C, const void *bias, void *D,
                    cudaDataType_t type, int ldd)
{
    issue(s, [=] {
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                size_t e = (size_t)j * ldd + i;
                double sum = 0;
                for (int l = 0; l < k; l++) sum += (double)A.at(i, l) * B.at(l, j);
                sum *= alpha;
                if (beta != 0) sum += (double)beta * element(C, type, e);
                if (bias) sum += element(bias, type, (size_t)i);
                if (type == CUDA_R_16BF)
                    ((__nv_bfloat16 *)D)[e] = __float2bfloat16((float)sum);
                else
                    ((float *)D)[e] = (float)sum;
            }
    });
}
} /* namespace shim */

static inline cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const float *alpha, const float *A, int lda,
                                         const float *B, int ldb, const float *beta,
                                         float *C, int ldc)
{
    if (lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    shim::product(shim::of_blas(h), {A, CUDA_R_32F, ta == CUBLAS_OP_T, lda},
                  {B, CUDA_R_32F, tb == CUBLAS_OP_T, ldb}, m, n, k, *alpha, *beta, C,
                  NULL, C, CUDA_R_32F, ldc);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasSgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                          int m, int n, int k, const float *alpha, const float *A,
                          int lda, long long sa, const float *B, int ldb, long long sb,
                          const float *beta, float *C, int ldc, long long sc, int count)
{
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; i++)
        status = cublasSgemm(h, ta, tb, m, n, k, alpha, A + i * sa, lda, B + i * sb,
                             ldb, beta, C + i * sc, ldc);
    return status;
}
static inline cublasStatus_t
cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
             int k, const void *alpha, const void *A, cudaDataType_t a_type, int lda,
             const void *B, cudaDataType_t b_type, int ldb, const void *beta, void *C,
             cudaDataType_t c_type, int ldc, cublasComputeType_t, cublasGemmAlgo_t)
{
    if (lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    shim::product(shim::of_blas(h), {A, a_type, ta == CUBLAS_OP_T, lda},
                  {B, b_type, tb == CUBLAS_OP_T, ldb}, m, n, k, *(const float *)alpha,
                  *(const float *)beta, C, NULL, C, c_type, ldc);
    return CUBLAS_STATUS_SUCCESS;
}

/* cuBLASLt: an algorithm is there for rows and pointers that are multiples of 16 bytes.
 */
struct cublasLtMatmulAlgo_t {
    int unused;
};
struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
};
struct shim_lt_product {
    cublasOperation_t op[2];
    uint32_t epilogue;
    const void *bias;
};
struct shim_lt_layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld;
};
struct shim_lt_preference {
    uint32_t aligned[4];
};
typedef struct shim_lt *cublasLtHandle_t;
typedef shim_lt_product *cublasLtMatmulDesc_t;
typedef shim_lt_layout *cublasLtMatrixLayout_t;
typedef shim_lt_preference *cublasLtMatmulPreference_t;
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8
};
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 };
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
};
enum { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };
static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t)malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *p, cublasComputeType_t, cudaDataType_t)
{
    *p = new shim_lt_product{{}, CUBLASLT_EPILOGUE_DEFAULT, NULL};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                               cublasLtMatmulDescAttributes_t what, const void *value,
                               size_t n)
{
    void *at = what == CUBLASLT_MATMUL_DESC_TRANSA         ? (void *)&p->op[0]
               : what == CUBLASLT_MATMUL_DESC_TRANSB       ? (void *)&p->op[1]
               : what == CUBLASLT_MATMUL_DESC_EPILOGUE     ? (void *)&p->epilogue
               : what == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? (void *)&p->bias
                                                           : NULL;
    const size_t size = what == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof p->bias : 4;
    if (!at || n != size) {
        fprintf(stderr, "shim: attribute %d of %zu bytes\n", (int)what, n);
        abort();
    }
    memcpy(at, value, n);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *p,
                                                        cudaDataType_t type,
                                                        uint64_t rows, uint64_t cols,
                                                        int64_t ld)
{
    *p = new shim_lt_layout{type, rows, cols, ld};
    return ld < (int64_t)rows ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = new shim_lt_preference();
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                     cublasLtMatmulPreferenceAttributes_t what,
                                     const void *value, size_t n)
{
    if (n != (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (what <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
        memcpy(&p->aligned[what], value, n);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t p,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t want, int,
                               cublasLtMatmulHeuristicResult_t *best, int *found)
{
    *best = {};
    *found = a->ld % 8 == 0 && b->ld % 8 == 0 && c->ld % 8 == 0 && d->ld % 8 == 0 &&
             (uintptr_t)p->bias % 16 == 0; /* a bias is looked at here, too */
    for (uint32_t aligned : want->aligned) *found = *found && aligned % 16 == 0;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, const void *alpha,
               const void *A, cublasLtMatrixLayout_t a, const void *B,
               cublasLtMatrixLayout_t b, const void *beta, const void *C,
               cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
               const cublasLtMatmulAlgo_t *, void *workspace, size_t, cudaStream_t s)
{
    bool ta = p->op[0] == CUBLAS_OP_T, tb = p->op[1] == CUBLAS_OP_T;
    uint64_t k = ta ? a->rows : a->cols;
    const bool biased = p->epilogue == CUBLASLT_EPILOGUE_BIAS;
    if (!workspace || (ta ? a->cols : a->rows) != d->rows ||
        (tb ? b->rows : b->cols) != d->cols || (tb ? b->cols : b->rows) != k ||
        c->type != d->type || c->rows != d->rows || c->cols != d->cols ||
        c->ld != d->ld || (!biased && p->epilogue != CUBLASLT_EPILOGUE_DEFAULT) ||
        biased != (p->bias != NULL) ||
        ((uintptr_t)A | (uintptr_t)B | (uintptr_t)C | (uintptr_t)D |
         (uintptr_t)p->bias) %
            16)
        return CUBLAS_STATUS_INVALID_VALUE;
    shim::product(s, {A, a->type, ta, (int)a->ld}, {B, b->type, tb, (int)b->ld},
                  (int)d->rows, (int)d->cols, (int)k, *(const float *)alpha,
                  *(const float *)beta, C, p->bias, D, d->type, (int)d->ld);
    return CUBLAS_STATUS_SUCCESS;
}

enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER };
/* C (n,n) = alpha op(A) op(A)^T + beta C, one triangle; op(A) is n x k. */
static inline cublasStatus_t cublasSsyrk(cublasHandle_t h, cublasFillMode_t uplo,
                                         cublasOperation_t t, int n, int k,
                                         const float *alpha, const float *A, int lda,
                                         const float *beta, float *C, int ldc)
{
    if (lda < std::max(1, t ? k : n) || ldc < n) return CUBLAS_STATUS_INVALID_VALUE;
    const float a = *alpha, b = *beta;
    shim::issue(shim::of_blas(h), [=] {
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                if (uplo == CUBLAS_FILL_MODE_UPPER ? i > j : i < j) continue;
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += (double)A[t ? (size_t)i * lda + l : (size_t)l * lda + i] *
                           A[t ? (size_t)j * lda + l : (size_t)l * lda + j];
                float *c = &C[(size_t)j * ldc + i];
                *c = (float)(a * sum + (b == 0 ? 0 : (double)b * *c));
            }
    });
    return CUBLAS_STATUS_SUCCESS;
}

#endif
