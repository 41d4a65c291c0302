/* host: GEMM. C tiles of TILE_ROWS x 2 vectors stay in registers over a depth of DEPTH;
 * op(B) is packed (host_pack.h); op(A) is read in place when its rows lie along k and
 * packed when it is stored transposed. An element is the sum over k in order, DEPTH
 * terms at a time, so how C is cut for the threads changes no bit. Included once for
 * each instruction set, after host_pack.h. */
#ifndef PL_GPU_HOST_GEMM_H
#define PL_GPU_HOST_GEMM_H

#include "gpu/hostmem.h"

PL_PRODUCT_BY_GEMM(HOST(product), HOST(gemm), pl_hostmem_copy, HOST(add_rows))

/* PACKED: floats that stay in a core's own cache. */
enum { DEPTH = 256, COLUMNS = 512, ROWS = 240, PACKED = 1 << 18 };

/* A tile of C = alpha A B + beta C. A packed: [k][row]; in place: rows `row` apart. */
struct tile {
    int K;
    const float *a, *b;
    size_t row, step; /* of a in place; between the rows of b */
    float alpha, beta, *c;
    size_t ldc;
};

/* rows, vectors and packed are constants at every call. In place, rows are reached from
 * a pointer for every third: four registers instead of twelve. What comes next from
 * further caches is fetched evenly over k: row after row of C and, in place, of the
 * next tile's A. */
static inline __attribute__((always_inline)) void
tile_of(int rows, int vectors, bool packed, const struct tile *t)
{
    vec sum[TILE_ROWS][2];
    const float *third[TILE_ROWS / 3 + 1], *a = t->a, *b = t->b;
    const size_t row = t->row, step = t->step;
    const int share = (t->K + rows - 1) / rows;
    const float *next = a + (size_t)rows * row;
    float *c = t->c;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (vec){0};
#pragma GCC unroll 16
    for (int r = 0; r < rows; r += 3) third[r / 3] = a + (size_t)r * row;
    for (int left = t->K; left > 0; left -= share, next += row, c += t->ldc) {
        const float *soon = next;
        __builtin_prefetch(c, 1);
        if (vectors == 2) __builtin_prefetch(c + LANES, 1);
        for (int k = least(share, left); k > 0; k--, b += step) {
            if (!packed) __builtin_prefetch(soon);
            soon += rows;
            vec b0 = *(const loose_vec *)b, b1 = b0;
            if (vectors == 2) b1 = *(const loose_vec *)(b + LANES);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                vec s =
                    (packed ? a[r] : third[r / 3][(size_t)(r % 3) * row]) - (vec){0};
                sum[r][0] += s * b0;
                if (vectors == 2) sum[r][1] += s * b1;
            }
            a += TILE_ROWS;
#pragma GCC unroll 16
            for (int r = 0; r < rows; r += 3) third[r / 3]++;
        }
    }
    c = t->c;
    const float alpha = t->alpha, beta = t->beta;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += t->ldc)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            loose_vec *at = (loose_vec *)(c + v * LANES);
            *at = beta == 0 ? alpha * sum[r][v] : alpha * sum[r][v] + beta * *at;
        }
}

enum { PART = TILE_ROWS / 3 };

#define TILE(name, rows, vectors, packed)                            \
    static __attribute__((noinline)) void name(const struct tile *t) \
    {                                                                \
        tile_of(rows, vectors, packed, t);                           \
    }
TILE(tile_packed1, TILE_ROWS, 1, true)
TILE(tile_packed2, TILE_ROWS, 2, true)
TILE(part_packed1, PART, 1, true)
TILE(part_packed2, PART, 2, true)
TILE(tile_placed1, TILE_ROWS, 1, false)
TILE(tile_placed2, TILE_ROWS, 2, false)
TILE(part_placed1, PART, 1, false)
TILE(part_placed2, PART, 2, false)
TILE(row_placed1, 1, 1, false)
TILE(row_placed2, 1, 2, false)

typedef void tile_kernel(const struct tile *t);

