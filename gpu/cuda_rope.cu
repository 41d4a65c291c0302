/* cuda: rotary embedding (Su et al. 2021): (a, b) -> (a cos - b sin, a sin + b cos) at
 * angle t theta^(-2i/head_dim). The angles are in double, since t may be large, and
 * kept in a table (T, head_dim / 2) of cos and sin: in every call they would cost more
 * than the memory's traffic, 2 reals an element (32768 rows of 12 heads of 64 in bf16:
 * 21 us at 4.8 TB/s). */
#include "gpu/cuda_real.cuh"

#include <string.h>

struct table {
    int T, half;
    double theta;
    float *at; /* device: cos (T, half), then sin */
};
enum { TABLES = 8 };
static struct table tables[TABLES];
static int next_table;

static __global__ void table_kernel(int T, int half, double theta, float *at)
{
    const size_t n = (size_t)T * (size_t)half;
    for (size_t e = pl_thread(); e < n; e += pl_threads()) {
        double i = (double)(e % (size_t)half), t = (double)(e / (size_t)half);
        double angle = t * pow(theta, -i / half);
        at[e] = (float)cos(angle);
        at[n + e] = (float)sin(angle);
    }
}

void pl_cuda_rope_close(void)
{
    for (int i = 0; i < TABLES; i++) cudaFree(tables[i].at);
    memset(tables, 0, sizeof tables);
}

static int table_of(int T, int half, double theta, const float **at)
{
    for (int i = 0; i < TABLES; i++) {
        const struct table *t = &tables[i];
        if (t->at && t->T == T && t->half == half && t->theta == theta) {
            *at = t->at;
            return 0;
        }
    }
    struct table *t = &tables[next_table];
    const size_t n = (size_t)T * (size_t)half;
    if (t->at) pl_cuda_release(t->at);
    t->at = NULL;
    int rc = pl_cuda_check(cudaMalloc((void **)&t->at, 2 * n * sizeof(float)),
                           "angles of the rotary embedding");
    if (rc) return rc;
    next_table = (next_table + 1) % TABLES;
    t->T = T;
    t->half = half;
    t->theta = theta;
    *at = t->at;
    PL_LAUNCH(table_kernel, pl_cuda_blocks(n, PL_BLOCKS_MAX), PL_BLOCK, 0, T, half,
              theta, t->at);
    return pl_cuda_launched("rope");
}

struct rope {
    int rows, T, heads, dim, half, ld;
    float direction;
    const float *table;
};

/* A warp turns N pairs a lane of a row. */
template <class R, int N> static __global__ void rope_kernel(struct rope a, R *x)
{
    const size_t r = pl_row();
    const int each = a.half / N; /* packs of a half head */
    if (r >= (size_t)a.rows) return;
    const float *cosine = a.table + r % (size_t)a.T * (size_t)a.half;
    const float *sine = cosine + (size_t)a.T * (size_t)a.half;
    x += r * (size_t)a.ld;
    for (int k = pl_lane(); k < a.heads * each; k += PL_WARP) {
        const int i = k % each * N;
        R *p = x + k / each * a.dim + i;
        float c[N], s[N], u[N], v[N];
        pl_get<N>(cosine + i, c);
        pl_get<N>(sine + i, s);
        pl_get<N>(p, u);
        pl_get<N>(p + a.half, v);
#pragma unroll
        for (int j = 0; j < N; j++) {
            float first = u[j], turn = a.direction * s[j];
            u[j] = first * c[j] - v[j] * turn;
            v[j] = first * turn + v[j] * c[j];
        }
        pl_put<N>(p, u);
        pl_put<N>(p + a.half, v);
    }
}

template <class R>
static int rope(int rows, int T, int n_heads, int head_dim, int ld, double theta,
                int direction, float *x)
{
    struct rope a = {rows,         T,  n_heads,          head_dim,
                     head_dim / 2, ld, (float)direction, NULL};
    if (!rows || !n_heads || !a.half) return 0;
    int rc = table_of(T, a.half, theta, &a.table);
    if (rc) return rc;
    bool wide = pl_wide<R>(a.half, x) && pl_wide<R>(ld) && pl_wide<R>(head_dim);
    PL_LAUNCH_WIDE(R, wide, rope_kernel, pl_row_blocks((size_t)rows), PL_BLOCK, 0, a,
                   (R *)x);
    return pl_cuda_launched("rope");
}

PL_OPS_ROPE(PL_CUDA_BOTH, )
