/* cuda: causal attention in bf16 on tensor cores, forward (Dao 2023, FlashAttention-2,
 * algorithm 1). A block of 4 warps owns 128 queries of one head, a warp 32 of them;
 * tiles of 64 keys and values stream through two buffers, one filled while the other is
 * used. Scores, running maximum and sum of exp are float; p is rounded to bf16 for the
 * product with v. Tiles after the block's last query are never loaded, those after the
 * warp's last one not computed. 4 T^2 / 2 flops for each head and column, the half that
 * is masked left out. Bound by shared memory, 128 bytes a cycle: a warp's 32 rows read
 * 512 bytes for 3.2 mma of 2048 multiply-adds, and tiles are written once: 1365
 * multiply-adds a cycle, 0.67 of the 2048 of a multiprocessor of sm_90. */
#include "gpu/cuda_flash.cuh"

#include <limits.h>

enum { MT = 2, COLS = 64, THREADS = PL_FLASH_ROWS / (16 * MT) * PL_WARP };

/* One tile of keys: s becomes p = exp(scale s - max); sum is this lane's share of its
 * rows, o the result so far. scale2 = scale log2(e). */
template <int N>
static __device__ inline void softmax_step(float s[MT][COLS / 8][4], float scale2,
                                           float max[MT][2], float sum[MT][2],
                                           float o[MT][N][4])
{
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float larger = max[i][h], total = 0;
#pragma unroll
            for (int j = 0; j < COLS / 8; j++)
                larger = fmaxf(larger, fmaxf(s[i][j][2 * h], s[i][j][2 * h + 1]));
            larger = fmaxf(larger, __shfl_xor_sync(~0u, larger, 1));
            larger = fmaxf(larger, __shfl_xor_sync(~0u, larger, 2));
            float shrink = pl_exp2((max[i][h] - larger) * scale2);
            float shift = larger * scale2;
#pragma unroll
            for (int j = 0; j < COLS / 8; j++)
#pragma unroll
                for (int c = 2 * h; c < 2 * h + 2; c++) {
                    s[i][j][c] = pl_exp2(fmaf(s[i][j][c], scale2, -shift));
                    total += s[i][j][c];
                }
            max[i][h] = larger;
            sum[i][h] = sum[i][h] * shrink + total;
#pragma unroll
            for (int n = 0; n < N; n++) {
                o[i][n][2 * h] *= shrink;
                o[i][n][2 * h + 1] *= shrink;
            }
        }
}

/* Add up the lanes' shares, write lse, and turn sum into its reciprocal. */
static __device__ inline void finish_rows(const struct flash *a, float *lse, int row,
                                          const float max[MT][2], float sum[MT][2])
{
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[i][h] += __shfl_xor_sync(~0u, sum[i][h], 1);
            sum[i][h] += __shfl_xor_sync(~0u, sum[i][h], 2);
            int t = row + 16 * i + 8 * h + pl_lane() / 4;
            if (t < a->s.T && pl_lane() % 4 == 0)
                lse[t] = max[i][h] * a->scale + logf(sum[i][h]);
            sum[i][h] = 1 / sum[i][h];
        }
}

/* Begin to copy the keys from col on of kv head `key`, and behind them their values. */
template <int D>
static __device__ inline void load_keys(const struct flash *a, int b, int key, int col,
                                        bf16 *tiles)
{
    const bf16 *k = a->qkv + flash_at(a, b, key);
    flash_load<D, COLS, THREADS>(a, tiles, k, a->width, col);
    flash_load<D, COLS, THREADS>(a, tiles + COLS * D, k + a->s.kv_heads * a->s.head_dim,
                                 a->width, col);
}

/* Grid (tiles of queries, heads, B). Key 0 is in every row's past, so that max is
 * finite after the first tile. */
