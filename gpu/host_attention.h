/* host: causal attention by blocks of QUERIES rows: the scores of one block live in
 * scratch, keys beyond the block are skipped, and the backward pass recomputes p from
 * lse (Dao et al. 2022). Heads are read in place through strides; only the right-hand
 * factors are packed. Included once for each instruction set, after host_gemm.h and
 * host_layers.h. */
#ifndef PL_GPU_HOST_ATTENTION_H
#define PL_GPU_HOST_ATTENTION_H

enum { QUERIES = 48 };

/* One query head of one sequence: pointers at its column of the sequence's first row.
 */
struct head {
    const float *q, *k, *v, *out, *dout, *lse;
    float *dq, *dk, *dv;
    size_t ld, out_ld;
    int T, dim;
    float scale;
};

struct work {
    float *kt, *vt, *k, *v, *right; /* packed: K^T, V^T, K, V, a block of rows */
    float *s, *ds;                  /* QUERIES x T blocks */
    size_t s_ld;
};

static struct work divide_scratch(int T, int dim)
{
    size_t wide = panel_floats(dim, T), tall = panel_floats(T, dim);
    size_t right = panel_floats(QUERIES, dim);
    size_t s_ld = (size_t)(T + 15) / 16 * 16 + 16;
    float *p = pl_host_scratch(2 * wide + 2 * tall + right + 2 * QUERIES * s_ld);
    struct work w = {.kt = p, .vt = p + wide, .k = p + 2 * wide, .s_ld = s_ld};
    w.v = w.k + tall;
    w.right = w.v + tall;
    w.s = w.right + right;
    w.ds = w.s + QUERIES * s_ld;
    return w;
}

static struct head head_at(const struct pl_attention_shape *s, const float *qkv,
                           float *dqkv, int b, int h)
{
    size_t dim = (size_t)s->head_dim, heads = (size_t)s->heads,
           kv = (size_t)s->kv_heads;
    size_t ld = (heads + 2 * kv) * dim, row = (size_t)b * (size_t)s->T * ld;
    size_t q = row + (size_t)h * dim,
           k = row + (heads + (size_t)h / (heads / kv)) * dim;
    struct head x = {.q = qkv + q, .k = qkv + k, .v = qkv + k + kv * dim, .ld = ld};
    if (dqkv) {
        x.dq = dqkv + q;
        x.dk = dqkv + k;
        x.dv = x.dk + kv * dim;
    }
    x.out_ld = heads * dim;
    x.T = s->T;
    x.dim = s->head_dim;
    x.scale = (float)(1 / sqrt((double)s->head_dim));
    return x;
}

/* Scores beyond the causal edge, for a block of rows from position i: e^-large is
 * exactly 0, so that every row has the same length, n in whole vectors, which is
 * returned. */
static int mask_block(const struct work *w, int i, int rows)
{
    int whole = (i + rows + LANES - 1) / LANES * LANES;
    for (int r = 0; r < rows; r++) {
        float *s = w->s + (size_t)r * w->s_ld;
        for (int j = i + r + 1; j < whole; j++) s[j] = -1e30f;
    }
    return whole;
}

static void attend_head(const struct head *a, const struct work *w, float *out,
                        float *lse)
{
    struct panels kt = {w->kt, (size_t)a->dim * PANEL},
                  v = {w->v, (size_t)a->T * PANEL};
    for (int i = 0; i < a->T; i += QUERIES) {
        int rows = least(QUERIES, a->T - i), n = i + rows;
        float inverse[QUERIES];
        struct strided q = {a->q + (size_t)i * a->ld, a->ld, 1};
        multiply(rows, n, a->dim, a->scale, q, kt, 0, w->s, w->s_ld);
        int whole = mask_block(w, i, rows);
        for (int r = 0; r < rows; r++) {
            float *s = w->s + (size_t)r * w->s_ld;
            float max = row_max(whole, s), sum = row_exp(whole, s, max, s);
            inverse[r] = 1 / sum;
            lse[i + r] = (float)(max + log((double)sum));
        }
        struct strided p = {w->s, w->s_ld, 1};
        float *o = out + (size_t)i * a->out_ld;
        multiply(rows, a->dim, n, 1, p, v, 0, o, a->out_ld);
        for (int r = 0; r < rows; r++, o += a->out_ld) {
#pragma omp simd
            for (int c = 0; c < a->dim; c++) o[c] *= inverse[r];
        }
    }
}

