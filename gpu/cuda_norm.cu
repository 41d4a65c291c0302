/* cuda: RMSNorm (Zhang and Sennrich 2019), of whole rows and of heads, and LayerNorm
 * (Ba et al. 2016), all of them n = (x - mean) rstd, y = n gain + shift, with mean and
 * shift 0 in RMSNorm:
 *   dx = rstd (dy gain - mean_i(dy gain) - n mean_i(dy gain n)), the middle term only
 * in LayerNorm; dgain = sum of dy n, dshift = sum of dy over rows. One warp a row.
 * Bytes an element: 2 reals forward, 4 (heads: 3) backward; at 4.8 TB/s, 32768 rows of
 * 576 in bf16: 16 and 31 us. Sums over rows: each warp keeps its own in shared memory,
 * a block adds those of its warps, a second kernel those of the blocks, always in one
 * order. */
#include "gpu/cuda_real.cuh"

enum { FULL = 4 }; /* blocks of norm_back_kernel that fill a multiprocessor */

/* Row k of d elements starts at (k / heads) ld + (k % heads) d. */
struct shape {
    int rows, heads, d, ld;
};

static __device__ inline size_t row_at(const struct shape &s, size_t k)
{
    return k / (size_t)s.heads * (size_t)s.ld + k % (size_t)s.heads * (size_t)s.d;
}

template <class R, int N>
static __device__ inline float row_mean(const struct shape &s, const R *x, float center,
                                        bool squared)
{
    float sum = 0, v[N];
    for (int c = pl_lane() * N; c < s.d; c += PL_WARP * N) {
        pl_get<N>(x + c, v);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += squared ? (v[i] - center) * (v[i] - center) : v[i];
    }
    return pl_warp_sum(sum) / (float)s.d;
}

/* mean NULL: RMSNorm. */
template <class R, int N>
static __global__ void norm_kernel(struct shape s, float eps, const R *x,
                                   const float *gain, const float *shift, R *y,
                                   float *mean, float *rstd)
{
    size_t r = pl_row(), at = row_at(s, r);
    float v[N], g[N], b[N] = {};
    if (r >= (size_t)s.rows) return;
    x += at;
    y += at;
    float center = mean ? row_mean<R, N>(s, x, 0, false) : 0;
    float scale = 1 / sqrtf(row_mean<R, N>(s, x, center, true) + eps);
    for (int c = pl_lane() * N; c < s.d; c += PL_WARP * N) {
        pl_get<N>(x + c, v);
        pl_get<N>(gain + c, g);
        if (shift) pl_get<N>(shift + c, b);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = (v[i] - center) * scale * g[i] + b[i];
        pl_put<N>(y + c, v);
    }
    if (pl_lane()) return;
    if (mean) mean[r] = center;
    rstd[r] = scale;
}

/* Both sums of a row over its columns, divided by d. */
template <class R, int N>
static __device__ inline void row_sums(const struct shape &s, const R *x, const R *dy,
                                       const float *gain, float center, float scale,
                                       float *plain, float *along)
{
    float v[N], e[N], g[N], sum = 0, weighed = 0;
    for (int c = pl_lane() * N; c < s.d; c += PL_WARP * N) {
        pl_get<N>(x + c, v);
        pl_get<N>(dy + c, e);
        pl_get<N>(gain + c, g);
#pragma unroll
        for (int i = 0; i < N; i++) {
            sum += e[i] * g[i];
            weighed += e[i] * g[i] * ((v[i] - center) * scale);
        }
    }
    *along = pl_warp_sum(weighed) / (float)s.d;
    *plain = pl_warp_sum(sum) / (float)s.d;
}

/* Block b does rows b warps + w, .. + blocks warps, ...; dx is added to, or overwritten
 * when it is dy. partial (blocks, columns): the block's sums for gain and, with mean,
 * shift. */
