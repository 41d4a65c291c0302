/* cuda: products of rows in groups in bf16 on tensor cores (mma.sync), sums in float. A
 * warp makes 64 x 64 results, a block 128 x 128 with two warps across or 128 x 256 with
 * four, over DEPTH of k at a time; all but one of STAGES pairs of tiles of the factors
 * are on their way (cp.async) while one is multiplied. A wide block asks for a byte
 * from the L2 cache every 85 flops, a narrow one every 64, but two of those share a
 * processor. A tile's rows lie along k (DEPTH numbers: x and W of y, dy of dx) or along
 * its lines (W of dx, dy and x of dW), as in memory; ldmatrix transposes where it must.
 * Rows are chunks of 8 numbers, chunk c of row r where chunk c ^ (r % 8) would be: 8
 * rows of a column of chunks, which ldmatrix reads at once, are in 8 different groups
 * of banks.
 *
 * Weights are rounded to bf16 before each use, those of groups that have rows: 6 bytes
 * an element. */
#include "gpu/cuda_groups.cuh"
#include "gpu/cuda_mma.cuh"

using bf16 = __nv_bfloat16;

constexpr int DEPTH = 64;
constexpr int OWN = 64, DOWN = OWN / 16,
              RIGHT = OWN / 8; /* of a warp: rows, in matrices */

/* A kind of product by blocks with so many warps across. */
template <enum pl_product WHICH, int WARPS_ACROSS> struct kind {
    static constexpr bool A_ALONG = WHICH != PL_PRODUCT_DW;
    static constexpr bool B_ALONG = WHICH == PL_PRODUCT_Y;
    static constexpr int ACROSS = WARPS_ACROSS, THREADS = 2 * ACROSS * (int)PL_WARP;
    static constexpr int A_LINES = PL_TILE, B_LINES = ACROSS * OWN;
    static constexpr int STAGES = ACROSS == 2 ? 3 : 4, BLOCKS = ACROSS == 2 ? 2 : 1;
    static constexpr int A_TILE = A_LINES * DEPTH, TILES = A_TILE + B_LINES * DEPTH;
    static constexpr int BYTES = STAGES * TILES * (int)sizeof(bf16);
};

/* Begin to copy a tile of LINES: `lines` of `depth` numbers along k, ALONG in a row of
 * memory, rows ld apart; zeros elsewhere. */
template <bool ALONG, int LINES, int THREADS>
static __device__ inline void load_tile(bf16 *tile, const bf16 *x, int ld, int lines,
                                        int depth)
{
    constexpr int CHUNKS = (ALONG ? DEPTH : LINES) / 8, STEP = THREADS / CHUNKS;
    constexpr int ROWS = ALONG ? LINES : DEPTH;
    static_assert(STEP % 8 == 0 && ROWS % STEP == 0, "whole steps, one swizzle");
    const int chunk = (int)threadIdx.x % CHUNKS, row = (int)threadIdx.x / CHUNKS;
    const int rows = 8 * chunk < (ALONG ? depth : lines) ? ALONG ? lines : depth : 0;
    tile += row * 8 * CHUNKS + 8 * (chunk ^ row % 8);
    x += (size_t)row * (size_t)ld + (size_t)(8 * chunk);
#pragma unroll
    for (int r = 0; r < ROWS; r += STEP, x += (size_t)STEP * (size_t)ld)
        pl_copy_async<16>(tile + r * 8 * CHUNKS, x, row + r < rows);
}

/* Where a lane's row for ldmatrix is in the 16 lines from `line` on (a multiple of 64),
 * first 16 of k. LEFT: the matrices of a first factor, 8 lines below 8 lines first. */
template <bool ALONG, int LINES, bool LEFT>
static __device__ inline int lane_at(int line)
{
    const int lane = pl_lane(), half = lane / 8 % 2, other = lane / 16;
    const int row = lane % 8 + 8 * (LEFT == ALONG ? half : other);
    const int chunk = LEFT == ALONG ? other : half;
    const int at = 8 * (chunk ^ row % 8);
    return ALONG ? (line + row) * DEPTH + at : row * LINES + line + at;
}

/* The four matrices of 16 lines from 16 i on, 16 of k from 16 k on: the swizzle is
 * within 8 chunks. */
template <bool ALONG, int LINES>
static __device__ inline void load_matrices(unsigned x[4], const bf16 *tile, int at,
                                            int i, int k)
{
    if (ALONG)
        pl_ldmatrix(x, tile + (at ^ 16 * k) + 16 * i * DEPTH);
    else
        pl_ldmatrix_trans(x, tile + (at ^ 16 * i) + 16 * k * LINES);
}

/* c += the warp's part of a b. */
template <class K>
static __device__ inline void multiply(float c[DOWN][RIGHT][4], const bf16 *a,
                                       const bf16 *b, int a_at, int b_at)
{
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        unsigned x[DOWN][4], y[4];
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            load_matrices<K::A_ALONG, K::A_LINES>(x[i], a, a_at, i, k);
#pragma unroll
        for (int j = 0; j < RIGHT / 2; j++) {
            load_matrices<K::B_ALONG, K::B_LINES>(y, b, b_at, j, k);
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
                pl_mma(c[i][2 * j], x[i], y[0], y[1]);
                pl_mma(c[i][2 * j + 1], x[i], y[2], y[3]);
            }
        }
    }
}

