/* host: GEMM and its symmetric form, by the kernels of host_tile.h over a depth of
 * DEPTH at a time; op(B) is packed; op(A) is read in place when its rows lie along k
 * and packed when it is stored transposed. An element is the sum over k in order, DEPTH
 * terms at a time, so how C is cut for the threads changes no bit. Included once for
 * each instruction set, after host_tile.h. */
#ifndef PL_GPU_HOST_GEMM_H
#define PL_GPU_HOST_GEMM_H

#include "gpu/hostmem.h"

PL_PRODUCT_BY_GEMM(HOST(product), HOST(gemm), pl_hostmem_copy, HOST(add_rows))

/* PACKED: floats that stay in a core's own cache. */
enum { DEPTH = 256, COLUMNS = 512, ROWS = 240, PACKED = 1 << 18 };

#ifndef HOST_GEMM_BY_BLAS
/* C = alpha A B + beta D is cut into blocks of rows x columns, one a part. */
struct product {
    struct strided a, b;
    int M, N, K, rows, columns;
    bool lower; /* what lies above the diagonal is not wanted */
    float alpha, beta;
    const float *d;
    float *c;
    size_t ldc;
};

/* C = beta D, for a product without terms. */
static void scale(int M, int N, float beta, const float *d, float *c, size_t ldc)
{
    for (int i = 0; i < M; i++, c += ldc, d += ldc)
        for (int j = 0; j < N; j++) c[j] = beta == 0 ? 0 : beta * d[j];
}

/* Columns of C from j and rows of depth from k, with that part of op(B) packed. */
struct stretch {
    int j, columns, k, depth;
    const float *right;
};

enum { SQUARE = 8 * PANEL }; /* rows at a time of what is lower: whole panels */

static size_t slice_floats(const struct stretch *s)
{
    return right_floats(DEPTH, s->columns);
}

/* Rows of op(A) from i on, of slice k. Where C is symmetric, b, which is op(A)^T, has
 * them packed already, or they are packed as it is. */
static struct panels left_of(const struct product *p, const struct stretch *s, int i,
                             int rows, int k, int depth, struct panels b, float *left)
{
    struct strided a = p->a;
    a.at += (size_t)i * a.row + (size_t)(s->k + k) * a.col;
    if (a.row != 1 || a.col == 1) return (struct panels){a.at, 0, a.row};
    if (!p->lower) return pack_left(rows, depth, a, left);
    if (i + rows > s->j + s->columns)
        return pack_right(depth, rows, (struct strided){a.at, a.col, 1}, left);
    b.at += (size_t)((i - s->j) / PANEL) * b.stride;
    return b;
}

/* `rows` rows of C from row i, all of the depth while they are in cache. */
static void product_rows(const struct product *p, const struct stretch *s, int i,
                         int rows, float *left)
{
    const size_t at = (size_t)i * p->ldc + (size_t)s->j;
    struct tile t = {.alpha = p->alpha, .c = p->c + at, .ldc = p->ldc};
    for (int k = 0; k < s->depth; k += DEPTH) {
        const bool first = s->k + k == 0;
        t.K = least(DEPTH, s->depth - k);
        t.beta = first ? p->beta : 1;
        t.d = first ? p->d + at : t.c;
        const struct panels b = {s->right + (size_t)(k / DEPTH) * slice_floats(s),
                                 panel_stride(t.K, PANEL), PANEL};
        const struct panels a = left_of(p, s, i, rows, k, t.K, b, left);
        multiply_to(rows, s->columns, p->lower ? i - s->j : WHOLE, a, b, t);
    }
}

static void product_part(void *context, int part)
{
    const struct product *p = context;
    const int down = (p->M + p->rows - 1) / p->rows;
    int top = part % down * p->rows;
    const int bottom = least(p->M, top + p->rows);
    struct stretch s = {.j = part / down * p->columns};
    if (p->lower && s.j >= bottom) return;
    if (p->lower && top < s.j) top = s.j;
    s.columns = least(p->columns, (p->lower ? bottom : p->N) - s.j);
    const size_t slice = slice_floats(&s);
    /* a block of C that leaves the cache between slices is worth several at a time */
    const bool large = (size_t)p->rows * (size_t)s.columns > PACKED;
    const int slices = large && slice < PACKED ? (int)(PACKED / slice) : 1;
    const int rows = p->lower ? SQUARE : ROWS;
    float *right =
        pl_host_scratch((size_t)slices * slice + (p->lower ? right_floats(DEPTH, SQUARE)
                                                           : left_floats(DEPTH, ROWS)));
    float *left = right + (size_t)slices * slice;
    s.right = right;
    if (p->K == 0) {
        const size_t at = (size_t)top * p->ldc + (size_t)s.j;
        scale(bottom - top, s.columns, p->beta, p->d + at, p->c + at, p->ldc);
    }
    for (; s.k < p->K; s.k += slices * DEPTH) {
        s.depth = least(slices * DEPTH, p->K - s.k);
        for (int k = 0; k < s.depth; k += DEPTH) {
            struct strided b = p->b;
            b.at += (size_t)(s.k + k) * b.row + (size_t)s.j * b.col;
            pack_right(least(DEPTH, s.depth - k), s.columns, b,
                       right + (size_t)(k / DEPTH) * slice);
        }
        for (int i = top; i < bottom; i += rows)
            product_rows(p, &s, i, least(rows, bottom - i), left);
    }
}

