/* Of tests/cuda_shim.h, the calls of the CUDA runtime that gpu/cuda*.cu make. Included
 * by it only. */
#ifndef TESTS_CUDA_SHIM_API_H
#define TESTS_CUDA_SHIM_API_H

#include <unistd.h>

/* The CUDA runtime, as far as gpu/cuda*.cu call it: device memory is host memory. */
enum cudaError_t {
    cudaSuccess,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureIsolation = 905
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct cudaFuncAttributes {
    int binaryVersion;
};
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};

namespace shim
{
/* A call that CUDA forbids while this thread captures: it fails, and so does the end of
 * the capture. */
inline bool forbidden()
{
    if (capture.into) capture.broken = true;
    return capture.into != nullptr;
}
} /* namespace shim */

static inline cudaError_t cudaMalloc(void **p, size_t n)
{
    *p = nullptr;
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    if (!(n >> 36)) *p = shim::device_alloc(n); /* a device of 64 GiB */
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
/* Waits for all that was issued. */
static inline cudaError_t cudaFree(void *p)
{
    if (!p) return cudaSuccess;
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    shim::run_all();
    shim::device_free(p);
    return cudaSuccess;
}
typedef shim::stream *cudaStream_t;
typedef shim::event *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    *s = shim::new_stream();
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    shim::run_to(s, s->issued);
    s->gone = true;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    shim::run_to(s, s->issued);
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    *e = new shim::event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    if (shim::capture.of == s && shim::forbidden())
        return cudaErrorStreamCaptureUnsupported;
    *e = {s, s->issued};
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    if (e->of) shim::run_to(e->of, e->at);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    if (shim::capture.of == s && shim::forbidden())
        return cudaErrorStreamCaptureIsolation;
    shim::event was = *e;
    if (was.of) shim::issue(s, [=] { shim::run_to(was.of, was.at); });
    return cudaSuccess;
}
static inline cudaError_t cudaMallocHost(void **p, size_t n)
{
    *p = nullptr;
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    *p = malloc(n);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFreeHost(void *p)
{
    if (!p) return cudaSuccess;
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    shim::run_all();
    free(p);
    return cudaSuccess;
}
/* Memory of the host is no part of a capture: a graph would read it again. */
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n,
                                          cudaMemcpyKind kind, cudaStream_t s)
{
    if (n && (shim::on_device(to) != (kind != cudaMemcpyDeviceToHost) ||
              shim::on_device(from) != (kind != cudaMemcpyHostToDevice)))
        return cudaErrorInvalidValue;
    if (kind != cudaMemcpyDeviceToDevice && shim::capture.of == s && shim::forbidden())
        return cudaErrorStreamCaptureUnsupported;
    shim::issue(s, [=] {
        if (n) memcpy(to, from, n);
    });
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s)
{
    if (n && !shim::on_device(p)) return cudaErrorInvalidValue;
    shim::issue(s, [=] {
        if (n) memset(p, value, n);
    });
    return cudaSuccess;
}
/* Graphs: the work captured, with its arguments. */
typedef shim::graph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    shim::capture.into = new shim::graph;
    shim::capture.of = s;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    *g = nullptr;
    if (!shim::capture.into || shim::capture.of != s) return cudaErrorInvalidValue;
    const bool broken = shim::capture.broken;
    if (broken)
        delete shim::capture.into;
    else
        *g = shim::capture.into;
    shim::capture = {};
    return broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
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
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s)
{
    if (shim::forbidden()) return cudaErrorStreamCaptureUnsupported;
    for (const std::function<void()> &f : e->work) shim::issue(s, f);
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
    const int arch = getenv("SHIM_OLD_GPU") ? atoi(getenv("SHIM_OLD_GPU")) : 0;
    *p = {"CPU fibers", 0, arch / 10, arch % 10, 1};
    return cudaSuccess;
}
/* A block has 227 KiB on sm_90, SHIM_SHARED_KIB on another. */
static inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute,
                                               int bytes)
{
    const char *given = getenv("SHIM_SHARED_KIB");
    const int most = (given ? atoi(given) : 227) << 10;
    if (bytes < 0 || bytes > most) return cudaErrorInvalidValue;
    shim::shared_allowed[kernel] = (size_t)bytes;
    return cudaSuccess;
}
/* SHIM_OLD_GPU: one that the code was not compiled for. */
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
    a->binaryVersion = 90;
    return getenv("SHIM_OLD_GPU") ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess                         ? "no error"
           : e == cudaErrorInvalidValue             ? "invalid argument"
           : e == cudaErrorMemoryAllocation         ? "out of memory"
           : e == cudaErrorInitializationError      ? "initialization error"
           : e == cudaErrorNoKernelImageForDevice   ? "no kernel image is available"
           : e == cudaErrorStreamCaptureUnsupported ? "not permitted when capturing"
                                                    : "capture failed";
}
static inline const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaSuccess                 ? "cudaSuccess"
           : e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                            : "another error of CUDA";
}

#endif
