/* cuda: causal attention in bf16 on tensor cores, backward (Dao 2023, FlashAttention-2,
 * algorithm 2), in two passes instead of one, so that nothing is added by atomics:
 *   KEYS:    a block owns 128 keys of one kv head; queries of the group's heads stream
 *            by, head after head. s^T = k q^T, dp^T = v dout^T,
 *            dv += p^T dout, dk += ds^T q
 *   queries: a block owns 128 queries of a head; keys and values stream by.
 *            s = q k^T, dp = dout v^T, dq += ds k
 * with p = exp(scale s - lse), ds = p (dp - D) scale, D = dout out. In both, what the
 * first products leave in registers is the first factor of the next. Seven products of
 * 2 (T^2 / 2) flops for each head and column, against five of the one-pass algorithm;
 * p and ds are rounded to bf16. Bounds by shared memory as in gpu/cuda_flash.cu: 0.42
 * (keys) and 0.55 (queries) of peak at head size 128, 0.58 and 0.67 at 64; counted as
 * five products, 0.33 and 0.44.
 * log2(e) lse and D of a row are worked out once and kept, until dq is written, in the
 * first 8 bytes of the row's dq: no memory beyond the arguments. */
#include "gpu/cuda_flash.cuh"

/* What an instance of the kernel is made of: accumulators of the results, s and dp take
 * about 200 registers of 255, and two blocks of 4 warps or one of 8 fit a
 * multiprocessor. */
template <int D, bool KEYS> struct shape {
    static constexpr bool WIDE = KEYS && D == 128;
    static constexpr int MT = WIDE ? 1 : 2;
    static constexpr int COLS = WIDE ? 64 : (D == 64 && !KEYS) ? 64 : 32;
    static constexpr int THREADS = PL_FLASH_ROWS / (16 * MT) * PL_WARP;
    static constexpr size_t bytes =
        (size_t)(2 * PL_FLASH_ROWS + 4 * COLS) * D * sizeof(bf16) +
        (KEYS ? 2 * COLS * sizeof(float2) : 0);
};

/* (log2(e) lse, D) of row t of head h. */
static __device__ inline float2 *stat_at(const struct flash *a, int b, int h, int t)
{
    return (float2 *)(a->dqkv + flash_at(a, b, h) + (size_t)t * a->width);
}

static __device__ inline float product_of_pairs(unsigned x, unsigned y)
{
    return __uint_as_float(x << 16) * __uint_as_float(y << 16) +
           __uint_as_float(x & 0xffff0000u) * __uint_as_float(y & 0xffff0000u);
}

/* Eight lanes a row of a head. */
static __global__ void flash_stat_kernel(struct flash a)
{
    size_t rows = (size_t)a.s.B * a.s.T * a.s.heads, first = pl_thread() / 8;
    int lane = pl_lane() % 8;
    for (size_t r = first; r - first % 4 < rows; r += pl_threads() / 8) {
        float sum = 0;
        for (int c = 8 * lane; r < rows && c < a.s.head_dim; c += 64) {
            uint4 x = *(const uint4 *)(a.out + r * a.s.head_dim + c);
            uint4 y = *(const uint4 *)(a.dout + r * a.s.head_dim + c);
            sum += product_of_pairs(x.x, y.x) + product_of_pairs(x.y, y.y) +
                   product_of_pairs(x.z, y.z) + product_of_pairs(x.w, y.w);
        }
        for (int offset = 4; offset; offset /= 2)
            sum += __shfl_xor_sync(~0u, sum, offset);
        if (r >= rows || lane) continue;
        int h = (int)(r % a.s.heads), t = (int)(r / a.s.heads % a.s.T);
        int b = (int)(r / a.s.heads / a.s.T);
        float lse = a.lse[((size_t)b * a.s.heads + (size_t)h) * a.s.T + t];
        *stat_at(&a, b, h, t) = {lse * PL_LOG2_E, sum};
    }
}

/* The next columns that stream by: rows col .. of a query head or kv head. */
struct stream {
    int b, head, col;
};

