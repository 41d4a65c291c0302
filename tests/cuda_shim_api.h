/* Of tests/cuda_shim.h, the calls of the CUDA runtime that gpu/cuda*.cu make. Included
 * by it only. */
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

#endif
