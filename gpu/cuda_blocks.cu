/* cuda: LayerNorm, GELU, rows that are added to rows, RMSNorm of heads; formulas as in
 * ref_blocks.c. */
#include "gpu/cuda_device.cuh"

enum { ROWS = PL_BLOCK / PL_WARP }; /* rows of a block: one for each warp */

static int row_blocks(int rows)
{
    return (rows + ROWS - 1) / ROWS;
}

static int column_blocks(int d)
{
    return (d + PL_WARP - 1) / PL_WARP;
}

/* One warp a row. */
static __global__ void layernorm_kernel(int rows, int d, float eps, const float *x,
                                        const float *gain, const float *shift, float *y,
                                        float *mean, float *rstd)
{
    int r = (int)(blockIdx.x * ROWS + threadIdx.x / PL_WARP);
    int lane = (int)threadIdx.x % PL_WARP;
    if (r >= rows) return;
    x += (size_t)r * (size_t)d;
    y += (size_t)r * (size_t)d;
    float sum = 0, square = 0;
    for (int i = lane; i < d; i += PL_WARP) sum += x[i];
    float center = pl_warp_sum(sum) / (float)d;
    for (int i = lane; i < d; i += PL_WARP) square += (x[i] - center) * (x[i] - center);
    float scale = 1 / sqrtf(pl_warp_sum(square) / (float)d + eps);
    for (int i = lane; i < d; i += PL_WARP)
        y[i] = (x[i] - center) * scale * gain[i] + (shift ? shift[i] : 0);
    if (lane) return;
    mean[r] = center;
    rstd[r] = scale;
}

int pl_cuda_layernorm(int rows, int d, float eps, const float *x, const float *gain,
                      const float *shift, float *y, float *mean, float *rstd)
{
    if (!rows || !d) return 0;
    PL_LAUNCH(layernorm_kernel, row_blocks(rows), PL_BLOCK, 0, rows, d, eps, x, gain,
              shift, y, mean, rstd);
    return pl_cuda_launched("layernorm");
}

static __global__ void layernorm_dx_kernel(int rows, int d, const float *x,
                                           const float *gain, const float *mean,
                                           const float *rstd, const float *dy,
                                           float *dx)
{
    int r = (int)(blockIdx.x * ROWS + threadIdx.x / PL_WARP);
    int lane = (int)threadIdx.x % PL_WARP;
    if (r >= rows) return;
    x += (size_t)r * (size_t)d;
    dy += (size_t)r * (size_t)d;
    dx += (size_t)r * (size_t)d;
    float plain = 0, along = 0, scale = rstd[r], center = mean[r];
    for (int i = lane; i < d; i += PL_WARP) {
        float e = dy[i] * gain[i];
        plain += e;
        along += e * ((x[i] - center) * scale);
    }
    plain = pl_warp_sum(plain) / (float)d;
    along = pl_warp_sum(along) / (float)d;
    for (int i = lane; i < d; i += PL_WARP) {
        float n = (x[i] - center) * scale;
        dx[i] += scale * (dy[i] * gain[i] - plain - n * along);
    }
}

/* Sums over rows of a column: 32 columns a block; warp k sums rows k, k + 8, ..., then
 * warp 0 adds the eight sums in order. All threads of the block call it. */
static __device__ inline double column_sum(double *part, double sum)
{
    int lane = (int)threadIdx.x % PL_WARP, warp = (int)threadIdx.x / PL_WARP;
    part[warp * PL_WARP + lane] = sum;
    __syncthreads();
    for (int k = 1; k < ROWS && !warp; k++) sum += part[k * PL_WARP + lane];
    __syncthreads(); /* part may be written again */
    return sum;
}

static __global__ void layernorm_dgain_kernel(int rows, int d, const float *x,
                                              const float *mean, const float *rstd,
                                              const float *dy, float *dgain,
                                              float *dshift)
{
    PL_SHARED(double, part); /* (ROWS, PL_WARP) */
    int warp = (int)threadIdx.x / PL_WARP;
    int column = (int)blockIdx.x * PL_WARP + (int)threadIdx.x % PL_WARP;
    double scaled = 0, plain = 0;
    for (int r = warp; r < rows && column < d; r += ROWS) {
        size_t at = (size_t)r * (size_t)d + (size_t)column;
        scaled += (double)dy[at] * ((double)x[at] - mean[r]) * rstd[r];
        plain += dy[at];
    }
    scaled = column_sum(part, scaled);
    plain = column_sum(part, plain);
    if (warp || column >= d) return;
    dgain[column] = (float)(dgain[column] + scaled);
    if (dshift) dshift[column] = (float)(dshift[column] + plain);
}

