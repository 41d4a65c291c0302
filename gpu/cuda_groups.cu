/* cuda: products of rows in groups, of any size. fp32 (also where products are tf32,
 * which is coarser) by a tiled kernel whose threads own 8 x 8 results; bf16 by tensor
 * cores (cuda_groups_mma.cu) where sizes and addresses allow it, else by this kernel
 * with factors rounded to bf16, which computes the same. */
#include "gpu/cuda_groups.cuh"

constexpr int DEPTH = 16, PAD = 4, OWN = 8;

/* As a factor where activations are R: weights are rounded. */
template <class R> static __device__ inline float factor_of(float x)
{
    return sizeof(R) == 2 ? pl_float(__float2bfloat16(x)) : x;
}
template <class R> static __device__ inline float factor_of(__nv_bfloat16 x)
{
    return pl_float(x);
}

/* part[k][line] = element k of a line of a factor, 0 outside. ALONG: a line's elements
 * are neighbours and lines ld apart; else the other way round. */
template <class R, bool ALONG, class T>
static __device__ inline void load_part(float part[DEPTH][PL_TILE + PAD], const T *x,
                                        size_t ld, int lines, int depth)
{
    constexpr int WIDTH = ALONG ? DEPTH : PL_TILE, STEP = (int)PL_BLOCK / WIDTH;
    const int inner = (int)threadIdx.x % WIDTH, first = (int)threadIdx.x / WIDTH;
    const bool there = inner < (ALONG ? depth : lines);
    x += (size_t)first * ld + (size_t)inner;
#pragma unroll 4
    for (int i = first; i < DEPTH * PL_TILE / WIDTH; i += STEP, x += (size_t)STEP * ld)
        part[ALONG ? inner : i][ALONG ? i : inner] =
            there && i < (ALONG ? lines : depth) ? factor_of<R>(*x) : 0.0f;
}

/* c += the product of two parts: the thread's rows 4 ty .. and 64 + 4 ty .., columns
 * likewise. */
static __device__ inline void multiply_parts(float c[OWN][OWN],
                                             const float a[DEPTH][PL_TILE + PAD],
                                             const float b[DEPTH][PL_TILE + PAD])
{
    const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
#pragma unroll 2
    for (int k = 0; k < DEPTH; k++) {
        float x[OWN], y[OWN];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            pl_get<4>(&a[k][64 * h + 4 * ty], x + 4 * h);
            pl_get<4>(&b[k][64 * h + 4 * tx], y + 4 * h);
        }
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < OWN; j++) c[i][j] += x[i] * y[j];
    }
}

/* The tile of the result; C is R, or float for dW, to which is added. */
template <enum pl_product WHICH, class C>
static __device__ inline void store_tile(const struct groups &p, const struct tile &t,
                                         const float c[OWN][OWN], C *to, int columns)
{
    const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
    const int left = columns - t.column - 4 * tx;
    const float *bias = p.bias;
    if (bias) bias += (size_t)t.group * p.g.stride + (size_t)(t.column + 4 * tx);
    to += (size_t)(t.column + 4 * tx);
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int row = t.row + i / 4 * 64 + 4 * ty + i % 4;
        C *at = to + (size_t)row * (size_t)columns;
        if (row >= t.end) continue;
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            const int k = j / 4 * 64 + j % 4;
            if (k >= left) continue;
            if (WHICH == PL_PRODUCT_DW)
                pl_set(at + k, pl_float(at[k]) + c[i][j]);
            else
                pl_set(at + k, bias ? c[i][j] + bias[k] : c[i][j]);
        }
    }
}