template <int D>
static __global__ void __launch_bounds__(THREADS) flash_kernel(struct flash a)
{
    PL_SHARED(uint4, shared);
    bf16 *q = (bf16 *)shared, *buffers = q + PL_FLASH_ROWS * D;
    int first = (int)(gridDim.x - 1 - blockIdx.x) * PL_FLASH_ROWS; /* longest first */
    int h = (int)blockIdx.y, b = (int)blockIdx.z, row = first + 16 * MT * pl_warp();
    int key = a.s.heads + h / (a.s.heads / a.s.kv_heads);
    int last = min(first + PL_FLASH_ROWS, a.s.T) - 1;
    flash_load<D, PL_FLASH_ROWS, THREADS>(&a, q, a.qkv + flash_at(&a, b, h), a.width,
                                          first);
    load_keys<D>(&a, b, key, 0, buffers);
    q += 16 * MT * pl_warp() * D;
    float o[MT][D / 8][4] = {}, sum[MT][2] = {}, max[MT][2];
    for (int i = 0; i < MT; i++) max[i][0] = max[i][1] = -INFINITY;
    for (int j = 0; j <= last; j += COLS) {
        pl_copy_wait();
        __syncthreads(); /* this tile is there, the one before is read */
        const bf16 *keys = buffers + j / COLS % 2 * 2 * COLS * D;
        if (j + COLS <= last)
            load_keys<D>(&a, b, key, j + COLS,
                         buffers + (j / COLS + 1) % 2 * 2 * COLS * D);
        if (j > row + 16 * MT - 1) continue;
        float s[MT][COLS / 8][4] = {};
        flash_scores<D, MT, COLS>(s, q, keys);
        if (j + COLS - 1 > row) flash_mask<false, MT, COLS>(s, row, j);
        softmax_step<D / 8>(s, a.scale * PL_LOG2_E, max, sum, o);
        flash_add<D, MT, COLS>(o, s, keys + COLS * D);
    }
    finish_rows(&a, a.lse_new + ((size_t)b * a.s.heads + (size_t)h) * a.s.T, row, max,
                sum);
    flash_store<D, MT>(&a, o, sum, q, a.out_new + flash_out_at(&a, b, h), a.out_width,
                       row);
}

struct flash pl_flash_of(const struct pl_attention_shape *shape, const bf16 *qkv)
{
    struct flash a = {};
    a.s = *shape;
    a.width = (shape->heads + 2 * shape->kv_heads) * shape->head_dim;
    a.out_width = shape->heads * shape->head_dim;
    a.scale = (float)(1 / sqrt((double)shape->head_dim));
    a.qkv = qkv;
    return a;
}

bool pl_cuda_flash_takes(const struct pl_attention_shape *s)
{
    size_t width = ((size_t)s->heads + 2 * (size_t)s->kv_heads) * (size_t)s->head_dim;
    return s->head_dim % 8 == 0 && s->head_dim <= 128 && s->B <= 65535 &&
           s->heads <= 65535 && ((size_t)s->T + PL_FLASH_ROWS) * width <= INT_MAX;
}

int pl_flash_check(const struct pl_attention_shape *s)
{
    if (pl_cuda_flash_takes(s)) return 0;
    return pl_cuda.host->fail(
        PL_EUNSUP,
        "device cuda: bf16 attention of B %d, T %d, %d heads, head size %d: at most "
        "65535 sequences and heads, 128, a multiple of 8, and 2^31 elements a sequence",
        s->B, s->T, s->heads, s->head_dim);
}

template <int D> static int forward(const struct flash *a)
{
    size_t bytes = (size_t)(PL_FLASH_ROWS + 4 * COLS) * D * sizeof(bf16);
    int rc = pl_cuda_shared((const void *)flash_kernel<D>, bytes, "attention");
    if (rc) return rc;
    dim3 grid((unsigned)((a->s.T + PL_FLASH_ROWS - 1) / PL_FLASH_ROWS),
              (unsigned)a->s.heads, (unsigned)a->s.B);
    PL_LAUNCH(flash_kernel<D>, grid, THREADS, bytes, *a);
    return pl_cuda_launched("attention");
}

int pl_cuda_flash(const struct pl_attention_shape *shape, const bf16 *qkv, bf16 *out,
                  float *lse)
{
    int rc = pl_flash_check(shape);
    if (rc || !shape->B || !shape->T) return rc;
    struct flash a = pl_flash_of(shape, qkv);
    a.out_new = out;
    a.lse_new = lse;
    return shape->head_dim <= 64 ? forward<64>(&a) : forward<128>(&a);
}
