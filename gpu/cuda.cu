/* The device `cuda`: one NVIDIA GPU in three precisions, calls in the order of one
 * stream. This file: opening, memory, the tables, and the door of the shared object. */
#include "gpu/cuda_device.cuh"

#include <stdio.h>

struct pl_cuda pl_cuda;

int pl_cuda_check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess) return 0;
    cudaGetLastError(); /* forget it: the next call must not report it again */
    return pl_cuda.host->fail(PL_EDEVICE, "device cuda: %s: %s (%s)", what,
                              cudaGetErrorString(status), cudaGetErrorName(status));
}

int pl_cuda_launched(const char *what)
{
    return pl_cuda_check(cudaGetLastError(), what);
}

/* "no device" is the user's machine, not our failure: PL_ENODEV, and both versions. */
static int no_device(const char *why)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaGetLastError();
    if (!driver)
        return pl_cuda.host->fail(
            PL_ENODEV, "device cuda: %s (no NVIDIA driver; built for CUDA %d.%d)", why,
            runtime / 1000, runtime % 1000 / 10);
    return pl_cuda.host->fail(
        PL_ENODEV, "device cuda: %s (driver for CUDA %d.%d, built for CUDA %d.%d)", why,
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

static void cuda_close(void)
{
    const struct pl_plugin_host *host = pl_cuda.host;
    pl_cuda_stream_close();
    pl_cuda_product_close();
    pl_cuda_rope_close();
    if (pl_cuda.lt) cublasLtDestroy(pl_cuda.lt);
    if (pl_cuda.blas) cublasDestroy(pl_cuda.blas);
    if (pl_cuda.stream) cudaStreamDestroy(pl_cuda.stream);
    cudaFree(pl_cuda.partial);
    cudaFree(pl_cuda.workspace);
    cudaFree(pl_cuda.scratch.at);
    cudaFree(pl_cuda.weight.at);
    pl_cuda = {};
    pl_cuda.host = host;
}

/* cuBLAS gets its workspace from us: what it takes by itself inside a graph stays with
 * the graph. */
static int open_stream(void)
{
    int rc = pl_cuda_check(
        cudaStreamCreateWithFlags(&pl_cuda.stream, cudaStreamNonBlocking), "stream");
    if (!rc)
        rc = pl_cuda_check(
            cudaMalloc((void **)&pl_cuda.partial, (PL_PARTIALS + 1) * sizeof(double)),
            "scratch of reductions");
    if (!rc)
        rc = pl_cuda_check(cudaMalloc(&pl_cuda.workspace, PL_CUBLAS_BYTES),
                           "workspace of cuBLAS");
    if (rc) return rc;
    cublasStatus_t blas = cublasSetStream(pl_cuda.blas, pl_cuda.stream);
    if (blas == CUBLAS_STATUS_SUCCESS)
        blas = cublasSetWorkspace(pl_cuda.blas, pl_cuda.workspace, PL_CUBLAS_BYTES);
    if (blas == CUBLAS_STATUS_SUCCESS) blas = cublasLtCreate(&pl_cuda.lt);
    if (blas == CUBLAS_STATUS_SUCCESS) return 0;
    return no_device(cublasGetStatusString(blas));
}

/* Code for this GPU, or PTX that its driver compiles, is in the shared object. */
static __global__ void nothing_kernel()
{
}

static int check_code(void)
{
    struct cudaFuncAttributes code;
    struct cudaDeviceProp gpu;
    char why[160];
    cudaError_t status = cudaFuncGetAttributes(&code, (const void *)nothing_kernel);
    if (status == cudaSuccess) return 0;
    const char *text = cudaGetErrorString(status);
    if (status != cudaErrorNoKernelImageForDevice ||
        cudaGetDeviceProperties(&gpu, 0) != cudaSuccess)
        return no_device(text);
    snprintf(why, sizeof why,
             "pipelag-cuda.so has no code for sm_%d%d; configure CUDA_ARCH=sm_%d%d "
             "and build again",
             gpu.major, gpu.minor, gpu.major, gpu.minor);
    return no_device(why);
}

static int cuda_open(void)
{
    if (pl_cuda.blas) return 0;
    int devices = 0;
    cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess) return no_device(cudaGetErrorString(status));
    if (!devices) return no_device("no GPU");
    status = cudaSetDevice(0);
    if (status == cudaSuccess) status = cudaFree(NULL); /* makes the context */
    if (status != cudaSuccess) return no_device(cudaGetErrorString(status));
    int rc = check_code();
    if (rc) return rc;
    cublasStatus_t blas = cublasCreate(&pl_cuda.blas);
    if (blas != CUBLAS_STATUS_SUCCESS) {
        pl_cuda.blas = NULL;
        return no_device(cublasGetStatusString(blas));
    }
    rc = open_stream();
    if (rc) cuda_close();
    return rc;
}

