/* host: GEMM. C tiles of TILE_ROWS x 2 vectors stay in registers over a depth of DEPTH;
 * op(B) is packed into panels of two vectors (zero-padded), op(A) is read in place with
 * its two strides, so that a tall A with small K is touched once a panel. Included once
 * for each instruction set, with HOST, LANES and TILE_ROWS defined. */
#ifndef PL_GPU_HOST_GEMM_H
#define PL_GPU_HOST_GEMM_H

#include <string.h>

enum { PANEL = 2 * LANES, DEPTH = 256, COLUMNS = 256, ROWS = 480 };

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loose_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* A matrix read through two strides: element (i, k) is at[i * row + k * col]. */
struct strided {
    const float *at;
    size_t row, col;
};

/* Panels of a packed op(B): panel j / PANEL starts at at + j / PANEL * stride. */
struct panels {
    const float *at;
    size_t stride;
};

static inline int least(int a, int b)
{
    return a < b ? a : b;
}

static inline size_t panel_floats(int K, int N)
{
    return (size_t)(N + PANEL - 1) / PANEL * PANEL * (size_t)K;
}

/* K rows of `width` floats from strided.row apart, to panel rows; the rest is zero. */
static void pack_rows(int K, int width, const float *from, size_t step, float *out)
{
    const loose_vec zero = {0};
    for (int k = 0; k < K; k++, from += step, out += PANEL) {
        loose_vec *to = (loose_vec *)out;
        to[0] = width >= LANES ? *(const loose_vec *)from : zero;
        to[1] = width == PANEL ? *(const loose_vec *)(from + LANES) : zero;
        for (int i = width / LANES * LANES; i < width; i++) out[i] = from[i];
    }
}

static void pack_columns(int K, int width, const float *from, size_t step, float *out)
{
    if (width < PANEL) memset(out, 0, (size_t)K * PANEL * sizeof *out);
    for (int i = 0; i < width; i++, from += step)
        for (int k = 0; k < K; k++) out[(size_t)k * PANEL + (size_t)i] = from[k];
}

/* One of b's strides is 1. */
static struct panels pack(int K, int N, struct strided b, float *out)
{
    struct panels p = {out, (size_t)K * PANEL};
    for (int j = 0; j < N; j += PANEL, out += p.stride) {
        int width = least(PANEL, N - j);
        if (b.col == 1)
            pack_rows(K, width, b.at + j, b.row, out);
        else
            pack_columns(K, width, b.at + (size_t)j * b.col, b.col, out);
    }
    return p;
}

static inline __attribute__((always_inline)) void
store(const vec *sum, int vectors, float alpha, float beta, float *c, int width)
{
    float partial[PANEL];
    float *to = width < vectors * LANES ? partial : c;
    if (to == partial && beta != 0) memcpy(partial, c, (size_t)width * sizeof *c);
    for (int v = 0; v < vectors; v++) {
        loose_vec *at = (loose_vec *)(to + v * LANES);
        *at = beta == 0 ? alpha * sum[v] : alpha * sum[v] + beta * *at;
    }
    if (to == partial) memcpy(c, partial, (size_t)width * sizeof *c);
}

