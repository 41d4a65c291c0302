/* What the forward and the backward pass of attention on tensor cores share: tiles in
 * shared memory and their products. A tile has rows of D bf16 (64 or 128) in chunks of
 * 8; chunk c of row r lies where chunk c ^ (r % 8) would, so that 8 rows of a column of
 * chunks, which ldmatrix reads at once, are in 8 different groups of banks. A block
 * owns PL_FLASH_ROWS rows of its results, warp w those from 16 MT w on (MT = 16-row
 * matrices a warp); COLS rows of the other operands stream by. */
#ifndef PL_GPU_CUDA_FLASH_CUH
#define PL_GPU_CUDA_FLASH_CUH

#include "gpu/cuda_device.cuh"
#include "gpu/cuda_mma.cuh"

using bf16 = __nv_bfloat16;

enum { PL_FLASH_ROWS = 128 };
static constexpr float PL_LOG2_E = 1.44269504088896341f;

struct flash {
    struct pl_attention_shape s;
    int width, out_width; /* elements of a row of qkv and of out */
    float scale;          /* head_dim^-1/2 */
    const bf16 *qkv, *out, *dout;
    const float *lse;
    bf16 *out_new, *dqkv;
    float *lse_new;
};

struct flash pl_flash_of(const struct pl_attention_shape *shape, const bf16 *qkv);
/* 0, or PL_EUNSUP. */
int pl_flash_check(const struct pl_attention_shape *shape);

/* Where a head (query heads, then key heads, then value heads) begins in the first row
 * of sequence b of qkv. */
static __device__ inline size_t flash_at(const struct flash *a, int b, int head)
{
    return (size_t)b * a->s.T * a->width + (size_t)head * a->s.head_dim;
}

static __device__ inline size_t flash_out_at(const struct flash *a, int b, int h)
{
    return (size_t)b * a->s.T * a->out_width + (size_t)h * a->s.head_dim;
}

/* Begin to copy rows first .. first + ROWS - 1 of x, ld elements apart, into a tile;
 * zeros from row T and from column head_dim on. Offsets within a sequence are int, as
 * registers are few. */
template <int D, int ROWS, int THREADS>
static __device__ inline void flash_load(const struct flash *a, bf16 *tile,
                                         const bf16 *x, int ld, int first)
{
    constexpr int CHUNKS = D / 8, STEP = THREADS / CHUNKS;
    static_assert(STEP % 8 == 0 && ROWS % STEP == 0, "whole steps, one swizzle");
    int chunk = (int)threadIdx.x % CHUNKS, row = (int)threadIdx.x / CHUNKS;
    int rows = 8 * chunk < a->s.head_dim ? a->s.T - first - row : 0;
    tile += row * D + 8 * (chunk ^ row % 8);
    int from = (first + row) * ld + 8 * chunk;
#pragma unroll
    for (int r = 0; r < ROWS; r += STEP, from += STEP * ld)
        pl_copy_async<16>(tile + r * D, x + from, r < rows);
}

/* Where a lane's row for ldmatrix is in 16 rows and two chunks of a tile. `tall`: the
 * matrices one below the other first, as for the first factor and for the transposed
 * second one. */
template <int D> static __device__ inline int flash_lane_at(bool tall)
{
    int lane = pl_lane(), half = lane / 8 % 2, other = lane / 16;
    int row = lane % 8 + 8 * (tall ? half : other), chunk = tall ? other : half;
    return row * D + 8 * (chunk ^ row % 8);
}

/* Chunks 2k and 2k + 1 of the row at `at`: the swizzle is within 8 chunks. */
static __device__ inline int flash_pair(int at, int k)
{
    return (at ^ 16 * (k % 4)) + 64 * (k / 4);
}

/* s (16 MT, COLS) += x y^T: x this warp's rows of a tile, y a tile of COLS rows. */
template <int D, int MT, int COLS>
static __device__ inline void flash_scores(float s[MT][COLS / 8][4], const bf16 *x,
                                           const bf16 *y)
{
    int x_at = flash_lane_at<D>(true), y_at = flash_lane_at<D>(false);
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        unsigned xs[MT][4], ys[4];
#pragma unroll
        for (int i = 0; i < MT; i++)
            pl_ldmatrix(xs[i], x + 16 * i * D + flash_pair(x_at, k));
#pragma unroll
        for (int j = 0; j < COLS / 16; j++) {
            pl_ldmatrix(ys, y + 16 * j * D + flash_pair(y_at, k));
#pragma unroll
            for (int i = 0; i < MT; i++) {
                pl_mma(s[i][2 * j], xs[i], ys[0], ys[1]);
                pl_mma(s[i][2 * j + 1], xs[i], ys[2], ys[3]);
            }
        }
    }
}

/* sum (16 MT, D) += p y: p (16 MT, COLS) rounded to bf16, y a tile of COLS rows. The
 * registers of a result are those of a first factor: columns 2t, 2t + 1 and 8 on. */
template <int D, int MT, int COLS>
static __device__ inline void flash_add(float sum[MT][D / 8][4],
                                        const float p[MT][COLS / 8][4], const bf16 *y)
{
    int y_at = flash_lane_at<D>(true);
#pragma unroll
    for (int k = 0; k < COLS / 16; k++) {
        unsigned ps[MT][4], ys[4];
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float *two = &p[i][2 * k + c / 2][c % 2 * 2];
                ps[i][c] = pl_pair(two[0], two[1]);
            }
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            pl_ldmatrix_trans(ys, y + 16 * k * D + flash_pair(y_at, n));
#pragma unroll
            for (int i = 0; i < MT; i++) {
                pl_mma(sum[i][2 * n], ps[i], ys[0], ys[1]);
                pl_mma(sum[i][2 * n + 1], ps[i], ys[2], ys[3]);
            }
        }
    }
}

/* -inf where a key comes after the query: the warp's rows, from `row` on, are keys
 * (KEYS) or queries, the columns, from `col` on, the others. */
template <bool KEYS, int MT, int COLS>
static __device__ inline void flash_mask(float s[MT][COLS / 8][4], int row, int col)
{
    row += pl_lane() / 4;
    col += pl_lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < COLS / 8; j++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int r = row + 16 * i + c / 2 * 8, q = col + 8 * j + c % 2;
                if (KEYS ? r > q : q > r) s[i][j][c] = -INFINITY;
            }
}

/* Rows first .. of x, ld elements apart, = factor sum (16 MT, D), rounded. It passes
 * through `tile`, this warp's rows of a tile that nobody reads any more, so that a row
 * is written in pieces of 16 bytes. */
template <int D, int MT>
static __device__ inline void
flash_store(const struct flash *a, const float sum[MT][D / 8][4],
            const float factor[MT][2], bf16 *tile, bf16 *x, int ld, int first)
{
    int lane = pl_lane();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int row = 16 * i + 8 * h + lane / 4;
                bf16 *to = tile + row * D + 8 * (n ^ lane / 4) + lane % 4 * 2;
                *(unsigned *)to = pl_pair(sum[i][n][2 * h] * factor[i][h],
                                          sum[i][n][2 * h + 1] * factor[i][h]);
            }
    __syncwarp();
    for (int at = lane; at < 16 * MT * D / 8; at += PL_WARP) {
        int row = at / (D / 8), chunk = at % (D / 8);
        if (first + row < a->s.T && 8 * chunk < a->s.head_dim)
            *(uint4 *)(x + (size_t)(first + row) * ld + 8 * chunk) =
                *(const uint4 *)(tile + row * D + 8 * (chunk ^ row % 8));
    }
}

#endif