/* `rows` x `width` of C by a kernel of whole vectors and, packed, perhaps more rows. */
static void partial_tile(tile_kernel *kernel, struct tile *t, int rows, int width)
{
    float whole[TILE_ROWS * PANEL], *c = t->c;
    size_t ldc = t->ldc, bytes = (size_t)width * sizeof *c;
    for (int r = 0; t->beta != 0 && r < rows; r++)
        memcpy(whole + r * PANEL, c + (size_t)r * ldc, bytes);
    t->c = whole;
    t->ldc = PANEL;
    kernel(t);
    t->c = c;
    t->ldc = ldc;
    for (int r = 0; r < rows; r++)
        memcpy(c + (size_t)r * ldc, whole + r * PANEL, bytes);
}

/* One panel of B, A in place. */
static void column(int M, int width, struct tile t)
{
    const bool two = width > LANES, whole = width == PANEL || width == LANES;
    for (int i = 0, rows; i < M; i += rows) {
        tile_kernel *kernel = two ? row_placed2 : row_placed1;
        rows = 1;
        if (M - i >= TILE_ROWS) {
            rows = TILE_ROWS;
            kernel = two ? tile_placed2 : tile_placed1;
        } else if (M - i >= PART) {
            rows = PART;
            kernel = two ? part_placed2 : part_placed1;
        }
        if (whole)
            kernel(&t);
        else
            partial_tile(kernel, &t, rows, width);
        t.a += (size_t)rows * t.row;
        t.c += (size_t)rows * t.ldc;
    }
}

/* One panel of B, A packed with panels `stride` apart. */
static void column_packed(int M, int width, size_t stride, struct tile t)
{
    const bool two = width > LANES, whole = width == PANEL || width == LANES;
    for (int i = 0; i < M; i += TILE_ROWS) {
        int rows = least(TILE_ROWS, M - i);
        tile_kernel *kernel = two ? tile_packed2 : tile_packed1;
        if (rows <= PART) kernel = two ? part_packed2 : part_packed1;
        if (whole && (rows == TILE_ROWS || rows == PART))
            kernel(&t);
        else
            partial_tile(kernel, &t, rows, width);
        t.a += stride;
        t.c += TILE_ROWS * t.ldc;
    }
}

/* C = alpha A B + beta C, A with rows along k, B packed; panels may be longer than K
 * and wider than N. */
static void multiply(int M, int N, int K, float alpha, const float *a, size_t row,
                     struct panels b, float beta, float *c, size_t ldc)
{
    struct tile t = {K, a, b.at, row, b.step, alpha, beta, c, ldc};
    for (int j = 0; j < N; j += PANEL, t.b += b.stride, t.c += PANEL)
        column(M, least(PANEL, N - j), t);
}

/* The same with A packed. */
static void multiply_packed(int M, int N, int K, float alpha, struct panels a,
                            struct panels b, float beta, float *c, size_t ldc)
{
    struct tile t = {K, a.at, b.at, 0, b.step, alpha, beta, c, ldc};
    for (int j = 0; j < N; j += PANEL, t.b += b.stride, t.c += PANEL)
        column_packed(M, least(PANEL, N - j), a.stride, t);
}

#ifndef HOST_GEMM_BY_BLAS
/* C is cut into blocks of rows x columns, one a part. */
struct product {
    struct strided a, b;
    int M, N, K, rows, columns;
    float alpha, beta, *c;
    size_t ldc;
};

/* C = beta C, for a product without terms. */
static void scale(int M, int N, float beta, float *c, size_t ldc)
{
    for (int i = 0; i < M; i++, c += ldc)
        for (int j = 0; j < N; j++) c[j] = beta == 0 ? 0 : beta * c[j];
}

/* Columns of C from j and rows of depth from k, with that part of op(B) packed. */
struct stretch {
    int j, columns, k, depth;
    const float *right;
};

static size_t slice_floats(const struct stretch *s)
{
    return right_floats(DEPTH, s->columns);
}

/* `rows` rows of C from row i, all of the depth while they are in cache. */
static void product_rows(const struct product *p, const struct stretch *s, int i,
                         int rows, float *left)
{
    float *c = p->c + (size_t)i * p->ldc + s->j;
    for (int k = 0; k < s->depth; k += DEPTH) {
        const int depth = least(DEPTH, s->depth - k);
        const float beta = s->k + k ? 1 : p->beta;
        const struct panels b = {s->right + (size_t)(k / DEPTH) * slice_floats(s),
                                 panel_stride(depth, PANEL), PANEL};
        struct strided a = p->a;
        a.at += (size_t)i * a.row + (size_t)(s->k + k) * a.col;
        if (a.row == 1 && a.col != 1)
            multiply_packed(rows, s->columns, depth, p->alpha,
                            pack_left(rows, depth, a, left), b, beta, c, p->ldc);
        else
            multiply(rows, s->columns, depth, p->alpha, a.at, a.row, b, beta, c,
                     p->ldc);
    }
}

