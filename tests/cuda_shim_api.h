/* Of tests/cuda_shim.h, the host side: the calls of the CUDA runtime and of cuBLAS that
 * gpu/cuda*.cu make. Included by it only. */
#ifndef TESTS_CUDA_SHIM_API_H
#define TESTS_CUDA_SHIM_API_H

#include <unistd.h>

/* The CUDA runtime, as far as gpu/cuda*.cu call it: device memory is host memory. */
enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorStreamCaptureUnsupported = 900
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};
static inline cudaError_t cudaMalloc(void **p, size_t n)
{
    *p = n >> 36 ? nullptr : malloc(n);  /* a device of 64 GiB */
    if (*p) memset(*p, shim::POISON, n); /* fresh memory is not zero on a GPU either */
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}
/* Streams and events: work is done as it is issued, so that they order nothing. */
typedef struct shim_stream *cudaStream_t;
typedef struct shim_event *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    *s = (cudaStream_t)malloc(1);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    free(s);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return shim::capturing ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    *e = (cudaEvent_t)malloc(1);
    return cudaSuccess;
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    free(e);
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}
static inline cudaError_t cudaMallocHost(void **p, size_t n)
{
    *p = malloc(n);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n,
                                          cudaMemcpyKind, cudaStream_t)
{
    shim::issue([=] {
        if (n) memcpy(to, from, n);
    });
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t)
{
    shim::issue([=] {
        if (n) memset(p, value, n);
    });
    return cudaSuccess;
}
/* Graphs: the work captured, with its arguments. */
typedef shim::graph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    shim::capturing = new shim::graph;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *g)
{
    *g = shim::capturing;
    shim::capturing = nullptr;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t g,
                                               unsigned long long)
{
    *e = new shim::graph(*g);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e)
{
    delete e;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t)
{
    for (const std::function<void()> &f : e->work) f();
    return cudaSuccess;
}
static inline int nvtxRangePushA(const char *)
{
    return 0;
}
static inline int nvtxRangePop()
{
    return 0;
}
static inline cudaError_t cudaMemGetInfo(size_t *spare, size_t *total)
{
    *spare = *total = 0;
    return cudaSuccess;
}
/* A child of a process that has used CUDA cannot: as on a GPU, that is an error. */
static inline cudaError_t cudaGetDeviceCount(int *n)
{
    static pid_t user = 0;
    const char *text = getenv("SHIM_DEVICES");
    *n = text ? atoi(text) : 1;
    if (!user) user = getpid();
    return user == getpid() ? cudaSuccess : cudaErrorInitializationError;
}
static inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int *v)
{
    *v = 13000;
    return cudaSuccess;
}
static inline cudaError_t cudaRuntimeGetVersion(int *v)
{
    return cudaDriverGetVersion(v);
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = {"CPU fibers", 0, 0, 0, 1};
    return cudaSuccess;
}
static inline cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess                 ? "no error"
           : e == cudaErrorMemoryAllocation ? "out of memory"
                                            : "initialization error";
}
static inline const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaSuccess                 ? "cudaSuccess"
           : e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                            : "cudaErrorInitializationError";
}

/* cuBLAS: column-major, in the plainest way. */
typedef struct shim_blas *cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE = 7 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
static inline cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = (cublasHandle_t)malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasGetVersion(cublasHandle_t, int *version)
{
    *version = 0;
    return CUBLAS_STATUS_SUCCESS;
}
static inline const char *cublasGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS ? "success" : "an invalid value";
}
static inline cublasStatus_t cublasSgemm(cublasHandle_t, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const float *alpha, const float *A, int lda,
                                         const float *B, int ldb, const float *beta,
                                         float *C, int ldc)
{
    if (lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    const float a = *alpha, b = *beta;
    shim::issue([=] {
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += (double)A[ta ? (size_t)i * lda + l : (size_t)l * lda + i] *
                           B[tb ? (size_t)l * ldb + j : (size_t)j * ldb + l];
                float *c = &C[(size_t)j * ldc + i];
                *c = (float)(a * sum + (b == 0 ? 0 : (double)b * *c));
            }
    });
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
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER };
/* C (n,n) = alpha op(A) op(A)^T + beta C, one triangle; op(A) is n x k. */
static inline cublasStatus_t cublasSsyrk(cublasHandle_t, cublasFillMode_t uplo,
                                         cublasOperation_t t, int n, int k,
                                         const float *alpha, const float *A, int lda,
                                         const float *beta, float *C, int ldc)
{
    if (lda < std::max(1, t ? k : n) || ldc < n) return CUBLAS_STATUS_INVALID_VALUE;
    const float a = *alpha, b = *beta;
    shim::issue([=] {
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
