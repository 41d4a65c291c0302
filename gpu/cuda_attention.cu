/* cuda: causal attention by tiles, scores never stored (Dao et al. 2022,
 * FlashAttention). A block has 8 warps and works on a tile of 32 rows: warp w owns rows
 * 4 w .. 4 w + 3; in a 32 x 32 block of scores the lane is the column, in a product
 * with a tile of values lane l owns the columns l, l + 32, ... of the result. The
 * backward has one pass for the queries and one for keys and values: each result is
 * summed by one warp in a fixed order. */
#include "gpu/cuda_real.cuh"

enum { TILE = PL_WARP, ROWS = 4, HEAD_DIM_MAX = 256 };

template <class R> struct arrays {
    struct pl_attention_shape s;
    float scale; /* head_dim^-1/2 */
    const R *qkv, *out, *dout;
    const float *lse;
    R *out_new, *dqkv;
    float *lse_new;
};

/* First row of this warp in its tile. */
static __device__ inline int warp_row(void)
{
    return pl_warp() * ROWS;
}

template <class R> static __device__ inline int width_of(const struct arrays<R> *a)
{
    return (a->s.heads + 2 * a->s.kv_heads) * a->s.head_dim;
}

/* Offsets in qkv (and dqkv) of the column of a head in the first row of sequence b:
 * query heads, then key heads, then value heads, counted on. */
template <class R>
static __device__ inline size_t head_at(const struct arrays<R> *a, int b, int head)
{
    return (size_t)b * a->s.T * width_of(a) + (size_t)head * a->s.head_dim;
}

template <class R>
static __device__ inline size_t out_at(const struct arrays<R> *a, int b, int h)
{
    return ((size_t)b * a->s.T * a->s.heads + (size_t)h) * a->s.head_dim;
}

template <class R>
static __device__ inline size_t lse_at(const struct arrays<R> *a, int b, int h)
{
    return ((size_t)b * a->s.heads + (size_t)h) * a->s.T;
}

/* tile (TILE, head_dim + 1): rows first .. first + 31 of x, zero from row T on. The odd
 * stride lets the lanes of a warp read one column of 32 rows without bank conflicts. */
template <class R>
static __device__ void load_tile(const struct arrays<R> *a, float *tile, const R *x,
                                 int ld, int first)
{
    int d = a->s.head_dim;
    for (int r = warp_row(); r < warp_row() + ROWS; r++)
        for (int c = pl_lane(); c < d; c += PL_WARP)
            tile[r * (d + 1) + c] =
                first + r < a->s.T ? pl_float(x[(size_t)(first + r) * ld + c]) : 0;
}

/* s[r] = sum over columns of (row r of this warp in mine) x (row `lane` of theirs). */
template <class R>
static __device__ void scores(const struct arrays<R> *a, const float *mine,
                              const float *theirs, float s[ROWS])
{
    int stride = a->s.head_dim + 1;
    mine += warp_row() * stride;
    theirs += pl_lane() * stride;
    for (int r = 0; r < ROWS; r++) s[r] = 0;
    for (int c = 0; c < a->s.head_dim; c++)
        for (int r = 0; r < ROWS; r++) s[r] += mine[r * stride + c] * theirs[c];
}

/* sum[r] += (row r of this warp in p, a (TILE, TILE) block) x (tile of values). */
template <int N, class R>
static __device__ void accumulate(const struct arrays<R> *a, const float *p,
                                  const float *values, float sum[ROWS][N])
{
    int d = a->s.head_dim;
    p += warp_row() * TILE;
    for (int j = 0; j < TILE; j++, values += d + 1)
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = pl_lane() + n * PL_WARP;
            float v = c < d ? values[c] : 0;
#pragma unroll
            for (int r = 0; r < ROWS; r++) sum[r][n] += p[r * TILE + j] * v;
        }
}

/* Rows first .. of x (the head's column of row 0) = factor[r] sum[r]. */
template <int N, class R>
static __device__ void store(const struct arrays<R> *a, const float sum[ROWS][N],
                             const float factor[ROWS], R *x, int ld, int first)
{
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = pl_lane() + n * PL_WARP, row = first + warp_row() + r;
            if (row < a->s.T && c < a->s.head_dim)
                pl_set(&x[(size_t)row * ld + c], factor[r] * sum[r][n]);
        }
}

