/* cuda: embedding, gathered rows, RMSNorm, rotary embedding, cross-entropy. */
#include "gpu/cuda_device.cuh"

static __global__ void embed_kernel(size_t n, int d, const int32_t *tokens,
                                    const float *table, float *out)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads())
        out[i] = table[(size_t)tokens[i / (size_t)d] * (size_t)d + i % (size_t)d];
}

int pl_cuda_embed(int rows, int d, const int32_t *tokens, const float *table,
                  float *out)
{
    size_t n = (size_t)rows * (size_t)d;
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(embed_kernel, blocks, PL_BLOCK, 0, n, d, tokens, table, out);
    return pl_cuda_launched("embed");
}

int pl_cuda_gather(int n, int d, const int32_t *from, const float *x, float *y)
{
    return pl_cuda_embed(n, d, from, x, y);
}

/* Whether one of tokens[from..to) equals token; the whole block asks together. */
static __device__ bool block_contains(int from, int to, const int32_t *tokens,
                                      int32_t token)
{
    for (int start = from; start < to; start += PL_BLOCK) {
        int i = start + (int)threadIdx.x;
        if (__syncthreads_or(i < to && tokens[i] == token)) return true;
    }
    return false;
}

/* Block (r, column chunk): if r is the first row of its token, it adds all rows of that
 * token, in row order; nobody else writes that token's gradient. */
static __global__ void embed_back_kernel(int rows, int d, const int32_t *tokens,
                                         const float *dout, float *dtable)
{
    int first = (int)blockIdx.x, column = (int)(blockIdx.y * PL_BLOCK + threadIdx.x);
    int32_t token = tokens[first];
    if (block_contains(0, first, tokens, token)) return;
    size_t at = (size_t)token * (size_t)d + (size_t)column;
    float sum = column < d ? dtable[at] : 0;
    for (int start = first; start < rows; start += PL_BLOCK) {
        int end = start + PL_BLOCK < rows ? start + PL_BLOCK : rows;
        if (!block_contains(start, end, tokens, token)) continue;
        for (int r = start; r < end; r++)
            if (tokens[r] == token && column < d)
                sum += dout[(size_t)r * (size_t)d + (size_t)column];
    }
    if (column < d) dtable[at] = sum;
}

int pl_cuda_embed_back(int rows, int d, const int32_t *tokens, const float *dout,
                       float *dtable)
{
    if (!rows || !d) return 0;
    dim3 grid((unsigned)rows, (unsigned)((d + PL_BLOCK - 1) / PL_BLOCK));
    PL_LAUNCH(embed_back_kernel, grid, PL_BLOCK, 0, rows, d, tokens, dout, dtable);
    return pl_cuda_launched("embed_back");
}

enum { ROWS = PL_BLOCK / PL_WARP }; /* rows of a block: one for each warp */

static int row_blocks(int rows)
{
    return (rows + ROWS - 1) / ROWS;
}

/* y = x gain / sqrt(mean x^2 + eps) (Zhang and Sennrich 2019). */
static __global__ void rmsnorm_kernel(int rows, int d, float eps, const float *x,
                                      const float *gain, float *y, float *rstd)
{
    int r = (int)(blockIdx.x * ROWS + threadIdx.x / PL_WARP);
    int lane = (int)threadIdx.x % PL_WARP;
    if (r >= rows) return;
    x += (size_t)r * (size_t)d;
    y += (size_t)r * (size_t)d;
    float square = 0;
    for (int i = lane; i < d; i += PL_WARP) square += x[i] * x[i];
    float scale = 1 / sqrtf(pl_warp_sum(square) / (float)d + eps);
    for (int i = lane; i < d; i += PL_WARP) y[i] = x[i] * scale * gain[i];
    if (lane == 0) rstd[r] = scale;
}

int pl_cuda_rmsnorm(int rows, int d, float eps, const float *x, const float *gain,
                    float *y, float *rstd)
{
    if (!rows || !d) return 0;
    PL_LAUNCH(rmsnorm_kernel, row_blocks(rows), PL_BLOCK, 0, rows, d, eps, x, gain, y,
              rstd);
    return pl_cuda_launched("rmsnorm");
}

/* dx += rstd (dy gain - x rstd^2 mean(dy gain x)). */
static __global__ void rmsnorm_dx_kernel(int rows, int d, const float *x,
                                         const float *gain, const float *rstd,
                                         const float *dy, float *dx)
{
    int r = (int)(blockIdx.x * ROWS + threadIdx.x / PL_WARP);
    int lane = (int)threadIdx.x % PL_WARP;
    if (r >= rows) return;
    x += (size_t)r * (size_t)d;
    dy += (size_t)r * (size_t)d;
    dx += (size_t)r * (size_t)d;
    float sum = 0, scale = rstd[r];
    for (int i = lane; i < d; i += PL_WARP) sum += dy[i] * gain[i] * x[i];
    float mean = pl_warp_sum(sum) * scale * scale / (float)d;
    for (int i = lane; i < d; i += PL_WARP)
        dx[i] += scale * (dy[i] * gain[i] - x[i] * mean);
}

