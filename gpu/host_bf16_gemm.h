/* host in bf16: GEMM on tiles (AMX; gpu/host_bf16_tiles.h says what those do). Both
 * factors are rounded to bf16 while they are packed; products are exact and summed in
 * float. A panel is 32 rows of the left or 32 columns of the right factor: for each 32
 * of k two tiles, pairs along k in one word, zero-padded. C is made in blocks of 32 x
 * 32 (2 x 2 tiles): the left panel is packed on the stack and lives in L1, the right
 * ones in L2.
 *
 * Included once for each kind of tiles, with HOST and LANES defined, and
 *   TILES_ON() TILES_OFF()                 eight full tiles for this thread, and none
 *   TILE_ZERO(t) TILE_LOAD(t, p, stride) TILE_STORE(t, p, stride) TILE_MUL(c, a, b)
 *   pairs_along(x, out)                    32 floats to 16 words of two bf16
 *   pairs_across(x, y, out)                16 + 16 floats to words x[i], y[i]
 *   transpose(in, out)                     16 x 16 words */
#ifndef PL_GPU_HOST_BF16_GEMM_H
#define PL_GPU_HOST_BF16_GEMM_H

#include "gpu/groups.h"
#include "gpu/host_vec.h"
#include "gpu/hostmem.h"

#include <stdalign.h>
#include <string.h>

enum { PANEL = 32, DEPTH = 512, COLUMNS = 1024, ROWS = 64 };
enum { TILE = 16 * 16, TILE_DEPTH = 32, TILE_ROW = 64 }; /* words, k, bytes */

typedef uint32_t word __attribute__((may_alias)); /* two bf16, the first one low */

/* Panels of a packed op(B): panel j / PANEL starts at at + j / PANEL * stride. Words,
 * kept where floats are (scratch). */
struct panels {
    float *at;
    size_t stride;
};

/* Words (of a float's size) that a panel of depth K takes. */
static inline size_t panel_stride(int K)
{
    return (size_t)(K + TILE_DEPTH - 1) / TILE_DEPTH * 2 * TILE;
}

static inline size_t panel_floats(int K, int N)
{
    return (size_t)(N + PANEL - 1) / PANEL * panel_stride(K);
}

/* 16 lines (rows of the left factor, columns of the right one) of 32 numbers along k as
 * a tile, whose rows are lines (left) or pairs of k (right). */
static void pack_tile(bool left, int lines, int depth, const float *x, size_t line,
                      size_t k, word *out)
{
    alignas(64) float whole[16 * TILE_DEPTH];
    alignas(64) word pairs[TILE];
    bool along = k == 1;
    if (lines < 16 || depth < TILE_DEPTH) {
        size_t to_line = along ? TILE_DEPTH : 1, to_k = along ? 1 : 16;
        memset(whole, 0, sizeof whole);
        for (size_t i = 0; i < (size_t)lines; i++)
            for (size_t j = 0; j < (size_t)depth; j++)
                whole[i * to_line + j * to_k] = x[i * line + j * k];
        x = whole, line = to_line, k = to_k;
    }
    word *to = along == left ? out : pairs;
    for (size_t i = 0; i < 16; i++)
        if (along)
            pairs_along(x + i * line, to + 16 * i);
        else
            pairs_across(x + 2 * i * k, x + (2 * i + 1) * k, to + 16 * i);
    if (to == pairs) transpose(pairs, out);
}

static void pack_panel(bool left, int lines, int depth, const float *x, size_t line,
                       size_t k, word *out)
{
    for (int d = 0; d < depth; d += TILE_DEPTH, x += TILE_DEPTH * k)
        for (int i = 0; i < PANEL; i += 16, out += TILE)
            if (i < lines)
                pack_tile(left, least(16, lines - i), least(TILE_DEPTH, depth - d),
                          x + (size_t)i * line, line, k, out);
            else
                memset(out, 0, TILE * sizeof *out);
}

/* op(B); one of b's strides is 1. */
static void pack(int K, int N, struct strided b, struct panels to)
{
    for (int j = 0; j < N; j += PANEL, to.at += to.stride)
        pack_panel(false, least(PANEL, N - j), K, b.at + (size_t)j * b.col, b.col,
                   b.row, (word *)to.at);
}

/* Tiles 0 to 3 += two by two tiles of the product, or those that there are. */
static inline __attribute__((always_inline)) void
accumulate(bool two_down, bool two_right, int steps, const word *a, const word *b)
{
    for (int k = 0; k < steps; k++, a += 2 * TILE, b += 2 * TILE) {
        TILE_LOAD(6, b, TILE_ROW);
        TILE_LOAD(4, a, TILE_ROW);
        TILE_MUL(0, 4, 6);
        if (two_right) {
            TILE_LOAD(7, b + TILE, TILE_ROW);
            TILE_MUL(1, 4, 7);
        }
        if (two_down) {
            TILE_LOAD(5, a + TILE, TILE_ROW);
            TILE_MUL(2, 5, 6);
        }
        if (two_down && two_right) TILE_MUL(3, 5, 7);
    }
}

static void accumulate_block(int rows, int width, int steps, const word *a,
                             const word *b)
{
    if (rows > 16 && width > 16)
        accumulate(true, true, steps, a, b);
    else if (rows > 16)
        accumulate(true, false, steps, a, b);
    else if (width > 16)
        accumulate(false, true, steps, a, b);
    else
        accumulate(false, false, steps, a, b);
}