/* One tile of keys in the running softmax: p (this warp's rows) = exp(score - new max).
 */
template <int N, class R>
static __device__ void softmax_step(const struct arrays<R> *a, int t0, int j0,
                                    const float s[ROWS], float *p, float max[ROWS],
                                    float sum[ROWS], float o[ROWS][N])
{
    for (int r = 0; r < ROWS; r++) {
        int t = t0 + warp_row() + r;
        float score = j0 + pl_lane() <= t ? a->scale * s[r] : -INFINITY;
        float larger = fmaxf(max[r], pl_warp_max(score));
        float e = expf(score - larger), shrink = expf(max[r] - larger);
        sum[r] = sum[r] * shrink + pl_warp_sum(e);
        max[r] = larger;
#pragma unroll
        for (int n = 0; n < N; n++) o[r][n] *= shrink;
        p[(warp_row() + r) * TILE + pl_lane()] = e;
    }
}

/* Grid (tiles of queries, heads, B). Key 0 is in every row's past, so that max is
 * finite after the first tile. */
template <int N, class R> static __global__ void attention_kernel(struct arrays<R> a)
{
    PL_SHARED(float, shared);
    int size = TILE * (a.s.head_dim + 1), width = width_of(&a);
    float *q = shared, *k = q + size, *v = k + size, *p = v + size;
    int tile = (int)(gridDim.x - 1 - blockIdx.x); /* the longest first */
    int h = (int)blockIdx.y, b = (int)blockIdx.z;
    int kv = a.s.heads + h / (a.s.heads / a.s.kv_heads);
    load_tile(&a, q, a.qkv + head_at(&a, b, h), width, tile * TILE);
    float o[ROWS][N] = {}, sum[ROWS] = {}, s[ROWS], max[ROWS];
    for (int r = 0; r < ROWS; r++) max[r] = -INFINITY;
    for (int j = 0; j <= tile; j++) {
        __syncthreads(); /* the tiles before are read */
        load_tile(&a, k, a.qkv + head_at(&a, b, kv), width, j * TILE);
        load_tile(&a, v, a.qkv + head_at(&a, b, kv + a.s.kv_heads), width, j * TILE);
        __syncthreads();
        scores(&a, q, k, s);
        softmax_step<N>(&a, tile * TILE, j * TILE, s, p, max, sum, o);
        __syncwarp();
        accumulate<N>(&a, p, v, o);
    }
    float *lse = a.lse_new + lse_at(&a, b, h);
    for (int r = 0; r < ROWS; r++) {
        int t = tile * TILE + warp_row() + r;
        if (t < a.s.T && pl_lane() == 0) lse[t] = max[r] + logf(sum[r]);
        sum[r] = 1 / sum[r];
    }
    store<N>(&a, o, sum, a.out_new + out_at(&a, b, h), a.s.heads * a.s.head_dim,
             tile * TILE);
}

/* out dout of row t of head h, in every lane. */
template <class R>
static __device__ float row_mean(const struct arrays<R> *a, int b, int h, int t)
{
    float sum = 0;
    if (t < a->s.T) {
        size_t at = out_at(a, b, h) + (size_t)t * a->s.heads * a->s.head_dim;
        for (int c = pl_lane(); c < a->s.head_dim; c += PL_WARP)
            sum += pl_float(a->out[at + c]) * pl_float(a->dout[at + c]);
    }
    return pl_warp_sum(sum);
}

/* p of a pair (query t, key j), 0 where j > t or t >= T. */
template <class R>
static __device__ inline float weight(const struct arrays<R> *a, int t, int j,
                                      float score, float lse)
{
    return j <= t && t < a->s.T ? expf(a->scale * score - lse) : 0;
}

/* dq_t = sum_j ds_tj k_j, ds = p (dout v_j - dout out) / sqrt(head_dim). Grid as
 * forward. */