int pl_cuda_layernorm_back(int rows, int d, const float *x, const float *gain,
                           const float *mean, const float *rstd, const float *dy,
                           float *dx, float *dgain, float *dshift)
{
    if (!rows || !d) return 0;
    PL_LAUNCH(layernorm_dx_kernel, row_blocks(rows), PL_BLOCK, 0, rows, d, x, gain,
              mean, rstd, dy, dx);
    int rc = pl_cuda_launched("layernorm_back");
    if (rc) return rc;
    PL_LAUNCH(layernorm_dgain_kernel, column_blocks(d), PL_BLOCK,
              PL_BLOCK * sizeof(double), rows, d, x, mean, rstd, dy, dgain, dshift);
    return pl_cuda_launched("layernorm_back");
}

/* Where head k of all rows starts. */
static __device__ inline size_t head_at(int k, int n_heads, int d, int ld)
{
    return (size_t)(k / n_heads) * (size_t)ld + (size_t)(k % n_heads) * (size_t)d;
}

/* One warp a head. */
static __global__ void headnorm_kernel(int heads, int n_heads, int d, int ld, float eps,
                                       const float *x, const float *gain, float *y,
                                       float *rstd)
{
    int k = (int)(blockIdx.x * ROWS + threadIdx.x / PL_WARP);
    int lane = (int)threadIdx.x % PL_WARP;
    if (k >= heads) return;
    x += head_at(k, n_heads, d, ld);
    y += head_at(k, n_heads, d, ld);
    float square = 0;
    for (int i = lane; i < d; i += PL_WARP) square += x[i] * x[i];
    float scale = 1 / sqrtf(pl_warp_sum(square) / (float)d + eps);
    for (int i = lane; i < d; i += PL_WARP) y[i] = x[i] * scale * gain[i];
    if (lane == 0) rstd[k] = scale;
}

int pl_cuda_headnorm(int rows, int n_heads, int d, int ld, float eps, const float *x,
                     const float *gain, float *y, float *rstd)
{
    int heads = rows * n_heads;
    if (!heads || !d) return 0;
    PL_LAUNCH(headnorm_kernel, row_blocks(heads), PL_BLOCK, 0, heads, n_heads, d, ld,
              eps, x, gain, y, rstd);
    return pl_cuda_launched("headnorm");
}

static __global__ void headnorm_dgain_kernel(int heads, int n_heads, int d, int ld,
                                             const float *x, const float *rstd,
                                             const float *g, float *dgain)
{
    PL_SHARED(double, part); /* (ROWS, PL_WARP) */
    int warp = (int)threadIdx.x / PL_WARP;
    int column = (int)blockIdx.x * PL_WARP + (int)threadIdx.x % PL_WARP;
    double sum = 0;
    for (int k = warp; k < heads && column < d; k += ROWS) {
        size_t at = head_at(k, n_heads, d, ld) + (size_t)column;
        sum += (double)g[at] * x[at] * rstd[k];
    }
    sum = column_sum(part, sum);
    if (!warp && column < d) dgain[column] = (float)(dgain[column] + sum);
}

static __global__ void headnorm_dx_kernel(int heads, int n_heads, int d, int ld,
                                          const float *x, const float *gain,
                                          const float *rstd, float *g)
{
    int k = (int)(blockIdx.x * ROWS + threadIdx.x / PL_WARP);
    int lane = (int)threadIdx.x % PL_WARP;
    if (k >= heads) return;
    x += head_at(k, n_heads, d, ld);
    g += head_at(k, n_heads, d, ld);
    float sum = 0, scale = rstd[k];
    for (int i = lane; i < d; i += PL_WARP) sum += g[i] * gain[i] * x[i];
    float mean = pl_warp_sum(sum) * scale * scale / (float)d;
    for (int i = lane; i < d; i += PL_WARP)
        g[i] = scale * (g[i] * gain[i] - x[i] * mean);
}