/* Equal blocks of at most `most`, whole units. */
static int block_of(int n, int most, int unit)
{
    int blocks = (n + most - 1) / most;
    int size = blocks ? (n + blocks - 1) / blocks : 1;
    return (size + unit - 1) / unit * unit;
}

/* Two blocks of C for each thread; one in short products of which both factors are
 * packed (BRIEF: floating point operations); eight where nearly half are left out and
 * those on the diagonal are smaller. Each packs its columns of op(B) and takes its rows
 * of op(A) into its core's cache: least of both. */
enum { BRIEF = 1000000000 };
static void product_cut(struct product *p)
{
    const int threads = pl_pool_threads();
    const bool brief = p->a.row == 1 && 2.0 * p->M * p->N * p->K < BRIEF;
    const int wanted = threads == 1 ? 1 : threads * (p->lower ? 8 : brief ? 1 : 2);
    const int first = (p->N + COLUMNS - 1) / COLUMNS;
    int64_t best = INT64_MAX;
    for (int across = first; across == first || across <= wanted; across++) {
        int columns = block_of(p->N, (p->N + across - 1) / across, PANEL);
        int down = (wanted + across - 1) / across;
        if (down > p->M / (4 * TILE_ROWS)) down = p->M / (4 * TILE_ROWS);
        if (down < 1) down = 1;
        int64_t cost = (int64_t)across * p->M + (int64_t)down * p->N;
        if (cost >= best) continue;
        best = cost;
        p->columns = columns;
        p->rows =
            block_of(p->M, (p->M + down - 1) / down, p->lower ? PANEL : TILE_ROWS);
    }
}

/* C (M,N) = alpha op(A) op(B) + beta D, D laid out as C; lower: for what lies on and
 * under the diagonal, whatever becomes of the rest. */
static int gemm_to(bool ta, bool tb, bool lower, int M, int N, int K, float alpha,
                   const float *A, int lda, const float *B, int ldb, float beta,
                   const float *D, float *C, int ldc)
{
    size_t la = (size_t)lda, lb = (size_t)ldb;
    struct product p = {.a = {A, ta ? 1 : la, ta ? la : 1},
                        .b = {B, tb ? 1 : lb, tb ? lb : 1},
                        .M = M,
                        .N = N,
                        .K = K,
                        .lower = lower,
                        .alpha = alpha,
                        .beta = beta,
                        .d = D,
                        .c = C,
                        .ldc = (size_t)ldc};
    if (M == 0 || N == 0) return 0;
    product_cut(&p);
    pl_pool_for(((M + p.rows - 1) / p.rows) * ((N + p.columns - 1) / p.columns),
                product_part, &p);
    return 0;
}

#endif /* HOST_GEMM_BY_BLAS */

int HOST(gemm)(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
               int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    return gemm_to(ta, tb, false, M, N, K, alpha, A, lda, B, ldb, beta, C, C, ldc);
}

enum { STRIPE = 4 * LANES }; /* columns of the lower triangle, of a part */

struct mirror {
    int n;
    float *c;
    size_t ldc;
};

/* The upper half of a whole block on the diagonal = its lower one. */
static void mirror_block(float *c, size_t ldc)
{
    float turned[LANES * LANES];
    lane_index lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    transpose(c, ldc, turned, LANES);
    for (int i = 0; i < LANES; i++, c += ldc) {
        const lane_index upper = lane > i;
        const lane_index old = *(loose_index *)c,
                         new = *(loose_index *)(turned + i * LANES);
        *(loose_index *)c = (upper & new) | (~upper & old);
    }
}

/* Upper triangle of C (n,n) = lower, by blocks of a vector's lanes. */
static void mirror_part(void *context, int part)
{
    const struct mirror *p = context;
    const size_t ldc = p->ldc;
    const int j = part * STRIPE, end = least(p->n, j + STRIPE);
    for (int top = j; top < p->n; top += LANES)
        for (int left = j; left < least(top + 1, end); left += LANES) {
            float *from = p->c + (size_t)top * ldc + left,
                  *to = p->c + (size_t)left * ldc + top;
            const int rows = least(LANES, p->n - top),
                      columns = least(LANES, end - left);
            const bool whole = rows == LANES && columns == LANES;
            if (whole && top != left) transpose(from, ldc, to, ldc);
            if (whole && top == left) mirror_block(from, ldc);
            for (int k = 0; k < columns && !whole; k++)
                for (int i = top == left ? k + 1 : 0; i < rows; i++)
                    to[(size_t)k * ldc + (size_t)i] = from[(size_t)i * ldc + (size_t)k];
        }
}

/* C (n,n) = alpha op(A) op(A)^T + beta D: what is on and under the diagonal, then the
 * mirror. */
static int syrk_to(bool ta, int n, int k, float alpha, const float *A, int lda,
                   float beta, const float *D, float *C, int ldc)
{
    struct mirror m = {n, C, (size_t)ldc};
    gemm_to(ta, !ta, true, n, n, k, alpha, A, lda, A, lda, beta, D, C, ldc);
    pl_pool_for((n + STRIPE - 1) / STRIPE, mirror_part, &m);
    return 0;
}

int HOST(syrk)(bool ta, int n, int k, float alpha, const float *A, int lda, float beta,
               float *C, int ldc)
{
    return syrk_to(ta, n, k, alpha, A, lda, beta, C, C, ldc);
}

#endif