template <int N, class R> static __global__ void query_back_kernel(struct arrays<R> a)
{
    PL_SHARED(float, shared);
    int size = TILE * (a.s.head_dim + 1), width = width_of(&a);
    float *q = shared, *dout = q + size, *k = dout + size, *v = k + size,
          *ds = v + size;
    int tile = (int)(gridDim.x - 1 - blockIdx.x), h = (int)blockIdx.y;
    int b = (int)blockIdx.z, kv = a.s.heads + h / (a.s.heads / a.s.kv_heads);
    load_tile(&a, q, a.qkv + head_at(&a, b, h), width, tile * TILE);
    load_tile(&a, dout, a.dout + out_at(&a, b, h), a.s.heads * a.s.head_dim,
              tile * TILE);
    float dq[ROWS][N] = {}, s[ROWS], dp[ROWS], mean[ROWS], lse[ROWS], one[ROWS];
    for (int r = 0; r < ROWS; r++) {
        int t = tile * TILE + warp_row() + r;
        mean[r] = row_mean(&a, b, h, t);
        lse[r] = t < a.s.T ? a.lse[lse_at(&a, b, h) + t] : 0;
        one[r] = 1;
    }
    for (int j = 0; j <= tile; j++) {
        __syncthreads();
        load_tile(&a, k, a.qkv + head_at(&a, b, kv), width, j * TILE);
        load_tile(&a, v, a.qkv + head_at(&a, b, kv + a.s.kv_heads), width, j * TILE);
        __syncthreads();
        scores(&a, q, k, s);
        scores(&a, dout, v, dp);
        for (int r = 0; r < ROWS; r++) {
            int row = warp_row() + r;
            float p = weight(&a, tile * TILE + row, j * TILE + pl_lane(), s[r], lse[r]);
            ds[row * TILE + pl_lane()] = p * (dp[r] - mean[r]) * a.scale;
        }
        __syncwarp();
        accumulate<N>(&a, ds, k, dq);
    }
    store<N>(&a, dq, one, a.dqkv + head_at(&a, b, h), width, tile * TILE);
}

/* dk_j = sum over the group's heads and t >= j of ds_tj q_t; dv_j = that of p_tj
 * dout_t. Grid (tiles of keys, kv heads, B); here a warp's rows are keys and a lane is
 * a query. */
template <int N, class R> static __global__ void key_back_kernel(struct arrays<R> a)
{
    PL_SHARED(float, shared);
    int size = TILE * (a.s.head_dim + 1), width = width_of(&a);
    float *q = shared, *dout = q + size, *k = dout + size, *v = k + size;
    float *p = v + size, *ds = p + TILE * TILE, *mean = ds + TILE * TILE;
    int tile = (int)blockIdx.x, kv = (int)blockIdx.y, b = (int)blockIdx.z;
    int group = a.s.heads / a.s.kv_heads, lane = pl_lane();
    size_t key = head_at(&a, b, a.s.heads + kv);
    size_t value = head_at(&a, b, a.s.heads + a.s.kv_heads + kv);
    load_tile(&a, k, a.qkv + key, width, tile * TILE);
    load_tile(&a, v, a.qkv + value, width, tile * TILE);
    float dk[ROWS][N] = {}, dv[ROWS][N] = {}, s[ROWS], dp[ROWS], one[ROWS];
    for (int r = 0; r < ROWS; r++) one[r] = 1;
    for (int h = kv * group; h < (kv + 1) * group; h++)
        for (int t0 = tile * TILE; t0 < a.s.T; t0 += TILE) {
            __syncthreads();
            load_tile(&a, q, a.qkv + head_at(&a, b, h), width, t0);
            load_tile(&a, dout, a.dout + out_at(&a, b, h), a.s.heads * a.s.head_dim,
                      t0);
            for (int r = warp_row(); r < warp_row() + ROWS; r++) {
                float m = row_mean(&a, b, h, t0 + r);
                if (lane == 0) mean[r] = m;
            }
            __syncthreads();
            scores(&a, k, q, s);
            scores(&a, v, dout, dp);
            int t = t0 + lane;
            float lse = t < a.s.T ? a.lse[lse_at(&a, b, h) + t] : 0;
            for (int r = 0; r < ROWS; r++) {
                int row = warp_row() + r;
                float w = weight(&a, t, tile * TILE + row, s[r], lse);
                p[row * TILE + lane] = w;
                ds[row * TILE + lane] = w * (dp[r] - mean[lane]) * a.scale;
            }
            __syncwarp();
            accumulate<N>(&a, p, dout, dv);
            accumulate<N>(&a, ds, q, dk);
        }
    store<N>(&a, dk, one, a.dqkv + key, width, tile * TILE);
    store<N>(&a, dv, one, a.dqkv + value, width, tile * TILE);
}

/* Launch a kernel that needs tiles of head_dim columns and blocks of scores in shared
 * memory: more than 48 KiB must be asked for. */