template <class R, enum pl_product WHICH>
static __global__ void __launch_bounds__(PL_BLOCK, 2) plain_kernel(struct groups p)
{
    alignas(16) __shared__ float a[DEPTH][PL_TILE + PAD];
    alignas(16) __shared__ float b[DEPTH][PL_TILE + PAD];
    struct tile t = {};
    if (!groups_tile<WHICH>(p, &t)) return;
    const size_t in = (size_t)p.in, out = (size_t)p.out, column = (size_t)t.column;
    const int columns = WHICH == PL_PRODUCT_Y ? p.out : p.in;
    const int depth = WHICH == PL_PRODUCT_Y    ? p.in
                      : WHICH == PL_PRODUCT_DX ? p.out
                                               : t.rows;
    const R *left = (const R *)p.a, *right = (const R *)p.b;
    const float *w = (const float *)p.b + (size_t)t.group * p.b_stride;
    float c[OWN][OWN] = {};
    for (int k = 0; k < depth; k += DEPTH) {
        const size_t at = (size_t)k;
        if (WHICH == PL_PRODUCT_DW) {
            const size_t row = (size_t)t.first + at;
            load_part<R, false>(a, left + row * out + (size_t)t.row, out, t.end - t.row,
                                depth - k);
            load_part<R, false>(b, right + row * in + column, in, columns - t.column,
                                depth - k);
        } else {
            const size_t ld = (size_t)depth;
            load_part<R, true>(a, left + (size_t)t.row * ld + at, ld, t.end - t.row,
                               depth - k);
            if (WHICH == PL_PRODUCT_Y)
                load_part<R, true>(b, w + column * in + at, in, columns - t.column,
                                   depth - k);
            else
                load_part<R, false>(b, w + at * in + column, in, columns - t.column,
                                    depth - k);
        }
        __syncthreads();
        multiply_parts(c, a, b);
        __syncthreads();
    }
    if (WHICH == PL_PRODUCT_DW)
        store_tile<WHICH>(p, t, c, (float *)p.c + (size_t)t.group * p.g.stride,
                          columns);
    else
        store_tile<WHICH>(p, t, c, (R *)p.c, columns);
}

template <class R>
static int plain(enum pl_product which, const struct pl_groups *groups, int in, int out,
                 const float *a, const float *b, const float *bias, float *c)
{
    unsigned blocks;
    if (!groups->rows || !in || !out) return 0;
    const struct groups p =
        groups_of(which, groups, in, out, a, b, bias, c, PL_TILE, &blocks);
    auto *kernel = which == PL_PRODUCT_Y    ? plain_kernel<R, PL_PRODUCT_Y>
                   : which == PL_PRODUCT_DX ? plain_kernel<R, PL_PRODUCT_DX>
                                            : plain_kernel<R, PL_PRODUCT_DW>;
    PL_LAUNCH(kernel, blocks, PL_BLOCK, 0, p);
    return pl_cuda_launched("product_groups");
}

int pl_cuda_product_groups(enum pl_product which, const struct pl_groups *groups,
                           int in, int out, const float *a, const float *b,
                           const float *bias, float *c)
{
    return plain<float>(which, groups, in, out, a, b, bias, c);
}

int pl_cuda16_product_groups(enum pl_product which, const struct pl_groups *groups,
                             int in, int out, const float *a, const float *b,
                             const float *bias, float *c)
{
    return (pl_cuda_groups_takes(which, groups, in, out, a, b, c)
                ? pl_cuda_groups_mma
                : plain<__nv_bfloat16>)(which, groups, in, out, a, b, bias, c);
}

/* A block has PL_WARP columns of a group; warp w adds up rows w, w + PL_ROWS ... */
template <class R>
static __global__ void bias_back_kernel(struct pl_groups g, int d, const R *dy,
                                        float *db)
{
    __shared__ float part[PL_ROWS][PL_WARP];
    const int column = (int)blockIdx.x * PL_WARP + pl_lane();
    int group, first, end;
    float sum = 0;
    groups_find(g, (int)blockIdx.y, 0, &group, &first, &end);
    for (int r = first + pl_warp(); r < end && column < d; r += PL_ROWS)
        sum += pl_float(dy[(size_t)r * (size_t)d + (size_t)column]);
    part[pl_warp()][pl_lane()] = sum;
    __syncthreads();
    if (pl_warp() || column >= d || first == end) return;
    for (int w = 1; w < PL_ROWS; w++) sum += part[w][pl_lane()];
    db[(size_t)group * g.stride + (size_t)column] += sum;
}

template <class R>
static int bias_groups_back(const struct pl_groups *groups, int d, const float *dy,
                            float *db)
{
    if (!groups->rows || !d) return 0;
    const dim3 grid((unsigned)((d + PL_WARP - 1) / PL_WARP), (unsigned)groups->n);
    PL_LAUNCH(bias_back_kernel<R>, grid, PL_BLOCK, 0, *groups, d, (const R *)dy, db);
    return pl_cuda_launched("bias_groups_back");
}

PL_OPS_GROUPS(PL_CUDA_BOTH, )
