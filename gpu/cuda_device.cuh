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
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(name) \
    ((void)(name)) /* a toolkit without it: a profile has no names */
#define nvtxRangePop() ((void)0)
#endif
#define PL_LAUNCH(kernel, grid, block, shared_bytes, ...) \
    kernel<<<grid, block, shared_bytes, pl_cuda.stream>>>(__VA_ARGS__)
#define PL_SHARED(type, name) extern __shared__ __align__(16) type name[]
enum {
    PL_PROCESSORS = 132
}; /* of an H200: into how many blocks sums of rows are cut */
#else
enum { PL_PROCESSORS = 2 }; /* so few that the rows of small tests need turns */
#endif

#pragma GCC visibility push(hidden)

enum {
    PL_WARP = 32,
    PL_BLOCK = 256,     /* threads of every block */
    PL_PARTIALS = 1024, /* most blocks of a reduction */
    PL_BLOCKS_MAX = 8192
};

enum { PL_CUBLAS_BYTES = 32 << 20 }; /* the workspace that cuBLAS asks for on Hopper */

/* Device memory that grows when a larger shape comes. */
struct pl_kept {
    void *at;
    size_t bytes;
};

/* The one state of the device, owned by gpu/cuda.cu, valid between open and close. */
struct pl_cuda {
    const struct pl_plugin_host *host;
    cublasHandle_t blas;
    cublasLtHandle_t lt;
    cudaStream_t stream;    /* of every kernel, product and copy */
    void *workspace;        /* device: of cuBLAS */
    double *partial;        /* device: PL_PARTIALS sums of blocks, then their sum */
    struct pl_kept scratch; /* of one operation */
    struct pl_kept weight;  /* a product's weights in bf16 */
};
extern struct pl_cuda pl_cuda;

/* In fp32; pl_cuda16_: where activations are __nv_bfloat16. */
PL_DEVICE_OPS(pl_cuda_)
PL_OPS_PRODUCT(PL_OP_DECLARE, pl_cuda16_)
PL_OPS_REAL(PL_OP_DECLARE, pl_cuda16_)

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
void pl_cuda_release(void *ptr); /* the graphs are forgotten */
int pl_cuda_download(void *dst, const void *src, size_t bytes);
int pl_cuda_copy(void *dst, const void *src, size_t bytes);
/* At least so many bytes of kept memory. Growing waits for the device and makes it
 * forget its graphs. */
int pl_cuda_keep(struct pl_kept *kept, size_t bytes);
/* The operation's scratch: until the next operation. */
int pl_cuda_scratch(size_t bytes, void **at);
/* Let a kernel have this much dynamic shared memory: more than 48 KiB must be asked
 * for. Errors: PL_EUNSUP: more than the GPU has. */
int pl_cuda_shared(const void *kernel, size_t bytes, const char *what);

/* cuda_rows.cu: first[c] = a (sum of partial (parts, columns), in order) + b first[c],
 * from column split on second[c - split]; second NULL: those are dropped. b = 0 reads
 * neither. */
int pl_cuda_sum_columns(int parts, size_t columns, const float *partial, size_t split,
                        float a, float b, float *first, float *second);
/* squares() along PL_COLUMN. */
int pl_cuda_column_squares(int m, int n, float a, const float *x, float b, float *out);

/* cuda_sort.cu: *order, in the room of pl_cuda_sort_bytes(n) bytes: 0 .. n - 1 sorted
 * by the lower `bits` of their keys, equal ones by number. */
size_t pl_cuda_sort_bytes(int n);
int pl_cuda_sort(int n, int bits, const int32_t *key, void *room,
                 const int32_t **order);

/* cuda_product.cu, cuda_rope.cu: what they keep. */
void pl_cuda_product_close(void);
void pl_cuda_rope_close(void);

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

/* Of the block. */
static __device__ inline int pl_warp(void)
{
    return (int)threadIdx.x / PL_WARP;
}

static __device__ inline int pl_lane(void)
{
    return (int)threadIdx.x % PL_WARP;
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

/* Over a block of whole warps, all of which call it; every thread gets the result. */
static __device__ inline double pl_block_sum(double value)
{
    __shared__ double part[PL_WARP];
    value = pl_warp_sum(value);
    if (pl_lane() == 0) part[pl_warp()] = value;
    __syncthreads();
    value = 0;
    for (int i = 0; i < (int)blockDim.x / PL_WARP; i++) value += part[i];
    __syncthreads(); /* part may be written again */
    return value;
}

static __device__ inline float pl_block_max(float value)
{
    __shared__ float part[PL_WARP];
    value = pl_warp_max(value);
    if (pl_lane() == 0) part[pl_warp()] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < (int)blockDim.x / PL_WARP; i++) value = fmaxf(value, part[i]);
    __syncthreads();
    return value;
}

#pragma GCC visibility pop
#endif