template <class R>
static int launch(void (*kernel)(struct arrays<R>), const struct arrays<R> *a,
                  int heads, int tiles, int blocks, const char *what)
{
    size_t floats = (size_t)tiles * TILE * ((size_t)a->s.head_dim + 1) +
                    (size_t)blocks * TILE * TILE + TILE;
    size_t bytes = floats * sizeof(float);
    int rc = pl_cuda_shared((const void *)kernel, bytes, what);
    if (rc) return rc;
    dim3 grid((unsigned)((a->s.T + TILE - 1) / TILE), (unsigned)heads,
              (unsigned)a->s.B);
    PL_LAUNCH(kernel, grid, PL_BLOCK, bytes, *a);
    return pl_cuda_launched(what);
}

template <class R>
static arrays<R> arrays_of(const struct pl_attention_shape *shape, const float *qkv)
{
    arrays<R> a = {};
    a.s = *shape;
    a.scale = (float)(1 / sqrt((double)shape->head_dim));
    a.qkv = (const R *)qkv;
    return a;
}

static int check_shape(const struct pl_attention_shape *s)
{
    if (s->head_dim <= HEAD_DIM_MAX && s->B <= 65535 && s->heads <= 65535) return 0;
    return pl_cuda.host->fail(PL_EUNSUP,
                              "device cuda: attention of B %d, %d heads, head size %d: "
                              "at most 65535, 65535 and %d",
                              s->B, s->heads, s->head_dim, HEAD_DIM_MAX);
}

/* The smallest instance of a kernel whose registers hold a row of head_dim. */
#define FOR_HEAD_DIM(kernel, R, d) \
    ((d) <= 32    ? kernel<1, R>   \
     : (d) <= 64  ? kernel<2, R>   \
     : (d) <= 128 ? kernel<4, R>   \
                  : kernel<8, R>)

template <class R>
static int attention(const struct pl_attention_shape *shape, const float *qkv,
                     float *out, float *lse)
{
    int rc = check_shape(shape);
    if (rc || !shape->B || !shape->T) return rc;
    struct arrays<R> a = arrays_of<R>(shape, qkv);
    a.out_new = (R *)out;
    a.lse_new = lse;
    return launch(FOR_HEAD_DIM(attention_kernel, R, shape->head_dim), &a, shape->heads,
                  3, 1, "attention");
}

template <class R>
static int attention_back(const struct pl_attention_shape *shape, const float *qkv,
                          const float *out, const float *lse, const float *dout,
                          float *dqkv)
{
    int rc = check_shape(shape);
    if (rc || !shape->B || !shape->T) return rc;
    struct arrays<R> a = arrays_of<R>(shape, qkv);
    a.out = (const R *)out;
    a.lse = lse;
    a.dout = (const R *)dout;
    a.dqkv = (R *)dqkv;
    rc = launch(FOR_HEAD_DIM(query_back_kernel, R, shape->head_dim), &a, shape->heads,
                4, 1, "attention_back");
    if (rc) return rc;
    return launch(FOR_HEAD_DIM(key_back_kernel, R, shape->head_dim), &a,
                  shape->kv_heads, 4, 2, "attention_back");
}

#define FLOAT(p, name, params, args) \
    int pl_cuda_##name params        \
    {                                \
        return name<float> args;     \
    }
PL_OPS_ATTENTION(FLOAT, )

/* On tensor cores where the shape allows it. */
int pl_cuda16_attention(const struct pl_attention_shape *shape, const float *qkv,
                        float *out, float *lse)
{
    if (pl_cuda_flash_takes(shape))
        return pl_cuda_flash(shape, (const __nv_bfloat16 *)qkv, (__nv_bfloat16 *)out,
                             lse);
    return attention<__nv_bfloat16>(shape, qkv, out, lse);
}

int pl_cuda16_attention_back(const struct pl_attention_shape *shape, const float *qkv,
                             const float *out, const float *lse, const float *dout,
                             float *dqkv)
{
    if (pl_cuda_flash_takes(shape))
        return pl_cuda_flash_back(shape, (const __nv_bfloat16 *)qkv,
                                  (const __nv_bfloat16 *)out, lse,
                                  (const __nv_bfloat16 *)dout, (__nv_bfloat16 *)dqkv);
    return attention_back<__nv_bfloat16>(shape, qkv, out, lse, dout, dqkv);
}