/* On to the next tile: after the last of a head the first of the next. */
template <int COLS>
static __device__ inline void advance(struct stream *y, int first, int end)
{
    y->col += COLS;
    if (y->col >= end) {
        y->col = first;
        y->head++;
    }
}

template <int D, bool KEYS>
static __device__ inline void
load_columns(const struct flash *a, const struct stream *y, bf16 *tiles, float2 *stats)
{
    constexpr int COLS = shape<D, KEYS>::COLS, THREADS = shape<D, KEYS>::THREADS;
    const bf16 *one = a->qkv + flash_at(a, y->b, y->head);
    const bf16 *two = KEYS ? a->dout + flash_out_at(a, y->b, y->head)
                           : one + a->s.kv_heads * a->s.head_dim;
    flash_load<D, COLS, THREADS>(a, tiles, one, a->width, y->col);
    flash_load<D, COLS, THREADS>(a, tiles + COLS * D, two,
                                 KEYS ? a->out_width : a->width, y->col);
    int t = (int)threadIdx.x;
    if (KEYS && t < COLS)
        pl_copy_async<8>(stats + t, stat_at(a, y->b, y->head, y->col + t),
                         y->col + t < a->s.T);
}

/* s becomes p, dp becomes p (dp - D). The statistics are those of the columns (KEYS) or
 * of the rows. */
template <bool KEYS, int MT, int COLS>
static __device__ inline void weights(float s[MT][COLS / 8][4],
                                      float dp[MT][COLS / 8][4], float scale2,
                                      const float2 *column, const float2 row[MT][2])
{
#pragma unroll
    for (int j = 0; j < COLS / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            float2 of_column = {};
            if (KEYS) of_column = column[8 * j + pl_lane() % 4 * 2 + c % 2];
#pragma unroll
            for (int i = 0; i < MT; i++) {
                float2 stat = KEYS ? of_column : row[i][c / 2];
                s[i][j][c] = pl_exp2(fmaf(s[i][j][c], scale2, -stat.x));
                dp[i][j][c] = s[i][j][c] * (dp[i][j][c] - stat.y);
            }
        }
}