int pl_cuda_headnorm_back(int rows, int n_heads, int d, int ld, const float *x,
                          const float *gain, const float *rstd, float *g, float *dgain)
{
    int heads = rows * n_heads;
    if (!heads || !d) return 0;
    PL_LAUNCH(headnorm_dgain_kernel, column_blocks(d), PL_BLOCK,
              PL_BLOCK * sizeof(double), heads, n_heads, d, ld, x, rstd, g, dgain);
    int rc = pl_cuda_launched("headnorm_back");
    if (rc) return rc;
    PL_LAUNCH(headnorm_dx_kernel, row_blocks(heads), PL_BLOCK, 0, heads, n_heads, d, ld,
              x, gain, rstd, g);
    return pl_cuda_launched("headnorm_back");
}

static __global__ void add_rows_kernel(size_t n, int period, int d, const float *x,
                                       float *y)
{
    size_t width = (size_t)d;
    for (size_t i = pl_thread(); i < n; i += pl_threads())
        y[i] += x[i / width % (size_t)period * width + i % width];
}

int pl_cuda_add_rows(int rows, int period, int d, const float *x, float *y)
{
    size_t n = (size_t)rows * (size_t)d;
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(add_rows_kernel, blocks, PL_BLOCK, 0, n, period, d, x, y);
    return pl_cuda_launched("add_rows");
}

/* Block (columns, t): rows t, t + period, ... */
static __global__ void add_rows_back_kernel(int rows, int period, int d,
                                            const float *dy, float *dx)
{
    PL_SHARED(double, part); /* (ROWS, PL_WARP) */
    int warp = (int)threadIdx.x / PL_WARP, t = (int)blockIdx.y;
    int column = (int)blockIdx.x * PL_WARP + (int)threadIdx.x % PL_WARP;
    double sum = 0;
    for (size_t r = (size_t)t + (size_t)warp * (size_t)period;
         r < (size_t)rows && column < d; r += (size_t)ROWS * (size_t)period)
        sum += dy[r * (size_t)d + (size_t)column];
    sum = column_sum(part, sum);
    if (warp || column >= d) return;
    size_t at = (size_t)t * (size_t)d + (size_t)column;
    dx[at] = (float)(dx[at] + sum);
}

int pl_cuda_add_rows_back(int rows, int period, int d, const float *dy, float *dx)
{
    enum { MOST = 65535 }; /* of a grid's second dimension */
    int rc = 0;
    for (int t = 0; t < period && t < rows && d && !rc; t += MOST) {
        int last = period < rows ? period : rows, n = last - t < MOST ? last - t : MOST;
        dim3 grid((unsigned)column_blocks(d), (unsigned)n);
        PL_LAUNCH(add_rows_back_kernel, grid, PL_BLOCK, PL_BLOCK * sizeof(double),
                  rows - t, period, d, dy + (size_t)t * (size_t)d,
                  dx + (size_t)t * (size_t)d);
        rc = pl_cuda_launched("add_rows_back");
    }
    return rc;
}

/* sigmoid(2 u) of x, u = sqrt(2/pi) (x + 0.044715 x^3). */
static __device__ inline float gelu_gate(float x)
{
    return 1 / (1 + expf(-1.59576912160573071176f * (x + 0.044715f * x * x * x)));
}

static __global__ void gelu_kernel(size_t n, const float *x, float *y)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads())
        y[i] = x[i] * gelu_gate(x[i]);
}

int pl_cuda_gelu(size_t n, const float *x, float *y)
{
    if (!n) return 0;
    PL_LAUNCH(gelu_kernel, pl_cuda_blocks(n, PL_BLOCKS_MAX), PL_BLOCK, 0, n, x, y);
    return pl_cuda_launched("gelu");
}

static __global__ void gelu_back_kernel(size_t n, const float *x, const float *dy,
                                        float *dx)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads()) {
        float v = x[i], s = gelu_gate(v);
        float slope = 1.59576912160573071176f * (1 + 3 * 0.044715f * v * v);
        dx[i] = dy[i] * s * (1 + v * (1 - s) * slope);
    }
}

int pl_cuda_gelu_back(size_t n, const float *x, const float *dy, float *dx)
{
    if (!n) return 0;
    PL_LAUNCH(gelu_back_kernel, pl_cuda_blocks(n, PL_BLOCKS_MAX), PL_BLOCK, 0, n, x, dy,
              dx);
    return pl_cuda_launched("gelu_back");
}
