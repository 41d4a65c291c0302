/* host in bf16: causal attention by blocks of QUERIES queries (Dao et al. 2022, with
 * keys not cut into blocks: the scores of one block live in scratch, O(T)). Scores lie
 * transposed, a row a key and a lane a query: softmax needs no sum over lanes, and its
 * results are packed as they are made: P and dS by rows as left factors of P^T dO and
 * dS^T Q, by pairs of rows as right factors of V^T P^T and K^T dS^T. Every product
 * rounds its two factors to bf16 (q, k, v, p, dout, ds) and sums in float; softmax and
 * its sums are float. Backward recomputes P from lse. A part of the pool is a sequence
 * and one of its key/value heads. Included once for each kind of tiles, after
 * host_bf16_gemm.h and host_math.h. */
#ifndef PL_GPU_HOST_BF16_ATTENTION_H
#define PL_GPU_HOST_BF16_ATTENTION_H

enum { QUERIES = 2 * PANEL, VECS = QUERIES / LANES };

/* Arguments of one call, shared by its parts. */
struct call {
    const struct pl_attention_shape *shape;
    const float *qkv, *dout, *out_back, *lse_back;
    float *out, *lse, *dqkv; /* dqkv NULL: forward */
    size_t ld, out_ld;       /* floats between rows of qkv, and of out */
    float scale;
};

/* One query head of one sequence: offsets of its columns in the sequence's first row.
 */
struct head {
    size_t q, k, v, out, lse;
};

/* Packed, first letter the factor's name, l left, r right: kl, vl (keys, dim), vtl, ktl
 * (dim, keys); of a block: qr, dr (dim, queries), pr, sr (keys, queries), pl, sl (keys,
 * queries), qn, dn (queries, dim). Floats: s, ds (keys, QUERIES), turned (dim,
 * QUERIES). */
struct work {
    word *kl, *vl, *vtl, *ktl, *qr, *dr, *pr, *sr, *pl, *sl, *qn, *dn;
    float *s, *ds, *turned;
};

static inline int whole_panels(int n)
{
    return (n + PANEL - 1) / PANEL * PANEL;
}

static size_t divide(struct work *w, float *p, int T, int dim, bool back)
{
    size_t keys = (size_t)whole_panels(T), dims = (size_t)whole_panels(dim);
    size_t all = keys * dims / 2, block = dims * QUERIES / 2, seen = keys * QUERIES / 2;
    struct {
        void *at;
        size_t floats;
    } part[] = {
        {&w->kl, all},
        {&w->vl, back ? all : 0},
        {&w->vtl, back ? 0 : all},
        {&w->ktl, back ? all : 0},
        {&w->qr, block},
        {&w->dr, back ? block : 0},
        {&w->pr, back ? 0 : seen},
        {&w->sr, back ? seen : 0},
        {&w->pl, back ? seen : 0},
        {&w->sl, back ? seen : 0},
        {&w->qn, back ? block : 0},
        {&w->dn, back ? block : 0},
        {&w->s, 2 * seen},
        {&w->ds, back ? 2 * seen : 0},
        {&w->turned, 2 * block},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        float *at = p ? p + used : NULL;
        memcpy(part[i].at, &at, sizeof at);
        used += part[i].floats;
    }
    return used;
}

static struct work work_new(int T, int dim, bool back)
{
    struct work w;
    divide(&w, pl_host_scratch(divide(&w, NULL, T, dim, back)), T, dim, back);
    return w;
}

static struct head head_at(const struct call *c, int b, int h)
{
    const struct pl_attention_shape *s = c->shape;
    size_t dim = (size_t)s->head_dim, heads = (size_t)s->heads;
    size_t kv = (size_t)s->kv_heads, T = (size_t)s->T, row = (size_t)b * T;
    struct head x = {.q = row * c->ld + (size_t)h * dim};
    x.k = row * c->ld + (heads + (size_t)h / (heads / kv)) * dim;
    x.v = x.k + kv * dim;
    x.out = row * c->out_ld + (size_t)h * dim;
    x.lse = ((size_t)b * heads + (size_t)h) * T;
    return x;
}

/* Rows (lines) of `depth` numbers as a left factor, `depth` rows as one transposed, and
 * the same as right factors. */