static void describe(const char *precision, char *text, size_t n)
{
    struct cudaDeviceProp gpu;
    int driver = 0, runtime = 0, blas = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cublasGetVersion(pl_cuda.blas, &blas);
    if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) {
        cudaGetLastError();
        snprintf(gpu.name, sizeof gpu.name, "unknown GPU");
        gpu.totalGlobalMem = 0;
        gpu.major = gpu.minor = gpu.multiProcessorCount = 0;
    }
    snprintf(text, n,
             "cuda: %s (sm_%d%d, %d multiprocessors, %.0f GiB), driver for CUDA %d.%d, "
             "runtime %d.%d, cuBLAS %d, %s",
             gpu.name, gpu.major, gpu.minor, gpu.multiProcessorCount,
             (double)gpu.totalGlobalMem / (1 << 30), driver / 1000, driver % 1000 / 10,
             runtime / 1000, runtime % 1000 / 10, blas, precision);
}

#define DESCRIBE(precision)                                \
    static void describe_##precision(char *text, size_t n) \
    {                                                      \
        describe(#precision, text, n);                     \
    }
DESCRIBE(fp32)
DESCRIBE(tf32)
DESCRIBE(bf16)

/* Wait: the caller's memory is free, or set, on return. */
static int ordered(cudaError_t status, const char *what)
{
    if (status == cudaSuccess) status = cudaStreamSynchronize(pl_cuda.stream);
    return pl_cuda_check(status, what);
}

/* Zero on return: data sent ahead come on another stream. */
static int cuda_alloc(size_t bytes, void **ptr)
{
    *ptr = NULL;
    void *block = NULL;
    cudaError_t status = cudaMalloc(&block, bytes ? bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
        size_t spare = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&spare, &total);
        return pl_cuda.host->fail(
            PL_EMEM,
            "device cuda: %zu bytes asked, %zu of %zu free: lower train.batch or "
            "train.seq, take more schedule.microbatches, a smaller model or "
            "train.precision bf16",
            bytes, spare, total);
    }
    int rc = pl_cuda_check(status, "allocation");
    if (rc) return rc;
    rc = ordered(cudaMemsetAsync(block, 0, bytes ? bytes : 1, pl_cuda.stream),
                 "clearing memory");
    if (rc) {
        cudaFree(block);
        return rc;
    }
    *ptr = block;
    return 0;
}

void pl_cuda_release(void *ptr)
{
    if (ptr) pl_cuda_forget_spans(); /* the address may come again with other meaning */
    cudaFree(ptr);
}

static int cuda_upload(void *dst, const void *src, size_t bytes)
{
    return ordered(
        cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, pl_cuda.stream),
        "upload");
}

int pl_cuda_download(void *dst, const void *src, size_t bytes)
{
    return ordered(
        cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, pl_cuda.stream),
        "download");
}

int pl_cuda_copy(void *dst, const void *src, size_t bytes)
{
    return pl_cuda_check(
        cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, pl_cuda.stream),
        "copy");
}