/* y or dx: the warp's results pass through its part of the tiles, so that a row is
 * written in pieces of 16 bytes. lines, columns: how many there are from row and column
 * on. */
static __device__ inline void store_reals(const float c[DOWN][RIGHT][4], bf16 *part,
                                          bf16 *to, int ld, int lines, int columns,
                                          const float *bias)
{
    const int lane = pl_lane(), g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < RIGHT; j++) {
        const int column = 8 * j + 2 * t;
        const bool biased = bias && column < columns;
        const float low = biased ? bias[column] : 0,
                    high = biased ? bias[column + 1] : 0;
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(unsigned *)(part + (16 * i + 8 * h + g) * OWN + 8 * (j ^ g) + 2 * t) =
                    pl_pair(c[i][j][2 * h] + low, c[i][j][2 * h + 1] + high);
    }
    __syncwarp();
    for (int at = lane; at < OWN * OWN / 8; at += PL_WARP) {
        const int row = at / (OWN / 8), chunk = at % (OWN / 8);
        if (row < lines && 8 * chunk < columns)
            *(uint4 *)(to + (size_t)row * (size_t)ld + (size_t)(8 * chunk)) =
                *(const uint4 *)(part + row * OWN + 8 * (chunk ^ row % 8));
    }
}

/* dW += the warp's results. */
static __device__ inline void add_floats(const float c[DOWN][RIGHT][4], float *to,
                                         int ld, int lines, int columns)
{
    const int lane = pl_lane(), g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = 16 * i + 8 * h + g;
            float *at = to + (size_t)row * (size_t)ld + (size_t)(2 * t);
            if (row >= lines) continue;
#pragma unroll
            for (int j = 0; j < RIGHT; j++) {
                if (8 * j >= columns) continue; /* a multiple of 8 */
                float2 old = *(const float2 *)(at + 8 * j);
                old.x += c[i][j][2 * h];
                old.y += c[i][j][2 * h + 1];
                *(float2 *)(at + 8 * j) = old;
            }
        }
}

/* The factors of a tile: where they begin, their lines, and what both have of k. */
struct factors {
    const bf16 *a, *b;
    int a_ld, b_ld, a_lines, b_lines, depth;
};

template <enum pl_product WHICH>
static __device__ inline struct factors factors_of(const struct groups &p,
                                                   const struct tile &t)
{
    constexpr bool DW = WHICH == PL_PRODUCT_DW, Y = WHICH == PL_PRODUCT_Y;
    struct factors f;
    f.a_ld = Y ? p.in : p.out;
    f.b_ld = p.in;
    f.a_lines = t.end - t.row;
    f.b_lines = (Y ? p.out : p.in) - t.column;
    f.depth = DW ? t.rows : f.a_ld;
    f.a = (const bf16 *)p.a + (size_t)(DW ? t.first : t.row) * (size_t)f.a_ld;
    if (DW) f.a += t.row;
    f.b = (const bf16 *)p.b + (size_t)t.column * (size_t)(Y ? p.in : 1);
    f.b += DW ? (size_t)t.first * (size_t)p.in : (size_t)t.group * p.b_stride;
    return f;
}

/* Begin to copy both tiles of step `step`, none beyond the last. */
template <class K>
static __device__ inline void load_step(const struct factors &f, bf16 *tiles, int step)
{
    const int left = f.depth - step * DEPTH;
    const size_t at = (size_t)step * DEPTH;
    if (left > 0) {
        bf16 *to = tiles + step % K::STAGES * K::TILES;
        load_tile<K::A_ALONG, K::A_LINES, K::THREADS>(
            to, f.a + at * (size_t)(K::A_ALONG ? 1 : f.a_ld), f.a_ld, f.a_lines, left);
        load_tile<K::B_ALONG, K::B_LINES, K::THREADS>(
            to + K::A_TILE, f.b + at * (size_t)(K::B_ALONG ? 1 : f.b_ld), f.b_ld,
            f.b_lines, left);
    }
    pl_copy_commit();
}

