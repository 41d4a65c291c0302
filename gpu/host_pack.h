/* host: matrices laid out for the kernels of host_gemm.h. Right-hand factors become
 * panels of PANEL columns, [k][column]; left-hand factors that are stored transposed
 * become panels of TILE_ROWS rows, [k][row]; what is missing in the last panel is zero.
 * Panels are an odd number of cache lines apart, for they are written side by side.
 * Included once for each instruction set, with HOST, LANES and TILE_ROWS defined. */
#ifndef PL_GPU_HOST_PACK_H
#define PL_GPU_HOST_PACK_H

#include "gpu/host_vec.h"

#include <string.h>

enum { PANEL = 2 * LANES, LINE = 16 };

/* A packed factor: panel p starts at at + p * stride, its rows are `step` apart, which
 * is as wide as it is. */
struct panels {
    const float *at;
    size_t stride, step;
};

/* Floats between panels of `width` columns or rows and depth K. */
static inline size_t panel_stride(int K, int width)
{
    size_t lines = ((size_t)K * (size_t)width + LINE - 1) / LINE;
    return (lines | 1) * LINE;
}

static inline size_t right_floats(int K, int N)
{
    return (size_t)((N + PANEL - 1) / PANEL) * panel_stride(K, PANEL);
}

static inline size_t left_floats(int K, int M)
{
    return (size_t)((M + TILE_ROWS - 1) / TILE_ROWS) * panel_stride(K, TILE_ROWS);
}

/* Columns that lie side by side: row after row, each cut into panels. */
static void pack_rows(int K, int N, const float *from, size_t step, float *out)
{
    const size_t stride = panel_stride(K, PANEL);
    const loose_vec zero = {0};
    for (int k = 0; k < K; k++, from += step, out += PANEL) {
        float *to = out;
        int j = 0;
        for (; j + PANEL <= N; j += PANEL, to += stride) {
            ((loose_vec *)to)[0] = *(const loose_vec *)(from + j);
            ((loose_vec *)to)[1] = *(const loose_vec *)(from + j + LANES);
        }
        if (j == N) continue;
        ((loose_vec *)to)[0] = ((loose_vec *)to)[1] = zero;
        for (; j < N; j++) *to++ = from[j];
    }
}

/* Stage w of a transposition swaps, of rows i and i + w, the lanes of row i that have
 * bit w with those of row i + w that lack it. Lanes of the second row count from LANES.
 */
#define LOW(j, w) ((j) & (w) ? LANES + ((j) ^ (w)) : (j))
#define HIGH(j, w) ((j) & (w) ? LANES + (j) : (j) ^ (w))
#define ALL(f, w)                                                               \
    {                                                                           \
        f(0, w), f(1, w), f(2, w), f(3, w), f(4, w), f(5, w), f(6, w), f(7, w), \
            f(8, w), f(9, w), f(10, w), f(11, w), f(12, w), f(13, w), f(14, w), \
            f(15, w)                                                            \
    }
static const int32_t low_lanes[4][16]
    __attribute__((aligned(64))) = {ALL(LOW, 1), ALL(LOW, 2), ALL(LOW, 4), ALL(LOW, 8)};
static const int32_t high_lanes[4][16] __attribute__((aligned(64))) = {
    ALL(HIGH, 1), ALL(HIGH, 2), ALL(HIGH, 4), ALL(HIGH, 8)};

/* LANES x LANES numbers, rows `step` apart, to rows `wide` apart, transposed. */
static inline __attribute__((always_inline)) void
transpose(const float *from, size_t step, float *out, size_t wide)
{
    vec x[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        x[i] = *(const loose_vec *)(from + (size_t)i * step);
#pragma GCC unroll 4
    for (int s = 0; 1 << s < LANES; s++) {
        lane_index low = *(const lane_index *)low_lanes[s];
        lane_index high = *(const lane_index *)high_lanes[s];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            if (i & 1 << s) continue;
            vec a = x[i], b = x[i + (1 << s)];
            x[i] = __builtin_shuffle(a, b, low);
            x[i + (1 << s)] = __builtin_shuffle(a, b, high);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) *(loose_vec *)(out + (size_t)i * wide) = x[i];
}

/* LANES columns or fewer (the rest zero), each K numbers in a row. */
static void pack_lanes(int K, int width, const float *from, size_t step, float *out)
{
    int k = 0;
    if (width == LANES)
        for (; k + LANES <= K; k += LANES)
            transpose(from + k, step, out + (size_t)k * PANEL, PANEL);
    for (; k < K; k++) {
        float *to = out + (size_t)k * PANEL;
        for (int j = 0; j < LANES; j++)
            to[j] = j < width ? from[(size_t)j * step + (size_t)k] : 0;
    }
}

static void pack_columns(int K, int N, const float *from, size_t step, float *out)
{
    for (int j = 0; j < N; j += PANEL, out += panel_stride(K, PANEL))
        for (int h = 0; h < 2; h++) {
            int first = j + h * LANES, width = least(LANES, N - first);
            pack_lanes(K, width > 0 ? width : 0,
                       from + (width > 0 ? (size_t)first * step : 0), step,
                       out + h * LANES);
        }
}

/* Right-hand factor b (K,N), one of its strides 1, to `out` of right_floats. */
static struct panels pack_right(int K, int N, struct strided b, float *out)
{
    if (b.col == 1)
        pack_rows(K, N, b.at, b.row, out);
    else
        pack_columns(K, N, b.at, b.col, out);
    return (struct panels){out, panel_stride(K, PANEL), PANEL};
}

/* TILE_ROWS numbers, by vectors that overlap where two cover them. */
static inline void copy_tile_rows(const float *from, float *to)
{
    if (TILE_ROWS > LANES) {
        memcpy(to, from, TILE_ROWS * sizeof *to);
        return;
    }
    typedef float half __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
    enum { LAST = TILE_ROWS - LANES / 2 };
    half first = *(const half *)from, last = *(const half *)(from + LAST);
    *(half *)to = first;
    *(half *)(to + LAST) = last;
}

/* Left-hand factor a (M,K) with row stride 1, to `out` of left_floats. Panels are more
 * streams of stores than the core follows by itself. */
static struct panels pack_left(int M, int K, struct strided a, float *out)
{
    const struct panels p = {out, panel_stride(K, TILE_ROWS), TILE_ROWS};
    const float *from = a.at;
    for (int k = 0; k < K; k++, from += a.col, out += TILE_ROWS) {
        float *to = out;
        int i = 0;
        for (; i + TILE_ROWS <= M; i += TILE_ROWS, to += p.stride) {
            __builtin_prefetch(to + 4 * TILE_ROWS, 1);
            copy_tile_rows(from + i, to);
        }
        if (i == M) continue;
        for (int r = 0; r < TILE_ROWS; r++) to[r] = i + r < M ? from[i + r] : 0;
    }
    return p;
}

#endif