template <class R, int N>
static __global__ void __launch_bounds__(PL_BLOCK, FULL)
    norm_back_kernel(struct shape s, const R *x, const float *gain, const float *mean,
                     const float *rstd, const R *dy, R *dx, float *partial)
{
    PL_SHARED(float, sums); /* (warps, columns): rows of them are aligned as x's */
    const int warps = (int)blockDim.x / PL_WARP, warp = pl_warp();
    const int columns = mean ? 2 * s.d : s.d;
    float *own = sums + warp * columns;
    for (int c = pl_lane(); c < columns; c += PL_WARP) own[c] = 0;
    __syncwarp();
    for (int r = (int)blockIdx.x * warps + warp; r < s.rows;
         r += (int)gridDim.x * warps) {
        const size_t at = row_at(s, (size_t)r);
        float scale = rstd[r], center = mean ? mean[r] : 0, plain, along;
        float v[N], e[N], g[N], sum[N], old[N] = {};
        row_sums<R, N>(s, x + at, dy + at, gain, center, scale, &plain, &along);
        if (!mean) plain = 0;
        for (int c = pl_lane() * N; c < s.d; c += PL_WARP * N) {
            pl_get<N>(x + at + c, v);
            pl_get<N>(dy + at + c, e);
            pl_get<N>(gain + c, g);
            pl_get<N>(own + c, sum);
#pragma unroll
            for (int i = 0; i < N; i++) {
                v[i] = (v[i] - center) * scale;
                sum[i] += e[i] * v[i];
            }
            pl_put<N>(own + c, sum);
            if (mean) {
                pl_get<N>(own + s.d + c, sum);
#pragma unroll
                for (int i = 0; i < N; i++) sum[i] += e[i];
                pl_put<N>(own + s.d + c, sum);
            }
            if (dx != dy) pl_get<N>(dx + at + c, old); /* else 0 */
#pragma unroll
            for (int i = 0; i < N; i++)
                v[i] = old[i] + scale * (e[i] * g[i] - plain - v[i] * along);
            pl_put<N>(dx + at + c, v);
        }
    }
    __syncthreads();
    for (int c = (int)threadIdx.x; c < columns; c += (int)blockDim.x) {
        double sum = 0;
        for (int w = 0; w < warps; w++) sum += sums[w * columns + c];
        partial[(size_t)blockIdx.x * (size_t)columns + (size_t)c] = (float)sum;
    }
}

/* A narrow head leaves no lane idle when a lane takes two elements. */
enum { NARROW = 2 };
#define CHOOSE(R, kernel, s, wide)                           \
    (!(wide)                             ? kernel<R, 1>      \
     : (s).d < PL_WARP / 2 * pl_width<R> ? kernel<R, NARROW> \
                                         : kernel<R, pl_width<R>>)

template <class R>
static int norm(struct shape s, float eps, const float *x, const float *gain,
                const float *shift, float *y, float *mean, float *rstd)
{
    if (!s.rows || !s.d) return 0;
    bool wide = pl_wide<R>(s.d, x, y, gain, shift) && pl_wide<R>(s.ld);
    auto *kernel = CHOOSE(R, norm_kernel, s, wide);
    PL_LAUNCH(kernel, pl_row_blocks((size_t)s.rows), PL_BLOCK, 0, s, eps, (const R *)x,
              gain, shift, (R *)y, mean, rstd);
    return pl_cuda_launched("norm");
}

