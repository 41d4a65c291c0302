/* Activations of the device `cuda`: R is float or __nv_bfloat16, arithmetic is in
 * float. A kernel <R, N> reads and writes N neighbours at once: the 16 bytes of an
 * access where rows and pointers allow it, one element elsewhere. Most kernels give a
 * row to a warp, whose lane l has the elements l N .. l N + N - 1 of each 32 N. */
#ifndef PL_GPU_CUDA_REAL_CUH
#define PL_GPU_CUDA_REAL_CUH

#include "gpu/cuda_device.cuh"

enum { PL_ROWS = PL_BLOCK / PL_WARP }; /* rows of a block: one for each warp */

template <int N, class T>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) pl_pack {
    T v[N];
};

static __device__ inline float pl_float(float x)
{
    return x;
}
static __device__ inline float pl_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline void pl_set(float *x, float value)
{
    *x = value;
}
static __device__ inline void pl_set(__nv_bfloat16 *x, float value)
{
    *x = __float2bfloat16(value); /* to nearest even */
}

template <int N, class T> static __device__ inline void pl_get(const T *x, float *v)
{
    pl_pack<N, T> pack = *(const pl_pack<N, T> *)x;
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = pl_float(pack.v[i]);
}

template <int N, class T> static __device__ inline void pl_put(T *x, const float *v)
{
    pl_pack<N, T> pack;
#pragma unroll
    for (int i = 0; i < N; i++) pl_set(&pack.v[i], v[i]);
    *(pl_pack<N, T> *)x = pack;
}

/* e^x for a result that is rounded to R: 2 units of 2^-23 and |x| more where that is
 * bf16 (the GPU's own exponential), expf otherwise. */
template <class R> static __device__ inline float pl_exp(float x)
{
    return sizeof(R) == 2 ? __expf(x) : expf(x);
}

static __device__ inline size_t pl_row(void)
{
    return (size_t)blockIdx.x * PL_ROWS + (size_t)pl_warp();
}

/* Where a thread takes N neighbours of a row, and blocks go over rows and these. */
template <int N> static __device__ inline size_t pl_column(void)
{
    return ((size_t)blockIdx.y * PL_BLOCK + threadIdx.x) * N;
}

static inline dim3 pl_column_grid(int rows, int threads)
{
    return dim3((unsigned)rows, (unsigned)((threads + PL_BLOCK - 1) / PL_BLOCK));
}

/* Blocks for a warp a row. */
static inline unsigned pl_row_blocks(size_t rows)
{
    return (unsigned)((rows + PL_ROWS - 1) / PL_ROWS);
}

template <class R> constexpr int pl_width = 16 / sizeof(R);

/* May rows of n elements (n every distance between them too) be read 16 bytes at a
 * time? */
template <class R, class... P> static inline bool pl_wide(int n, P... p)
{
    return n % pl_width<R> == 0 && (... && ((uintptr_t)p % 16 == 0));
}

/* kernel<R, width> or kernel<R, 1>. */
#define PL_LAUNCH_WIDE(R, wide, kernel, grid, block, shared, ...)      \
    do {                                                               \
        auto *chosen = (wide) ? kernel<R, pl_width<R>> : kernel<R, 1>; \
        PL_LAUNCH(chosen, grid, block, shared, __VA_ARGS__);           \
    } while (0)

/* Of a group of operations (gpu/ops.h) that are templates NAME<R>: the entry points. */
#define PL_CUDA_BOTH(p, name, params, args) \
    int pl_cuda_##name params               \
    {                                       \
        return ::name<float> args;          \
    }                                       \
    int pl_cuda16_##name params             \
    {                                       \
        return ::name<__nv_bfloat16> args;  \
    }

#endif
