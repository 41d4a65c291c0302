/* cuda: rows that are looked up and rows that are added to. Bytes of an element of a
 * row: gather and the sums of add_rows_back read each once; at 4.8 TB/s, 32768 rows of
 * 576 in bf16: 8 us a pass. */
#include "gpu/cuda_real.cuh"

/* y[r] = x[from[r]]. */
template <class R, int N, class X>
static __device__ inline void copy_row(int rows, int d, const int32_t *from, const X *x,
                                       R *y)
{
    size_t r = pl_row();
    float v[N];
    if (r >= (size_t)rows) return;
    x += (size_t)from[r] * (size_t)d;
    y += r * (size_t)d;
    for (int c = pl_lane() * N; c < d; c += PL_WARP * N) {
        pl_get<N>(x + c, v);
        pl_put<N>(y + c, v);
    }
}

template <class R, int N>
static __global__ void gather_kernel(int rows, int d, const int32_t *from, const R *x,
                                     R *y)
{
    copy_row<R, N>(rows, d, from, x, y);
}

template <class R, int N>
static __global__ void embed_kernel(int rows, int d, const int32_t *tokens,
                                    const float *table, R *out)
{
    copy_row<R, N>(rows, d, tokens, table, out);
}

template <class R>
static int gather(int n, int d, const int32_t *from, const float *x, float *y)
{
    if (!n || !d) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(d, x, y), gather_kernel, pl_row_blocks((size_t)n),
                   PL_BLOCK, 0, n, d, from, (const R *)x, (R *)y);
    return pl_cuda_launched("gather");
}

template <class R>
static int embed(int rows, int d, const int32_t *tokens, const float *table, float *out)
{
    if (!rows || !d) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(d, table, out), embed_kernel,
                   pl_row_blocks((size_t)rows), PL_BLOCK, 0, rows, d, tokens, table,
                   (R *)out);
    return pl_cuda_launched("embed");
}

/* The gradient of a table: rows are sorted by token (order), cut into chunks of equal
 * length, and a block sums the runs of equal tokens in a chunk. A run that is all of
 * its token is added to the table at once; of those that reach over an edge the sums
 * are kept, edge (chunks, 2, d): that of the run at the start, then that at the end. */
struct runs {
    int rows, d, chunk;
    const int32_t *tokens, *order;
    float *edge, *dtable;
};

static __device__ inline int32_t token_at(const struct runs &a, int k)
{
    return k < 0 || k >= a.rows ? -1 : a.tokens[a.order[k]];
}

template <class R, int N>
static __global__ void runs_kernel(struct runs a, const R *dout)
{
    const int first = (int)blockIdx.x * a.chunk, c = (int)pl_column<N>();
    const int end = first + a.chunk < a.rows ? first + a.chunk : a.rows;
    float sum[N] = {}, v[N];
    if (c >= a.d) return;
    for (int k = first, start = first; k < end; k++) {
        int32_t token = token_at(a, k);
        pl_get<N>(dout + (size_t)a.order[k] * (size_t)a.d + c, v);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] += v[i];
        if (k + 1 < end && token_at(a, k + 1) == token) continue;
        bool whole = token_at(a, start - 1) != token && token_at(a, k + 1) != token;
        float *to =
            whole ? a.dtable + (size_t)token * (size_t)a.d
                  : a.edge + ((size_t)blockIdx.x * 2 + (start > first)) * (size_t)a.d;
        if (whole) pl_get<N>(to + c, v);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = whole ? v[i] + sum[i] : sum[i];
        pl_put<N>(to + c, v);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] = 0;
        start = k + 1;
    }
}