static void pack_lines(bool left, int lines, int depth, struct strided x, word *out)
{
    for (int i = 0; i < lines; i += PANEL, out += panel_stride(depth))
        pack_panel(left, least(PANEL, lines - i), depth, x.at + (size_t)i * x.row,
                   x.row, x.col, out);
}

/* C (rows, width) = left right + beta C, each factor's panels `steps` used of those
 * that it has. */
static void multiply_packed(int rows, int width, int steps, const word *left,
                            size_t left_stride, const word *right, size_t right_stride,
                            float beta, float *c, size_t ldc)
{
    for (int i = 0; i < rows; i += PANEL, left += left_stride)
        for (int j = 0; j < width; j += PANEL)
            block(least(PANEL, rows - i), least(PANEL, width - j), steps, left,
                  right + (size_t)(j / PANEL) * right_stride, 1, beta,
                  c + (size_t)i * ldc + j, ldc);
}

/* A block of queries: the first, how many, in whole panels, and the keys they see. */
struct extent {
    int first, queries, width, keys;
};

static struct extent extent_at(const struct call *c, int first)
{
    struct extent e = {.first = first, .queries = least(QUERIES, c->shape->T - first)};
    e.width = whole_panels(e.queries);
    e.keys = whole_panels(first + e.queries);
    return e;
}

/* s (keys, QUERIES) = left (keys, dim) right (dim, queries). */
static void scores(const struct call *c, const struct extent *e, const word *left,
                   const word *right, float *s)
{
    int steps = whole_panels(c->shape->head_dim) / TILE_DEPTH;
    size_t stride = panel_stride(c->shape->head_dim);
    multiply_packed(e->keys, e->width, steps, left, stride, right, stride, 0, s,
                    QUERIES);
}

/* Keys after the query, and those that only fill a panel: e^-large is exactly 0. */
static void mask(const struct extent *e, float *s)
{
    for (int j = e->first; j < e->keys; j++) {
        float *row = s + (size_t)j * QUERIES;
#pragma omp simd
        for (int q = 0; q < QUERIES; q++) row[q] = q < j - e->first ? -1e30f : row[q];
    }
}

/* Where the word of keys j, j + 1 and the query 16 g is in a right factor. */
static word *right_at(word *right, size_t stride, int j, int g)
{
    return right + (size_t)(g / 2) * stride +
           (size_t)(j / TILE_DEPTH * 2 + g % 2) * TILE + j % TILE_DEPTH / 2 * 16;
}

/* Where the words of key j and the queries from 32 s on are in a left factor. */
static word *left_at(word *left, int j, int s)
{
    return left + (size_t)(j / PANEL) * panel_stride(QUERIES) +
           (size_t)(s * 2 + j % PANEL / 16) * TILE + j % 16 * 16;
}

static inline vec vec_at(const float *x, int i)
{
    return *(const loose_vec *)(x + i * LANES);
}

/* P but for the factor 1 / sum, which is returned by query, packed; lse. */
static void softmax(const struct call *c, const struct extent *e, struct work *w,
                    size_t stride, float *inverse, float *lse)
{
    vec max[VECS], sum[VECS];
    for (int v = 0; v < VECS; v++) max[v] = vec_at(w->s, v), sum[v] = (vec){0};
    for (int j = 1; j < e->keys; j++)
        for (int v = 0; v < VECS; v++)
            max[v] = vec_max(vec_at(w->s + (size_t)j * QUERIES, v), max[v]);
    for (int v = 0; v < VECS; v++) max[v] *= c->scale;
    for (int j = 0; j < e->keys; j += 2) {
        alignas(64) float p[2][QUERIES];
        for (int r = 0; r < 2; r++)
            for (int v = 0; v < VECS; v++) {
                const float *s = w->s + (size_t)(j + r) * QUERIES;
                vec x = exp_vec(vec_at(s, v) * c->scale - max[v]);
                *(loose_vec *)(p[r] + v * LANES) = x;
                sum[v] += x;
            }
        for (int g = 0; g < e->width / 16; g++)
            pairs_across(p[0] + 16 * g, p[1] + 16 * g, right_at(w->pr, stride, j, g));
    }
    for (int q = 0; q < e->queries; q++) {
        float total = sum[q / LANES][q % LANES];
        inverse[q] = 1 / total;
        lse[q] = (float)(max[q / LANES][q % LANES] + log((double)total));
    }
}

