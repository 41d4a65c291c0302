/* What the files of the device `cuda` share: launching, error checks, reductions inside
 * a warp or a block. The same sources are compiled by nvcc for the GPU and, for tests,
 * by g++ with -DCUDA_SHIM -include tests/cuda_shim.h, where a block's threads are
 * fibers; so launches and dynamic shared memory go through the two macros below. */
#ifndef PL_GPU_CUDA_DEVICE_CUH
#define PL_GPU_CUDA_DEVICE_CUH

#include "base/err.h"
#include "gpu/cuda_plugin.h"
#include "gpu/ops.h"

#include <math.h>

#ifndef CUDA_SHIM
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#define PL_LAUNCH(kernel, grid, block, shared_bytes, ...) \
    kernel<<<grid, block, shared_bytes, pl_cuda.stream>>>(__VA_ARGS__)
#define PL_SHARED(type, name) extern __shared__ type name[]
#endif

#pragma GCC visibility push(hidden)

enum {
    PL_WARP = 32,
    PL_BLOCK = 256,     /* threads of every block */
    PL_PARTIALS = 1024, /* most blocks of a reduction */
    PL_BLOCKS_MAX = 8192
};

/* The one state of the device, owned by gpu/cuda.cu, valid between open and close. */
struct pl_cuda {
    const struct pl_plugin_host *host;
    cublasHandle_t blas;
    cudaStream_t stream; /* of every kernel, product and copy */
    void *workspace;     /* device: of cuBLAS */
    double *partial; /* device: PL_PARTIALS sums of blocks, then their sum */
};
extern struct pl_cuda pl_cuda;

PL_DEVICE_OPS(pl_cuda_)

/* Attention in bf16 on tensor cores, shapes and layout of the operation attention (lse
 * float); head_dim a multiple of 8, at most 128, best 64 or 128; arrays aligned to 16
 * bytes. dqkv may not be any of the others. Errors: PL_EUNSUP: a shape that
 * pl_cuda_flash_takes() refuses. */
bool pl_cuda_flash_takes(const struct pl_attention_shape *shape);
int pl_cuda_flash(const struct pl_attention_shape *shape, const __nv_bfloat16 *qkv,
                  __nv_bfloat16 *out, float *lse);
int pl_cuda_flash_back(const struct pl_attention_shape *shape, const __nv_bfloat16 *qkv,
                       const __nv_bfloat16 *out, const float *lse,
                       const __nv_bfloat16 *dout, __nv_bfloat16 *dqkv);

/* 0, or PL_EDEVICE with what and CUDA's text. */
int pl_cuda_check(cudaError_t status, const char *what);
/* The same for the kernel just launched; errors while it runs come with a later call.
 */
int pl_cuda_launched(const char *what);
/* *out = sum of partial[0..n), always in the same order; waits. */
int pl_cuda_sum_partials(int n, double *out);
/* *sum, device memory, += the same. */
int pl_cuda_add_partials(int n, double *sum);
int pl_cuda_download(void *dst, const void *src, size_t bytes);

/* cuda_stream.cu: members of struct pl_device, and what they own. */
int pl_cuda_prefetch(void *dst, const void *src, size_t bytes);
int pl_cuda_begin(const struct pl_span *span, bool *done);
int pl_cuda_end(void);
void pl_cuda_forget_spans(void);
void pl_cuda_stream_close(void);

/* Blocks for n threads, each of which strides over the whole range. */
static inline int pl_cuda_blocks(size_t n, int most)
{
    size_t blocks = (n + PL_BLOCK - 1) / PL_BLOCK;
    return blocks < (size_t)most ? (int)blocks : most;
}

static __device__ inline size_t pl_thread(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline size_t pl_threads(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

/* Butterflies: every lane gets the same sum, bit for bit. */
template <class T> static __device__ inline T pl_warp_sum(T value)
{
    for (int offset = PL_WARP / 2; offset; offset /= 2)
        value += __shfl_xor_sync(~0u, value, offset);
    return value;
}

static __device__ inline float pl_warp_max(float value)
{
    for (int offset = PL_WARP / 2; offset; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
    return value;
}

/* Over a block of PL_BLOCK threads, all of which call it; every thread gets the result.
 */
static __device__ inline double pl_block_sum(double value)
{
    __shared__ double part[PL_BLOCK / PL_WARP];
    value = pl_warp_sum(value);
    if (threadIdx.x % PL_WARP == 0) part[threadIdx.x / PL_WARP] = value;
    __syncthreads();
    value = 0;
    for (int i = 0; i < PL_BLOCK / PL_WARP; i++) value += part[i];
    __syncthreads(); /* part may be written again */
    return value;
}

static __device__ inline float pl_block_max(float value)
{
    __shared__ float part[PL_BLOCK / PL_WARP];
    value = pl_warp_max(value);
    if (threadIdx.x % PL_WARP == 0) part[threadIdx.x / PL_WARP] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < PL_BLOCK / PL_WARP; i++) value = fmaxf(value, part[i]);
    __syncthreads();
    return value;
}

#pragma GCC visibility pop
#endif