/* The run that begins in a chunk and goes on beyond it: its sums, in order. */
static __global__ void join_kernel(struct runs a)
{
    const int c = (int)pl_column<1>(), first = (int)blockIdx.x * a.chunk;
    int end = first + a.chunk;
    int32_t token = token_at(a, end - 1);
    bool from_start = token_at(a, first) == token;
    if (c >= a.d || end >= a.rows || token_at(a, end) != token) return;
    if (from_start && token_at(a, first - 1) == token) return;
    float sum = a.edge[((size_t)blockIdx.x * 2 + !from_start) * (size_t)a.d + c];
    for (int j = (int)blockIdx.x + 1; end < a.rows && token_at(a, end) == token; j++) {
        sum += a.edge[(size_t)j * 2 * (size_t)a.d + c];
        end += a.chunk;
        if (token_at(a, end - 1) != token) break;
    }
    a.dtable[(size_t)token * (size_t)a.d + c] += sum;
}

template <class R>
static int embed_back(int rows, int d, const int32_t *tokens, const float *dout,
                      float *dtable)
{
    enum { LEAST = 32, CHUNKS = 1024, BITS = 32 };
    if (!rows || !d) return 0;
    int chunk =
        (rows + CHUNKS - 1) / CHUNKS < LEAST ? LEAST : (rows + CHUNKS - 1) / CHUNKS;
    int chunks = (rows + chunk - 1) / chunk;
    const size_t edges = (size_t)chunks * 2 * (size_t)d * sizeof(float);
    void *room;
    int rc = pl_cuda_scratch(edges + pl_cuda_sort_bytes(rows), &room);
    struct runs a = {rows, d, chunk, tokens, NULL, (float *)room, dtable};
    if (!rc) rc = pl_cuda_sort(rows, BITS, tokens, (char *)room + edges, &a.order);
    if (rc) return rc;
    const bool pairs = d % 2 == 0 && pl_wide<R>(0, dout, dtable);
    auto *kernel = pairs ? runs_kernel<R, 2> : runs_kernel<R, 1>;
    PL_LAUNCH(kernel, pl_column_grid(chunks, pairs ? d / 2 : d), PL_BLOCK, 0, a,
              (const R *)dout);
    rc = pl_cuda_launched("embed_back");
    if (rc || chunks == 1) return rc;
    PL_LAUNCH(join_kernel, pl_column_grid(chunks, d), PL_BLOCK, 0, a);
    return pl_cuda_launched("embed_back");
}

template <class R, int N>
static __global__ void add_rows_kernel(int rows, int period, int d, const float *x,
                                       R *y)
{
    size_t r = pl_row();
    float v[N], add[N];
    if (r >= (size_t)rows) return;
    x += r % (size_t)period * (size_t)d;
    y += r * (size_t)d;
    for (int c = pl_lane() * N; c < d; c += PL_WARP * N) {
        pl_get<N>(y + c, v);
        pl_get<N>(x + c, add);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] += add[i];
        pl_put<N>(y + c, v);
    }
}

template <class R>
static int add_rows(int rows, int period, int d, const float *x, float *y)
{
    if (!rows || !d) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(d, x, y), add_rows_kernel, pl_row_blocks((size_t)rows),
                   PL_BLOCK, 0, rows, period, d, x, (R *)y);
    return pl_cuda_launched("add_rows");
}

/* Block (t and part, columns): rows t + k period for the part's k, warp w those of
 * k = w + 8 i; partial (parts, period, d). */
template <class R, int N>
static __global__ void row_sums_kernel(int rows, int period, int d, int parts,
                                       bool squared, const R *x, float *partial)
{
    PL_SHARED(float, sums); /* (PL_ROWS, PL_WARP N) */
    const size_t t = blockIdx.x % (size_t)period, part = blockIdx.x / (size_t)period;
    const int warp = pl_warp();
    const int c = ((int)blockIdx.y * PL_WARP + pl_lane()) * N;
    const size_t step = (size_t)period * (size_t)parts * PL_ROWS;
    float sum[N] = {}, v[N];
    for (size_t r = t + (part * PL_ROWS + (size_t)warp) * (size_t)period;
         r < (size_t)rows && c < d; r += step) {
        pl_get<N>(x + r * (size_t)d + c, v);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] += squared ? v[i] * v[i] : v[i];
    }
    pl_put<N>(sums + (warp * PL_WARP + pl_lane()) * N, sum);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < PL_WARP * N; i += PL_BLOCK) {
        const int column = (int)blockIdx.y * PL_WARP * N + i;
        double all = 0;
        for (int w = 0; w < PL_ROWS; w++) all += sums[w * PL_WARP * N + i];
        if (column < d)
            partial[(size_t)blockIdx.x * (size_t)d + (size_t)column] = (float)all;
    }
}