static void product_part(void *context, int part)
{
    const struct product *p = context;
    const int down = (p->M + p->rows - 1) / p->rows;
    const int top = part % down * p->rows, bottom = least(p->M, top + p->rows);
    struct stretch s = {.j = part / down * p->columns};
    s.columns = least(p->columns, p->N - s.j);
    const size_t slice = slice_floats(&s);
    /* a block of C that leaves the cache between slices is worth several at a time */
    const bool large = (size_t)p->rows * (size_t)s.columns > PACKED;
    const int slices = large && slice < PACKED ? (int)(PACKED / slice) : 1;
    float *right = pl_host_scratch((size_t)slices * slice + left_floats(DEPTH, ROWS));
    float *left = right + (size_t)slices * slice;
    s.right = right;
    if (p->K == 0)
        scale(bottom - top, s.columns, p->beta, p->c + (size_t)top * p->ldc + s.j,
              p->ldc);
    for (; s.k < p->K; s.k += slices * DEPTH) {
        s.depth = least(slices * DEPTH, p->K - s.k);
        for (int k = 0; k < s.depth; k += DEPTH) {
            struct strided b = p->b;
            b.at += (size_t)(s.k + k) * b.row + (size_t)s.j * b.col;
            pack_right(least(DEPTH, s.depth - k), s.columns, b,
                       right + (size_t)(k / DEPTH) * slice);
        }
        for (int i = top; i < bottom; i += ROWS)
            product_rows(p, &s, i, least(ROWS, bottom - i), left);
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
 * packed (BRIEF: floating point operations). Each packs its columns of op(B) and takes
 * its rows of op(A) into its core's cache: least of both. */
enum { BRIEF = 1000000000 };
static void product_cut(struct product *p)
{
    const int threads = pl_pool_threads();
    const bool brief = p->a.row == 1 && 2.0 * p->M * p->N * p->K < BRIEF;
    const int wanted = threads == 1 || brief ? threads : 2 * threads;
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
        p->rows = block_of(p->M, (p->M + down - 1) / down, TILE_ROWS);
    }
}

int HOST(gemm)(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
               int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    size_t la = (size_t)lda, lb = (size_t)ldb;
    struct product p = {.a = {A, ta ? 1 : la, ta ? la : 1},
                        .b = {B, tb ? 1 : lb, tb ? lb : 1},
                        .M = M,
                        .N = N,
                        .K = K,
                        .alpha = alpha,
                        .beta = beta,
                        .c = C,
                        .ldc = (size_t)ldc};
    if (M == 0 || N == 0) return 0;
    product_cut(&p);
    pl_pool_for(((M + p.rows - 1) / p.rows) * ((N + p.columns - 1) / p.columns),
                product_part, &p);
    return 0;
}

#endif /* HOST_GEMM_BY_BLAS */

/* Upper triangle of C (n,n) = lower, for the columns from j to j + width of the lower,
 * by blocks of a vector's lanes. */
static void mirror(int n, int j, int width, float *C, size_t ldc)
{
    for (int top = j; top < n; top += LANES)
        for (int left = j; left < least(top + 1, j + width); left += LANES) {
            float *from = C + (size_t)top * ldc + left,
                  *to = C + (size_t)left * ldc + top;
            const int rows = least(LANES, n - top),
                      columns = least(LANES, j + width - left);
            if (top != left && rows == LANES && columns == LANES) {
                transpose(from, ldc, to, ldc);
                continue;
            }
            for (int k = 0; k < columns; k++)
                for (int i = top == left ? k + 1 : 0; i < rows; i++)
                    to[(size_t)k * ldc + (size_t)i] = from[(size_t)i * ldc + (size_t)k];
        }
}

/* Products of whole blocks on and under the diagonal, then the mirror. */
int HOST(syrk)(bool ta, int n, int k, float alpha, const float *A, int lda, float beta,
               float *C, int ldc)
{
    /* narrow blocks compute little of the upper triangle, wide ones pack A less often
     */
    const int block = n > 16 * PANEL ? 2 * PANEL : PANEL;
    for (int j = 0; j < n; j += block) {
        int width = least(block, n - j);
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