static int cuda_zero(void *dst, size_t bytes)
{
    return pl_cuda_check(cudaMemsetAsync(dst, 0, bytes, pl_cuda.stream),
                         "clearing memory");
}

static int cuda_wait(void)
{
    return ordered(cudaSuccess, "waiting");
}

int pl_cuda_keep(struct pl_kept *kept, size_t bytes)
{
    if (kept->bytes >= bytes) return 0;
    pl_cuda_release(kept->at);
    *kept = {};
    int rc = cuda_alloc(bytes, &kept->at);
    if (!rc) kept->bytes = bytes;
    return rc;
}

int pl_cuda_scratch(size_t bytes, void **at)
{
    int rc = pl_cuda_keep(&pl_cuda.scratch, bytes);
    *at = pl_cuda.scratch.at;
    return rc;
}

int pl_cuda_shared(const void *kernel, size_t bytes, const char *what)
{
    cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (status != cudaErrorInvalidValue) return pl_cuda_check(status, what);
    cudaGetLastError();
    return pl_cuda.host->fail(
        PL_EUNSUP,
        "device cuda: %s needs %zu KiB of shared memory a block, more than this GPU "
        "has (A100: 163, H100: 227)",
        what, (bytes + 1023) >> 10);
}

static struct pl_device device_tf32, device_bf16;
static const struct pl_device device = {.name = "cuda",
                                        .summary =
                                            "one NVIDIA GPU: cuBLAS and own kernels",
                                        .host_memory = false,
                                        .real_bytes = sizeof(float),
                                        .precision = "fp32",
                                        .twin = &device_tf32,
                                        .open = cuda_open,
                                        .close = cuda_close,
                                        .describe = describe_fp32,
                                        .alloc = cuda_alloc,
                                        .release = pl_cuda_release,
                                        .upload = cuda_upload,
                                        .download = pl_cuda_download,
                                        .copy = pl_cuda_copy,
                                        .zero = cuda_zero,
                                        .wait = cuda_wait,
                                        .prefetch = pl_cuda_prefetch,
                                        .begin = pl_cuda_begin,
                                        .end = pl_cuda_end,
                                        PL_DEVICE_OP_TABLE(pl_cuda_)};

/* An operation with the factors of its products in tf32. */
template <auto OP> struct in_tf32;
template <class... P, int (*OP)(P...)> struct in_tf32<OP> {
    static int call(P... args)
    {
        cublasSetMathMode(pl_cuda.blas, CUBLAS_TF32_TENSOR_OP_MATH);
        int rc = OP(args...);
        cublasSetMathMode(pl_cuda.blas, CUBLAS_DEFAULT_MATH);
        return rc;
    }
};

static void make_twins(void)
{
    device_tf32 = device;
    device_tf32.precision = "tf32";
    device_tf32.twin = &device_bf16;
    device_tf32.describe = describe_tf32;
    device_tf32.gemm = in_tf32<pl_cuda_gemm>::call;
    device_tf32.gemm_batch = in_tf32<pl_cuda_gemm_batch>::call;
    device_tf32.syrk_batch = in_tf32<pl_cuda_syrk_batch>::call;
    device_tf32.product = in_tf32<pl_cuda_product>::call;
    device_bf16 = device;
    device_bf16.real_bytes = sizeof(__nv_bfloat16);
    device_bf16.precision = "bf16";
    device_bf16.twin = NULL;
    device_bf16.describe = describe_bf16;
#define BF16(p, name, params, args) device_bf16.name = pl_cuda16_##name;
    PL_OPS_PRODUCT(BF16, )
    PL_OPS_REAL(BF16, )
}

extern "C" __attribute__((visibility("default"))) unsigned
pl_plugin(const struct pl_plugin_host *host, const struct pl_device **found)
{
    if (host->abi == PL_PLUGIN_ABI) {
        pl_cuda.host = host;
        make_twins();
        *found = &device;
    }
    return PL_PLUGIN_ABI;
}