/* C (rows x width, at most 32 x 32) = alpha A B + beta C from one panel of each. A
 * whole block with alpha 1 goes from C to the tiles and back, any other one through
 * `sum`. */
static void block(int rows, int width, int steps, const word *a, const word *b,
                  float alpha, float beta, float *c, size_t ldc)
{
    alignas(64) float sum[PANEL * PANEL];
    size_t row = 4 * ldc;
    bool whole = rows == PANEL && width == PANEL && alpha == 1;
    float *low = c + 16 * ldc;
    if (whole && beta == 1) {
        TILE_LOAD(0, c, row);
        TILE_LOAD(1, c + 16, row);
        TILE_LOAD(2, low, row);
        TILE_LOAD(3, low + 16, row);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    accumulate_block(rows, width, steps, a, b);
    whole = whole && (beta == 0 || beta == 1);
    float *to = whole ? c : sum;
    size_t to_ld = whole ? ldc : PANEL, bytes = 4 * to_ld;
    TILE_STORE(0, to, bytes);
    TILE_STORE(1, to + 16, bytes);
    TILE_STORE(2, to + 16 * to_ld, bytes);
    TILE_STORE(3, to + 16 * to_ld + 16, bytes);
    if (whole) return;
    for (int r = 0; r < rows; r++, c += ldc) {
        const float *s = sum + r * PANEL;
#pragma omp simd
        for (int j = 0; j < width; j++)
            c[j] = beta == 0 ? alpha * s[j] : alpha * s[j] + beta * c[j];
    }
}

/* C = alpha A B + beta C with B packed; panels may be longer than K and wider than N.
 */
static void multiply(int M, int N, int K, float alpha, struct strided a,
                     struct panels b, float beta, float *c, size_t ldc)
{
    alignas(64) word left[DEPTH / TILE_DEPTH * 2 * TILE];
    TILES_ON();
    for (int i = 0; i < M; i += PANEL)
        for (int k = 0; k < K; k += DEPTH) {
            int rows = least(PANEL, M - i), depth = least(DEPTH, K - k);
            int steps = (depth + TILE_DEPTH - 1) / TILE_DEPTH;
            const float *from = a.at + (size_t)i * a.row + (size_t)k * a.col;
            pack_panel(true, rows, depth, from, a.row, a.col, left);
            for (int j = 0; j < N; j += PANEL) {
                const float *right = b.at + (size_t)(j / PANEL) * b.stride;
                block(rows, least(PANEL, N - j), steps, left,
                      (const word *)(right + panel_stride(k)), alpha, k ? 1 : beta,
                      c + (size_t)i * ldc + j, ldc);
            }
        }
    TILES_OFF();
}

struct gemm {
    int M, N, K; /* of this part of op(B): COLUMNS wide, DEPTH deep at most */
    float alpha, beta;
    struct strided a, b;
    struct panels packed;
    float *c;
    size_t ldc;
};

static void pack_part(void *context, int i)
{
    const struct gemm *g = context;
    struct strided b = g->b;
    struct panels to = g->packed;
    b.at += (size_t)(i * PANEL) * b.col;
    to.at += (size_t)i * to.stride;
    pack(g->K, least(PANEL, g->N - i * PANEL), b, to);
}

static void multiply_part(void *context, int i)
{
    const struct gemm *g = context;
    struct strided a = g->a;
    size_t down = (size_t)i * ROWS;
    a.at += down * a.row;
    multiply(least(ROWS, g->M - i * ROWS), g->N, g->K, g->alpha, a, g->packed, g->beta,
             g->c + down * g->ldc, g->ldc);
}

/* C = beta C, for a product without terms. */
static void scale(int M, int N, float beta, float *c, size_t ldc)
{
    for (int i = 0; i < M; i++, c += ldc)
        for (int j = 0; j < N; j++) c[j] = beta == 0 ? 0 : beta * c[j];
}

int HOST(gemm)(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
               int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    size_t la = (size_t)lda, lb = (size_t)ldb;
    struct strided a = {A, ta ? 1 : la, ta ? la : 1};
    struct strided b = {B, tb ? 1 : lb, tb ? lb : 1};
    struct gemm g = {.M = M, .alpha = alpha, .a = a, .b = b, .ldc = (size_t)ldc};
    g.packed.at = pl_host_scratch(panel_floats(least(K, DEPTH), least(N, COLUMNS)));
    if (K == 0) scale(M, N, beta, C, g.ldc);
    for (int j = 0; j < N; j += COLUMNS)
        for (int k = 0; k < K; k += DEPTH) {
            g.N = least(COLUMNS, N - j);
            g.K = least(DEPTH, K - k);
            g.packed.stride = panel_stride(g.K);
            g.beta = k ? 1 : beta;
            g.a.at = a.at + (size_t)k * a.col;
            g.b.at = b.at + (size_t)k * b.row + (size_t)j * b.col;
            g.c = C + j;
            pl_pool_for((g.N + PANEL - 1) / PANEL, pack_part, &g);
            pl_pool_for((M + ROWS - 1) / ROWS, multiply_part, &g);
        }
    return 0;
}

PL_PRODUCT_BY_GEMM(HOST(product), HOST(gemm), pl_hostmem_copy, pl_device_host.add_rows)

int HOST(product_groups)(enum pl_product which, const struct pl_groups *groups, int in,
                         int out, const float *a, const float *b, const float *bias,
                         float *c)
{
    return pl_groups_product(HOST(product), which, groups, in, out, a, b, bias, c);
}

#endif