/* out[t] (t < period, at most rows) = a sum of rows t, t + period ..., or of their
 * squares, + b out[t]. */
template <class R>
static int row_sums(int rows, int period, int d, bool squared, float a, const R *x,
                    float b, float *out)
{
    enum { SERIAL = 8, FULL = 8 }; /* rows of a warp, at least; blocks that fill one */
    const bool wide = pl_wide<R>(d, x);
    const int across = PL_WARP * (wide ? pl_width<R> : 1);
    const int columns = (d + across - 1) / across, each = rows / period;
    const int most = FULL * PL_PROCESSORS / columns / period + 1;
    int parts = each / (SERIAL * PL_ROWS) + 1;
    if (parts > most) parts = most;
    const size_t all = (size_t)period * (size_t)d;
    float *partial;
    int rc = pl_cuda_scratch((size_t)parts * all * sizeof(float), (void **)&partial);
    if (rc) return rc;
    dim3 grid((unsigned)(parts * period), (unsigned)columns);
    PL_LAUNCH_WIDE(R, wide, row_sums_kernel, grid, PL_BLOCK,
                   PL_ROWS * (size_t)across * sizeof(float), rows, period, d, parts,
                   squared, x, partial);
    rc = pl_cuda_launched("sums of rows");
    return rc ? rc : pl_cuda_sum_columns(parts, all, partial, all, a, b, out, NULL);
}

template <class R>
static int add_rows_back(int rows, int period, int d, const float *dy, float *dx)
{
    if (!rows || !d) return 0;
    return row_sums(rows, period < rows ? period : rows, d, false, 1, (const R *)dy, 1,
                    dx);
}

int pl_cuda_column_squares(int m, int n, float a, const float *x, float b, float *out)
{
    return n ? row_sums(m, 1, n, true, a, x, b, out) : 0;
}

/* first[c] = a (sum of partial[p][c] in a fixed order) + b first[c], of columns from
 * `split` on second[c - split]. A block has 8 columns and 32 threads for each. */
static __global__ void columns_kernel(int parts, size_t columns, const float *partial,
                                      size_t split, float a, float b, float *first,
                                      float *second)
{
    enum { COLUMNS = 8, LANES = PL_BLOCK / COLUMNS };
    __shared__ double part[LANES][COLUMNS];
    const int lane = (int)threadIdx.x / COLUMNS, own = (int)threadIdx.x % COLUMNS;
    const size_t c = (size_t)blockIdx.x * COLUMNS + (size_t)own;
    double sum = 0;
    for (int p = lane; p < parts && c < columns; p += LANES)
        sum += partial[(size_t)p * columns + c];
    part[lane][own] = sum;
    __syncthreads();
    float *to = c < split ? first + c : second ? second + (c - split) : NULL;
    if (lane || c >= columns || !to) return;
    for (int i = 1; i < LANES; i++) sum += part[i][own];
    *to = (float)(b == 0 ? a * sum : a * sum + (double)b * *to);
}

int pl_cuda_sum_columns(int parts, size_t columns, const float *partial, size_t split,
                        float a, float b, float *first, float *second)
{
    PL_LAUNCH(columns_kernel, (unsigned)((columns + 7) / 8), PL_BLOCK, 0, parts,
              columns, partial, split, a, b, first, second);
    return pl_cuda_launched("sums of columns");
}

PL_OPS_ROWS(PL_CUDA_BOTH, )