/* Columns of turned (dim, QUERIES), times factor by query, to rows of out. */
static void turn(const float *turned, int dim, int queries, const float *factor,
                 float *out, size_t ld)
{
    for (int d = 0; d < dim; d += 16)
        for (int q = 0; q < queries; q += 16) {
            alignas(64) float in[16 * 16], t[16 * 16];
            int rows = least(16, queries - q), width = least(16, dim - d);
            for (int i = 0; i < 16; i++) {
                const float *from = turned + (size_t)(d + i) * QUERIES + q;
#pragma omp simd
                for (int k = 0; k < 16; k++) in[16 * i + k] = from[k] * factor[q + k];
            }
            transpose((const word *)in, (word *)t);
            float *to = out + (size_t)q * ld + d;
            for (int k = 0; k < rows; k++, to += ld)
                if (width == 16)
                    memcpy(to, t + 16 * k, 16 * sizeof *to);
                else
                    memcpy(to, t + 16 * k, (size_t)width * sizeof *to);
        }
}

static void attend_block(const struct call *c, const struct head *x, struct work *w,
                         int first)
{
    struct extent e = extent_at(c, first);
    int T = c->shape->T, dim = c->shape->head_dim;
    size_t row = (size_t)first;
    float inverse[QUERIES] = {0};
    pack_lines(false, e.queries, dim,
               (struct strided){c->qkv + x->q + row * c->ld, c->ld, 1}, w->qr);
    scores(c, &e, w->kl, w->qr, w->s);
    mask(&e, w->s);
    softmax(c, &e, w, panel_stride(T), inverse, c->lse + x->lse + row);
    multiply_packed(whole_panels(dim), e.width, e.keys / TILE_DEPTH, w->vtl,
                    panel_stride(T), w->pr, panel_stride(T), 0, w->turned, QUERIES);
    turn(w->turned, dim, e.queries, inverse, c->out + x->out + row * c->out_ld,
         c->out_ld);
}

/* P and dS of a block, packed; dS = p (dout v - dout out) scale. */
static void softmax_back(const struct call *c, const struct head *x,
                         const struct extent *e, struct work *w)
{
    alignas(64) float lse[QUERIES] = {0}, mean[QUERIES] = {0};
    for (int q = 0; q < e->queries; q++) {
        size_t at = x->out + (size_t)(e->first + q) * c->out_ld;
        lse[q] = c->lse_back[x->lse + (size_t)(e->first + q)];
        mean[q] = row_dot(c->shape->head_dim, c->out_back + at, c->dout + at);
    }
    for (int j = 0; j < e->keys; j += 2) {
        alignas(64) float p[2][QUERIES], ds[2][QUERIES];
        for (int r = 0; r < 2; r++) {
            const float *s = w->s + (size_t)(j + r) * QUERIES;
            const float *dp = w->ds + (size_t)(j + r) * QUERIES;
            for (int v = 0; v < VECS; v++) {
                vec y = exp_vec(vec_at(s, v) * c->scale - vec_at(lse, v));
                *(loose_vec *)(p[r] + v * LANES) = y;
                *(loose_vec *)(ds[r] + v * LANES) =
                    y * (vec_at(dp, v) - vec_at(mean, v)) * c->scale;
            }
            for (int k = 0; k < e->width / TILE_DEPTH; k++) {
                pairs_along(p[r] + TILE_DEPTH * k, left_at(w->pl, j + r, k));
                pairs_along(ds[r] + TILE_DEPTH * k, left_at(w->sl, j + r, k));
            }
        }
        for (int g = 0; g < e->width / 16; g++)
            pairs_across(ds[0] + 16 * g, ds[1] + 16 * g,
                         right_at(w->sr, panel_stride(c->shape->T), j, g));
    }
}