/* Grid (tiles of rows, kv heads (KEYS) or heads, B), the longest first. */
template <int D, bool KEYS>
static __global__ void __launch_bounds__(shape<D, KEYS>::THREADS)
    flash_back_kernel(struct flash a)
{
    constexpr int MT = shape<D, KEYS>::MT, COLS = shape<D, KEYS>::COLS;
    constexpr int THREADS = shape<D, KEYS>::THREADS;
    PL_SHARED(uint4, shared);
    bf16 *x = (bf16 *)shared, *x2 = x + PL_FLASH_ROWS * D,
         *tiles = x2 + PL_FLASH_ROWS * D;
    float2 *stats = (float2 *)(tiles + 4 * COLS * D);
    int first = (int)(KEYS ? blockIdx.x : gridDim.x - 1 - blockIdx.x) * PL_FLASH_ROWS;
    int mine = (int)blockIdx.y, b = (int)blockIdx.z, group = a.s.heads / a.s.kv_heads;
    int row = first + 16 * MT * pl_warp();
    int begin = KEYS ? first : 0,
        end = KEYS ? a.s.T : min(first + PL_FLASH_ROWS, a.s.T);
    struct stream y = {b, KEYS ? mine * group : a.s.heads + mine / group, begin};
    const int past = KEYS ? y.head + group : y.head + 1; /* the last head */
    size_t at = flash_at(&a, b, KEYS ? a.s.heads + mine : mine);
    const bf16 *from2 = KEYS ? a.qkv + at + a.s.kv_heads * a.s.head_dim
                             : a.dout + flash_out_at(&a, b, mine);
    flash_load<D, PL_FLASH_ROWS, THREADS>(&a, x, a.qkv + at, a.width, first);
    flash_load<D, PL_FLASH_ROWS, THREADS>(&a, x2, from2, KEYS ? a.width : a.out_width,
                                          first);
    load_columns<D, KEYS>(&a, &y, tiles, stats);
    x += 16 * MT * pl_warp() * D;
    x2 += 16 * MT * pl_warp() * D;
    float2 stat[MT][2] = {};
    float factor[MT][2], one[MT][2];
    for (int i = 0; i < MT; i++)
        for (int h = 0; h < 2; h++) {
            int t = row + 16 * i + 8 * h + pl_lane() / 4;
            if (!KEYS && t < a.s.T) stat[i][h] = *stat_at(&a, b, mine, t);
            factor[i][h] = a.scale;
            one[i][h] = 1;
        }
    float sum[MT][D / 8][4] = {}, sum2[KEYS ? MT : 1][KEYS ? D / 8 : 1][4] = {};
    for (int use = 0; y.head < past; use ^= 1) {
        pl_copy_wait();
        __syncthreads(); /* this tile is there, the one before is read */
        const bf16 *ys = tiles + use * 2 * COLS * D;
        int col = y.col, last = row + 16 * MT - 1;
        advance<COLS>(&y, begin, end);
        if (y.head < past)
            load_columns<D, KEYS>(&a, &y, tiles + (use ^ 1) * 2 * COLS * D,
                                  stats + (use ^ 1) * COLS);
        if (KEYS ? row > col + COLS - 1 : col > last) continue;
        float s[MT][COLS / 8][4] = {}, dp[MT][COLS / 8][4] = {};
        flash_scores<D, MT, COLS>(s, x, ys);
        flash_scores<D, MT, COLS>(dp, x2, ys + COLS * D);
        if (KEYS ? last > col : col + COLS - 1 > row)
            flash_mask<KEYS, MT, COLS>(s, row, col);
        weights<KEYS, MT, COLS>(s, dp, a.scale * PL_LOG2_E, stats + use * COLS, stat);
        if constexpr (KEYS) flash_add<D, MT, COLS>(sum2, s, ys + COLS * D);
        flash_add<D, MT, COLS>(sum, dp, ys);
    }
    flash_store<D, MT>(&a, sum, factor, x, a.dqkv + at, a.width, row);
    if constexpr (KEYS)
        flash_store<D, MT>(&a, sum2, one, x2, a.dqkv + at + a.s.kv_heads * a.s.head_dim,
                           a.width, row);
}

template <int D, bool KEYS> static int pass(const struct flash *a)
{
    typedef shape<D, KEYS> S;
    int rc = pl_cuda_shared((const void *)flash_back_kernel<D, KEYS>, S::bytes,
                            "attention_back");
    if (rc) return rc;
    dim3 grid((unsigned)((a->s.T + PL_FLASH_ROWS - 1) / PL_FLASH_ROWS),
              (unsigned)(KEYS ? a->s.kv_heads : a->s.heads), (unsigned)a->s.B);
    PL_LAUNCH((flash_back_kernel<D, KEYS>), grid, S::THREADS, S::bytes, *a);
    return pl_cuda_launched("attention_back");
}

template <int D> static int backward(const struct flash *a)
{
    int rc = pass<D, true>(a); /* the pass over queries overwrites the statistics */
    return rc ? rc : pass<D, false>(a);
}

int pl_cuda_flash_back(const struct pl_attention_shape *shape, const bf16 *qkv,
                       const bf16 *out, const float *lse, const bf16 *dout, bf16 *dqkv)
{
    int rc = pl_flash_check(shape);
    if (rc || !shape->B || !shape->T) return rc;
    struct flash a = pl_flash_of(shape, qkv);
    a.out = out;
    a.lse = lse;
    a.dout = dout;
    a.dqkv = dqkv;
    size_t threads = (size_t)shape->B * shape->T * shape->heads * 8;
    PL_LAUNCH(flash_stat_kernel, pl_cuda_blocks(threads, PL_BLOCKS_MAX), PL_BLOCK, 0,
              a);
    rc = pl_cuda_launched("attention_back");
    if (rc) return rc;
    return shape->head_dim <= 64 ? backward<64>(&a) : backward<128>(&a);
}
