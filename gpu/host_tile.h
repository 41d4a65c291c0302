/* host: the kernels of products. C tiles of TILE_ROWS x 2 vectors stay in registers
 * over a depth; op(B) is packed (host_pack.h), op(A) packed or read in place. Included
 * once for each instruction set, after host_pack.h. */
#ifndef PL_GPU_HOST_TILE_H
#define PL_GPU_HOST_TILE_H

#include <limits.h>

/* A tile of C = alpha A B + beta D. A packed: [k][row], k `row` apart; in place: rows
 * `row` apart. */
struct tile {
    int K;
    const float *a, *b;
    size_t row, step; /* of a; between the rows of b */
    float alpha, beta;
    const float *d; /* C or apart from it, rows as far apart */
    float *c;
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
    const float *d = t->d;
    for (int left = t->K; left > 0; left -= share, next += row, c += t->ldc) {
        const float *soon = next;
        __builtin_prefetch(c, 1);
        __builtin_prefetch(d);
        if (vectors == 2) __builtin_prefetch(c + LANES, 1);
        if (vectors == 2) __builtin_prefetch(d + LANES);
        d += t->ldc;
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
            a += row; /* packed */
#pragma GCC unroll 16
            for (int r = 0; r < rows; r += 3) third[r / 3]++;
        }
    }
    c = t->c;
    d = t->d;
    const float alpha = t->alpha, beta = t->beta;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += t->ldc, d += t->ldc)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const loose_vec *from = (const loose_vec *)(d + v * LANES);
            *(loose_vec *)(c + v * LANES) =
                beta == 0 ? alpha * sum[r][v] : alpha * sum[r][v] + beta * *from;
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
    const float *d = t->d;
    size_t ldc = t->ldc, bytes = (size_t)width * sizeof *c;
    for (int r = 0; t->beta != 0 && r < rows; r++)
        memcpy(whole + r * PANEL, d + (size_t)r * ldc, bytes);
    t->d = t->c = whole;
    t->ldc = PANEL;
    kernel(t);
    t->c = c;
    t->d = d;
    t->ldc = ldc;
    for (int r = 0; r < rows; r++)
        memcpy(c + (size_t)r * ldc, whole + r * PANEL, bytes);
}

/* Which elements are wanted: of column j those from row j - reach on; what lies above
 * may be written too. WHOLE: all. */
enum { WHOLE = INT_MAX / 2 };

/* The first row with a wanted element in column 0. */
static inline int first_wanted(int reach)
{
    return reach < 0 ? -reach : 0;
}

/* Of rows up to `end`. */
static inline int width_wanted(int width, int reach, int end)
{
    return end + reach > LANES ? width : least(width, LANES);
}

/* Down by `rows`. */
static void shift(struct tile *t, int rows)
{
    t->c += (size_t)rows * t->ldc;
    t->d += (size_t)rows * t->ldc;
}

/* One panel of B, A in place. */
static void column(int M, int width, int reach, struct tile t)
{
    int i = first_wanted(reach);
    t.a += (size_t)i * t.row;
    shift(&t, i);
    for (int rows; i < M; i += rows) {
        rows = M - i >= TILE_ROWS ? TILE_ROWS : M - i >= PART ? PART : 1;
        const int wide = width_wanted(width, reach, i + rows);
        const bool two = wide > LANES;
        tile_kernel *kernel = two ? row_placed2 : row_placed1;
        if (rows == TILE_ROWS) kernel = two ? tile_placed2 : tile_placed1;
        if (rows == PART) kernel = two ? part_placed2 : part_placed1;
        if (wide == PANEL || wide == LANES)
            kernel(&t);
        else
            partial_tile(kernel, &t, rows, wide);
        t.a += (size_t)rows * t.row;
        shift(&t, rows);
    }
}

/* One panel of B, A packed with panels of t.row rows, `stride` apart. */
static void column_packed(int M, int width, int reach, size_t stride, struct tile t)
{
    const int tall = (int)t.row, skip = first_wanted(reach) / tall;
    t.a += (size_t)skip * stride;
    shift(&t, skip * tall);
    for (int i = skip * tall, rows; i < M; i += rows) {
        const int left = least(tall - i % tall, M - i);
        const bool part = left <= 2 * PART;
        rows = least(left, part ? PART : TILE_ROWS);
        const int wide = width_wanted(width, reach, i + rows);
        tile_kernel *kernel = wide > LANES ? tile_packed2 : tile_packed1;
        if (part) kernel = wide > LANES ? part_packed2 : part_packed1;
        if ((wide == PANEL || wide == LANES) && rows == (part ? PART : TILE_ROWS))
            kernel(&t);
        else
            partial_tile(kernel, &t, rows, wide);
        t.a += rows == left ? stride - (size_t)(i % tall) : (size_t)rows;
        shift(&t, rows);
    }
}

/* What t says of (M,N), but for where A and B are; a of no stride is in place. Panels
 * may be longer than K and wider than M and N. */
static void multiply_to(int M, int N, int reach, struct panels a, struct panels b,
                        struct tile t)
{
    t.a = a.at;
    t.row = a.step;
    t.b = b.at;
    t.step = b.step;
    for (int j = 0; j < N; j += PANEL) {
        const int width = least(PANEL, N - j);
        if (a.stride)
            column_packed(M, width, reach - j, a.stride, t);
        else
            column(M, width, reach - j, t);
        t.b += b.stride;
        t.c += PANEL;
        t.d += PANEL;
    }
}

/* C = alpha A B + beta C, A with rows along k, B packed. */
static void multiply(int M, int N, int K, float alpha, const float *a, size_t row,
                     struct panels b, float beta, float *c, size_t ldc)
{
    const struct tile t = {
        .K = K, .alpha = alpha, .beta = beta, .d = c, .c = c, .ldc = ldc};
    multiply_to(M, N, WHOLE, (struct panels){a, 0, row}, b, t);
}

/* The same with A packed. */
static void multiply_packed(int M, int N, int K, float alpha, struct panels a,
                            struct panels b, float beta, float *c, size_t ldc)
{
    const struct tile t = {
        .K = K, .alpha = alpha, .beta = beta, .d = c, .c = c, .ldc = ldc};
    multiply_to(M, N, WHOLE, a, b, t);
}

#endif