/* One block of queries: its dq, and what it adds to dk and dv. */
static void attend_block_back(const struct call *c, const struct head *x,
                              struct work *w, int first)
{
    struct extent e = extent_at(c, first);
    int T = c->shape->T, dim = c->shape->head_dim, seen = first + e.queries;
    size_t row = (size_t)first, tall = panel_stride(T), block = panel_stride(e.queries);
    struct strided q = {c->qkv + x->q + row * c->ld, c->ld, 1}, q_t = {q.at, 1, c->ld};
    struct strided d = {c->dout + x->out + row * c->out_ld, c->out_ld, 1};
    struct strided d_t = {d.at, 1, c->out_ld};
    float one[QUERIES];
    for (int i = 0; i < QUERIES; i++) one[i] = 1;
    pack_lines(false, e.queries, dim, q, w->qr);
    pack_lines(false, e.queries, dim, d, w->dr);
    pack_lines(false, dim, e.queries, q_t, w->qn);
    pack_lines(false, dim, e.queries, d_t, w->dn);
    scores(c, &e, w->kl, w->qr, w->s);
    scores(c, &e, w->vl, w->dr, w->ds);
    mask(&e, w->s);
    softmax_back(c, x, &e, w);
    multiply_packed(whole_panels(dim), e.width, e.keys / TILE_DEPTH, w->ktl, tall,
                    w->sr, tall, 0, w->turned, QUERIES);
    turn(w->turned, dim, e.queries, one, c->dqkv + x->q + row * c->ld, c->ld);
    multiply_packed(seen, dim, e.width / TILE_DEPTH, w->pl, panel_stride(QUERIES),
                    w->dn, block, 1, c->dqkv + x->v, c->ld);
    multiply_packed(seen, dim, e.width / TILE_DEPTH, w->sl, panel_stride(QUERIES),
                    w->qn, block, 1, c->dqkv + x->k, c->ld);
}

static void attend_part(void *context, int part)
{
    const struct call *c = context;
    const struct pl_attention_shape *s = c->shape;
    int group = s->heads / s->kv_heads, dim = s->head_dim, T = s->T;
    int b = part / s->kv_heads, first = part % s->kv_heads * group;
    struct head x = head_at(c, b, first);
    struct work w = work_new(T, dim, c->dqkv);
    const float *k = c->qkv + x.k, *v = c->qkv + x.v;
    pack_lines(true, T, dim, (struct strided){k, c->ld, 1}, w.kl);
    if (c->dqkv) {
        pack_lines(true, T, dim, (struct strided){v, c->ld, 1}, w.vl);
        pack_lines(true, dim, T, (struct strided){k, 1, c->ld}, w.ktl);
        for (size_t t = 0; t < (size_t)T; t++) {
            memset(c->dqkv + x.k + t * c->ld, 0, (size_t)dim * sizeof(float));
            memset(c->dqkv + x.v + t * c->ld, 0, (size_t)dim * sizeof(float));
        }
    } else
        pack_lines(true, dim, T, (struct strided){v, 1, c->ld}, w.vtl);
    TILES_ON();
    for (int h = first; h < first + group; h++) {
        x = head_at(c, b, h);
        for (int i = 0; i < T; i += QUERIES)
            (c->dqkv ? attend_block_back : attend_block)(c, &x, &w, i);
    }
    TILES_OFF();
}

static struct call call_new(const struct pl_attention_shape *s, const float *qkv)
{
    struct call c = {.shape = s, .qkv = qkv};
    c.ld = (size_t)(s->heads + 2 * s->kv_heads) * (size_t)s->head_dim;
    c.out_ld = (size_t)s->heads * (size_t)s->head_dim;
    c.scale = (float)(1 / sqrt((double)s->head_dim));
    return c;
}

int HOST(attention)(const struct pl_attention_shape *shape, const float *qkv,
                    float *out, float *lse)
{
    struct call c = call_new(shape, qkv);
    c.out = out;
    c.lse = lse;
    pl_pool_for(shape->B * shape->kv_heads, attend_part, &c);
    return 0;
}

int HOST(attention_back)(const struct pl_attention_shape *shape, const float *qkv,
                         const float *out, const float *lse, const float *dout,
                         float *dqkv)
{
    struct call c = call_new(shape, qkv);
    c.out_back = out;
    c.lse_back = lse;
    c.dout = dout;
    c.dqkv = dqkv;
    pl_pool_for(shape->B * shape->kv_heads, attend_part, &c);
    return 0;
}

#endif