template <class R>
static int norm_back(struct shape s, const float *x, const float *gain,
                     const float *mean, const float *rstd, const float *dy, float *dx,
                     float *dgain, float *dshift)
{
    enum { SHARED = 200 << 10 }; /* of a multiprocessor */
    const size_t columns = (size_t)s.d * (mean ? 2 : 1),
                 bytes = columns * sizeof(float);
    if (!s.rows || !s.d) return 0;
    if (bytes > SHARED)
        return pl_cuda.host->fail(PL_EUNSUP, "device cuda: norm of rows of %d", s.d);
    int warps = PL_ROWS, beside = FULL;
    while ((size_t)warps * bytes > SHARED) warps /= 2;
    while (beside > 1 && (size_t)(beside * warps) * bytes > SHARED) beside--;
    int blocks = (s.rows + warps - 1) / warps;
    if (blocks > beside * PL_PROCESSORS) blocks = beside * PL_PROCESSORS;
    bool wide = pl_wide<R>(s.d, x, dy, dx, gain) && pl_wide<R>(s.ld);
    auto *kernel = CHOOSE(R, norm_back_kernel, s, wide);
    float *partial;
    int rc = pl_cuda_scratch((size_t)blocks * bytes, (void **)&partial);
    if (!rc)
        rc = pl_cuda_shared((const void *)kernel, (size_t)warps * bytes, "norm_back");
    if (rc) return rc;
    PL_LAUNCH(kernel, blocks, warps * PL_WARP, (size_t)warps * bytes, s, (const R *)x,
              gain, mean, rstd, (const R *)dy, (R *)dx, partial);
    rc = pl_cuda_launched("norm_back");
    if (rc) return rc;
    return pl_cuda_sum_columns(blocks, columns, partial, (size_t)s.d, 1, 1, dgain,
                               dshift);
}

template <class R>
static int rmsnorm(int rows, int d, float eps, const float *x, const float *gain,
                   float *y, float *rstd)
{
    return norm<R>({rows, 1, d, d}, eps, x, gain, NULL, y, NULL, rstd);
}

template <class R>
static int rmsnorm_back(int rows, int d, const float *x, const float *gain,
                        const float *rstd, const float *dy, float *dx, float *dgain)
{
    return norm_back<R>({rows, 1, d, d}, x, gain, NULL, rstd, dy, dx, dgain, NULL);
}

template <class R>
static int layernorm(int rows, int d, float eps, const float *x, const float *gain,
                     const float *shift, float *y, float *mean, float *rstd)
{
    return norm<R>({rows, 1, d, d}, eps, x, gain, shift, y, mean, rstd);
}

template <class R>
static int layernorm_back(int rows, int d, const float *x, const float *gain,
                          const float *mean, const float *rstd, const float *dy,
                          float *dx, float *dgain, float *dshift)
{
    return norm_back<R>({rows, 1, d, d}, x, gain, mean, rstd, dy, dx, dgain, dshift);
}

/* A row of s.d elements, s.ld apart, to a warp. */
template <class R, int N>
static __global__ void copy_kernel(struct shape s, const R *x, R *y)
{
    const size_t r = pl_row(), at = row_at(s, r);
    float v[N];
    if (r >= (size_t)s.rows) return;
    for (int c = pl_lane() * N; c < s.d; c += PL_WARP * N) {
        pl_get<N>(x + at + c, v);
        pl_put<N>(y + at + c, v);
    }
}

template <class R>
static int headnorm(int rows, int n_heads, int d, int more, int ld, float eps,
                    const float *x, const float *gain, float *y, float *rstd)
{
    const struct shape heads = {rows * n_heads, n_heads, d, ld};
    const struct shape rest = {rows, 1, more, ld};
    const R *from = (const R *)x + n_heads * d;
    R *to = (R *)y + n_heads * d;
    int rc = norm<R>(heads, eps, x, gain, NULL, y, NULL, rstd);
    if (rc || !rows || !more) return rc;
    PL_LAUNCH_WIDE(R, pl_wide<R>(more, from, to) && pl_wide<R>(ld), copy_kernel,
                   pl_row_blocks((size_t)rows), PL_BLOCK, 0, rest, from, to);
    return pl_cuda_launched("headnorm");
}

template <class R>
static int headnorm_back(int rows, int n_heads, int d, int ld, const float *x,
                         const float *gain, const float *rstd, float *g, float *dgain)
{
    return norm_back<R>({rows * n_heads, n_heads, d, ld}, x, gain, NULL, rstd, g, g,
                        dgain, NULL);
}

PL_OPS_NORM(PL_CUDA_BOTH, )