/* dgain += sum over rows of dy x rstd. A block has 32 columns; warp k sums rows k, k +
 * 8,
 * ..., then warp 0 adds the eight sums in order. */
static __global__ void rmsnorm_dgain_kernel(int rows, int d, const float *x,
                                            const float *rstd, const float *dy,
                                            float *dgain)
{
    PL_SHARED(double, part); /* (ROWS, PL_WARP) */
    int lane = (int)threadIdx.x % PL_WARP, warp = (int)threadIdx.x / PL_WARP;
    int column = (int)blockIdx.x * PL_WARP + lane;
    double sum = 0;
    for (int r = warp; r < rows && column < d; r += ROWS) {
        size_t at = (size_t)r * (size_t)d + (size_t)column;
        sum += (double)dy[at] * x[at] * rstd[r];
    }
    part[warp * PL_WARP + lane] = sum;
    __syncthreads();
    if (warp || column >= d) return;
    for (int k = 1; k < ROWS; k++) sum += part[k * PL_WARP + lane];
    dgain[column] = (float)(dgain[column] + sum);
}

int pl_cuda_rmsnorm_back(int rows, int d, const float *x, const float *gain,
                         const float *rstd, const float *dy, float *dx, float *dgain)
{
    if (!rows || !d) return 0;
    PL_LAUNCH(rmsnorm_dx_kernel, row_blocks(rows), PL_BLOCK, 0, rows, d, x, gain, rstd,
              dy, dx);
    int rc = pl_cuda_launched("rmsnorm_back");
    if (rc) return rc;
    PL_LAUNCH(rmsnorm_dgain_kernel, (d + PL_WARP - 1) / PL_WARP, PL_BLOCK,
              PL_BLOCK * sizeof(double), rows, d, x, rstd, dy, dgain);
    return pl_cuda_launched("rmsnorm_back");
}

/* (a, b) -> (a cos - b sin, a sin + b cos) at angle t theta^(-2i/head_dim) (Su et al.
 * 2021). Thread (row, i) turns that pair of every head; the angle is in double, since t
 * may be large. */
static __global__ void rope_kernel(int rows, int T, int n_heads, int head_dim, int ld,
                                   double theta, int direction, float *x)
{
    size_t half = (size_t)head_dim / 2, n = (size_t)rows * half;
    for (size_t id = pl_thread(); id < n; id += pl_threads()) {
        size_t r = id / half, i = id % half;
        double t = (double)(r % (size_t)T) * direction;
        double angle = t * pow(theta, -2.0 * (double)i / head_dim);
        float c = (float)cos(angle), s = (float)sin(angle);
        float *p = x + r * (size_t)ld + i;
        for (int h = 0; h < n_heads; h++, p += head_dim) {
            float a = p[0], b = p[half];
            p[0] = a * c - b * s;
            p[half] = a * s + b * c;
        }
    }
}

int pl_cuda_rope(int rows, int T, int n_heads, int head_dim, int ld, double theta,
                 int direction, float *x)
{
    size_t n = (size_t)rows * (size_t)(head_dim / 2);
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(rope_kernel, blocks, PL_BLOCK, 0, rows, T, n_heads, head_dim, ld, theta,
              direction, x);
    return pl_cuda_launched("rope");
}

/* Block k does rows k, k + blocks, ...: log-sum-exp, then the gradient over the logits.
 */
static __global__ void xent_kernel(int rows, int vocab, float *logits,
                                   const int32_t *targets, float scale, double *partial)
{
    double loss = 0;
    for (int r = (int)blockIdx.x; r < rows; r += (int)gridDim.x) {
        float *x = logits + (size_t)r * (size_t)vocab, max = -INFINITY, sum = 0;
        int target = targets[r];
        float wanted =
            x[target]; /* before the barriers, after which it is overwritten */
        for (int i = (int)threadIdx.x; i < vocab; i += PL_BLOCK) max = fmaxf(max, x[i]);
        max = pl_block_max(max);
        for (int i = (int)threadIdx.x; i < vocab; i += PL_BLOCK)
            sum += expf(x[i] - max);
        double total = pl_block_sum(sum);
        loss += max + log(total) - wanted;
        if (scale == 0) continue;
        float norm = (float)(1 / total);
        for (int i = (int)threadIdx.x; i < vocab; i += PL_BLOCK)
            x[i] = scale * (expf(x[i] - max) * norm - (i == target ? 1.0f : 0.0f));
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = loss;
}

int pl_cuda_xent(int rows, int vocab, float *logits, const int32_t *targets,
                 float scale, double *sum)
{
    if (!rows) return 0;
    int blocks = rows < PL_PARTIALS ? rows : PL_PARTIALS;
    PL_LAUNCH(xent_kernel, blocks, PL_BLOCK, 0, rows, vocab, logits, targets, scale,
              pl_cuda.partial);
    int rc = pl_cuda_launched("xent");
    return rc ? rc : pl_cuda_add_partials(blocks, sum);
}