template <enum pl_product WHICH, int ACROSS>
static __global__ void __launch_bounds__(kind<WHICH, ACROSS>::THREADS,
                                         kind<WHICH, ACROSS>::BLOCKS)
    groups_kernel(struct groups p)
{
    using K = kind<WHICH, ACROSS>;
    PL_SHARED(bf16, tiles); /* (STAGES, TILES): first a's, then b's */
    struct tile t = {};
    if (!groups_tile<WHICH>(p, &t)) return;
    const struct factors f = factors_of<WHICH>(p, t);
    const int down = pl_warp() / ACROSS * OWN, right = pl_warp() % ACROSS * OWN;
    const int a_at = lane_at<K::A_ALONG, K::A_LINES, true>(down);
    const int b_at = lane_at<K::B_ALONG, K::B_LINES, false>(right);
    float c[DOWN][RIGHT][4] = {};
#pragma unroll
    for (int s = 0; s < K::STAGES - 1; s++) load_step<K>(f, tiles, s);
    for (int s = 0; s * DEPTH < f.depth; s++) {
        const bf16 *a = tiles + s % K::STAGES * K::TILES;
        pl_copy_wait_but<K::STAGES - 2>();
        __syncthreads(); /* all see tiles s, and nobody reads those before any more */
        load_step<K>(f, tiles, s + K::STAGES - 1);
        multiply<K>(c, a, a + K::A_TILE, a_at, b_at);
    }
    pl_copy_wait();
    __syncthreads();
    const int columns = WHICH == PL_PRODUCT_Y ? p.out : p.in;
    const int column = t.column + right, lines = t.end - t.row - down;
    const size_t at = (size_t)(t.row + down) * (size_t)columns + (size_t)column;
    if (lines <= 0 || column >= columns) return;
    if (WHICH == PL_PRODUCT_DW)
        add_floats(c, (float *)p.c + (size_t)t.group * p.g.stride + at, columns, lines,
                   columns - column);
    else
        store_reals(c, tiles + pl_warp() * OWN * OWN, (bf16 *)p.c + at, columns, lines,
                    columns - column,
                    p.bias ? p.bias + (size_t)t.group * p.g.stride + column : NULL);
}

/* y (groups,n) = x, rounded, of the groups that have rows. */
template <int N>
static __global__ void round_kernel(struct pl_groups g, size_t n, const float *x,
                                    bf16 *y)
{
    const size_t group = blockIdx.y;
    float v[N];
    if (!g.load[group]) return;
    x += group * g.stride;
    y += group * n;
    for (size_t i = pl_thread() * N; i < n; i += pl_threads() * N) {
        pl_get<N>(x + i, v);
        pl_put<N>(y + i, v);
    }
}

static int rounded(const struct pl_groups *g, size_t n, const float *w,
                   const void **out)
{
    int rc = pl_cuda_keep(&pl_cuda.weight, n * (size_t)g->n * sizeof(bf16));
    if (rc) return rc;
    auto *kernel = g->stride % 4 == 0 && pl_wide<bf16>((int)(n % 16), w)
                       ? round_kernel<8>
                       : round_kernel<1>;
    const dim3 grid((unsigned)pl_cuda_blocks(n / 8 + 1, PL_PROCESSORS), (unsigned)g->n);
    PL_LAUNCH(kernel, grid, PL_BLOCK, 0, *g, n, w, (bf16 *)pl_cuda.weight.at);
    *out = pl_cuda.weight.at;
    return pl_cuda_launched("rounding weights");
}

/* dW is written in pieces of 8 bytes, all else is read and written in 16. */
bool pl_cuda_groups_takes(enum pl_product which, const struct pl_groups *g, int in,
                          int out, const float *a, const float *b, const float *c)
{
    const bool dw = which == PL_PRODUCT_DW;
    return in % 8 == 0 && out % 8 == 0 && (uintptr_t)a % 16 == 0 &&
           (uintptr_t)c % (dw ? 8 : 16) == 0 &&
           (!dw || ((uintptr_t)b % 16 == 0 && g->stride % 2 == 0));
}

template <enum pl_product WHICH, int ACROSS>
static int launch(const struct pl_groups *g, int in, int out, const void *a,
                  const void *b, size_t b_stride, const float *bias, void *c)
{
    using K = kind<WHICH, ACROSS>;
    unsigned blocks;
    struct groups p = groups_of(WHICH, g, in, out, a, b, bias, c, K::B_LINES, &blocks);
    p.b_stride = b_stride;
    auto *kernel = groups_kernel<WHICH, ACROSS>;
    int rc = pl_cuda_shared((const void *)kernel, K::BYTES, "product_groups");
    if (rc) return rc;
    PL_LAUNCH(kernel, blocks, K::THREADS, K::BYTES, p);
    return pl_cuda_launched("product_groups");
}

int pl_cuda_groups_mma(enum pl_product which, const struct pl_groups *g, int in,
                       int out, const float *a, const float *b, const float *bias,
                       float *c)
{
    const size_t n = (size_t)in * (size_t)out;
    const int narrow = ((which == PL_PRODUCT_Y ? out : in) + PL_TILE - 1) / PL_TILE;
    const bool wide = narrow % 2 == 0 || narrow > 8; /* a half tile in vain at most */
    const void *right = b;
    if (!g->rows || !n) return 0;
    int rc = which == PL_PRODUCT_DW ? 0 : rounded(g, n, b, &right);
    if (rc) return rc;
    auto *to = which == PL_PRODUCT_Y
                   ? wide ? launch<PL_PRODUCT_Y, 4> : launch<PL_PRODUCT_Y, 2>
               : which == PL_PRODUCT_DX
                   ? wide ? launch<PL_PRODUCT_DX, 4> : launch<PL_PRODUCT_DX, 2>
               : wide ? launch<PL_PRODUCT_DW, 4>
                      : launch<PL_PRODUCT_DW, 2>;
    return to(g, in, out, a, right, n, bias, c);
}