/* rows x (vectors * LANES) of C; rows and vectors are constants at every call. */
static inline __attribute__((always_inline)) void tile(int rows, int vectors, int K,
                                                       struct strided a, const float *b,
                                                       float alpha, float beta,
                                                       float *c, size_t ldc, int width)
{
    vec sum[TILE_ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (vec){0};
    for (int k = 0; k < K; k++, b += PANEL) {
        const float *p = a.at + (size_t)k * a.col;
        vec b0 = *(const loose_vec *)b, b1 = *(const loose_vec *)(b + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            float s = p[(size_t)r * a.row];
            sum[r][0] += s * b0;
            if (vectors == 2) sum[r][1] += s * b1;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        store(sum[r], vectors, alpha, beta, c + (size_t)r * ldc, width);
}

static inline __attribute__((always_inline)) void
column(int vectors, int M, int K, struct strided a, const float *b, float alpha,
       float beta, float *c, size_t ldc, int width)
{
    enum { PART = TILE_ROWS / 3 };
    int i = 0;
    for (; i + TILE_ROWS <= M; i += TILE_ROWS) {
        tile(TILE_ROWS, vectors, K, a, b, alpha, beta, c, ldc, width);
        a.at += TILE_ROWS * a.row;
        c += TILE_ROWS * ldc;
    }
    for (; i + PART <= M; i += PART) {
        tile(PART, vectors, K, a, b, alpha, beta, c, ldc, width);
        a.at += PART * a.row;
        c += PART * ldc;
    }
    for (; i < M; i++) {
        tile(1, vectors, K, a, b, alpha, beta, c, ldc, width);
        a.at += a.row;
        c += ldc;
    }
}

static void column1(int M, int K, struct strided a, const float *b, float alpha,
                    float beta, float *c, size_t ldc, int width)
{
    column(1, M, K, a, b, alpha, beta, c, ldc, width);
}

static void column2(int M, int K, struct strided a, const float *b, float alpha,
                    float beta, float *c, size_t ldc, int width)
{
    column(2, M, K, a, b, alpha, beta, c, ldc, width);
}

/* C = alpha A B + beta C with B packed; panels may be longer than K and wider than N.
 */
static void multiply(int M, int N, int K, float alpha, struct strided a,
                     struct panels b, float beta, float *c, size_t ldc)
{
    for (int j = 0; j < N; j += PANEL) {
        int width = least(PANEL, N - j);
        const float *panel = b.at + (size_t)(j / PANEL) * b.stride;
        (width > LANES ? column2 : column1)(M, K, a, panel, alpha, beta, c + j, ldc,
                                            width);
    }
}

#ifndef HOST_GEMM_BY_BLAS
/* C = beta C, for a product without terms. */
static void scale(int M, int N, float beta, float *c, size_t ldc)
{
    for (int i = 0; i < M; i++, c += ldc)
        for (int j = 0; j < N; j++) c[j] = beta == 0 ? 0 : beta * c[j];
}

int HOST(gemm)(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
               int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    size_t la = (size_t)lda, lb = (size_t)ldb, lc = (size_t)ldc;
    struct strided a = {A, ta ? 1 : la, ta ? la : 1};
    struct strided b = {B, tb ? 1 : lb, tb ? lb : 1};
    float *scratch = pl_host_scratch(panel_floats(DEPTH, COLUMNS));
    if (K == 0) scale(M, N, beta, C, lc);
    for (int j = 0; j < N; j += COLUMNS)
        for (int k = 0; k < K; k += DEPTH) {
            int depth = least(DEPTH, K - k), width = least(COLUMNS, N - j);
            size_t up = (size_t)k, right = (size_t)j;
            struct strided part = {b.at + up * b.row + right * b.col, b.row, b.col};
            struct panels p = pack(depth, width, part, scratch);
            for (int i = 0; i < M; i += ROWS) {
                size_t down = (size_t)i;
                struct strided left = {a.at + down * a.row + up * a.col, a.row, a.col};
                multiply(least(ROWS, M - i), width, depth, alpha, left, p, k ? 1 : beta,
                         C + down * lc + right, lc);
            }
        }
    return 0;
}

#endif /* HOST_GEMM_BY_BLAS */

/* Upper triangle of C (n,n) = lower, for the columns from j to j + width of the lower.
 */
static void mirror(int n, int j, int width, float *C, size_t ldc)
{
    enum { LINE = 16 };
    for (int top = j; top < n; top += LINE)
        for (int k = j; k < j + width; k++) {
            float *to = C + (size_t)k * ldc;
            for (int i = top > k ? top : k + 1; i < least(top + LINE, n); i++)
                to[i] = C[(size_t)i * ldc + (size_t)k];
        }
}

/* Products of whole blocks on and under the diagonal, then the mirror. */
int HOST(syrk)(bool ta, int n, int k, float alpha, const float *A, int lda, float beta,
               float *C, int ldc)
{
    enum { BLOCK = 2 * PANEL };
    for (int j = 0; j < n; j += BLOCK) {
        int width = least(BLOCK, n - j);
        const float *a = A + (size_t)j * (ta ? 1 : (size_t)lda);
        float *c = C + (size_t)j * (size_t)ldc + j;
        int rc =
            HOST(gemm)(ta, !ta, n - j, width, k, alpha, a, lda, a, lda, beta, c, ldc);
        if (rc) return rc;
        mirror(n, j, width, C, (size_t)ldc);
    }
    return 0;
}

#endif