int HOST(attention)(const struct pl_attention_shape *shape, const float *qkv,
                    float *out, float *lse)
{
    struct work w = divide_scratch(shape->T, shape->head_dim);
    int group = shape->heads / shape->kv_heads;
    for (int b = 0; b < shape->B; b++)
        for (int h = 0; h < shape->heads; h++) {
            struct head a = head_at(shape, qkv, NULL, b, h);
            if (h % group == 0) {
                pack(a.dim, a.T, (struct strided){a.k, 1, a.ld}, w.kt);
                pack(a.T, a.dim, (struct strided){a.v, a.ld, 1}, w.v);
            }
            size_t row = (size_t)b * (size_t)a.T;
            attend_head(&a, &w, out + row * a.out_ld + h * a.dim, lse);
            lse += a.T;
        }
    return 0;
}

/* Rows of s become p, rows of ds (which holds dout v) become p (dout v - dout out). */
static void block_back(const struct head *a, const struct work *w, int i, int rows)
{
    int whole = mask_block(w, i, rows);
    for (int r = 0; r < rows; r++) {
        float *s = w->s + (size_t)r * w->s_ld, *ds = w->ds + (size_t)r * w->s_ld;
        size_t at = (size_t)(i + r) * a->out_ld;
        float mean = row_dot(a->dim, a->out + at, a->dout + at), lse = a->lse[i + r];
#pragma omp simd
        for (int j = 0; j < whole; j++) {
            float p = exp_f(s[j] - lse);
            s[j] = p;
            ds[j] = p * (ds[j] - mean);
        }
    }
}

static void attend_head_back(const struct head *a, const struct work *w)
{
    size_t narrow = (size_t)a->dim * PANEL;
    struct panels kt = {w->kt, narrow}, vt = {w->vt, narrow};
    struct panels k = {w->k, (size_t)a->T * PANEL};
    for (int i = 0; i < a->T; i += QUERIES) {
        int rows = least(QUERIES, a->T - i), n = i + rows;
        size_t row = (size_t)i;
        struct strided q = {a->q + row * a->ld, a->ld, 1};
        struct strided d = {a->dout + row * a->out_ld, a->out_ld, 1};
        multiply(rows, n, a->dim, a->scale, q, kt, 0, w->s, w->s_ld);
        multiply(rows, n, a->dim, 1, d, vt, 0, w->ds, w->s_ld);
        block_back(a, w, i, rows);
        struct strided ds = {w->ds, w->s_ld, 1}, ds_t = {w->ds, 1, w->s_ld};
        struct strided p_t = {w->s, 1, w->s_ld};
        multiply(rows, a->dim, n, a->scale, ds, k, 0, a->dq + row * a->ld, a->ld);
        struct panels right = pack(rows, a->dim, d, w->right);
        multiply(n, a->dim, rows, 1, p_t, right, 1, a->dv, a->ld);
        right = pack(rows, a->dim, q, w->right);
        multiply(n, a->dim, rows, a->scale, ds_t, right, 1, a->dk, a->ld);
    }
}

int HOST(attention_back)(const struct pl_attention_shape *shape, const float *qkv,
                         const float *out, const float *lse, const float *dout,
                         float *dqkv)
{
    struct work w = divide_scratch(shape->T, shape->head_dim);
    int group = shape->heads / shape->kv_heads;
    size_t T = (size_t)shape->T;
    for (int b = 0; b < shape->B; b++)
        for (int h = 0; h < shape->heads; h++) {
            struct head a = head_at(shape, qkv, dqkv, b, h);
            size_t at = (size_t)b * T * a.out_ld + (size_t)(h * a.dim);
            a.out = out + at;
            a.dout = dout + at;
            a.lse = lse + ((size_t)b * (size_t)shape->heads + (size_t)h) * T;
            if (h % group == 0) {
                if (h == 0)
                    memset(dqkv + (size_t)b * T * a.ld, 0, T * a.ld * sizeof *dqkv);
                pack(a.dim, a.T, (struct strided){a.k, 1, a.ld}, w.kt);
                pack(a.dim, a.T, (struct strided){a.v, 1, a.ld}, w.vt);
                pack(a.T, a.dim, (struct strided){a.k, a.ld, 1}, w.k);
            }
            attend_head_back(&a, &w);
        }
    return 0;
}

#endif
