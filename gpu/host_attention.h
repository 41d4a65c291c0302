/* host: causal attention by blocks of BLOCK queries (Dao et al. 2022, with keys not cut
 * into blocks: scores of one block live in scratch, O(T)). Scores lie transposed, a row
 * a key and a lane a query: softmax needs no sum over lanes, and the same numbers serve
 * unpacked as the right factor of V^T P^T and K^T dS^T and as the left factor of P^T dO
 * and dS^T Q. Backward recomputes P from lse. A part is a sequence and one of its
 * key/value heads. Included once for each instruction set, after host_gemm.h and
 * host_layers.h. */
#ifndef PL_GPU_HOST_ATTENTION_H
#define PL_GPU_HOST_ATTENTION_H

enum { PIECES = 2, BLOCK = PIECES * PANEL };

/* One query head of one sequence: pointers at its column of the sequence's first row.
 */
struct head {
    const float *q, *k, *v, *dout, *out_back;
    float *out, *dq, *dk, *dv, *lse;
    size_t ld, out_ld;
    int T, dim;
    float scale;
};

/* kt, vt: left factors (dim,T). qt, dt, q, d: right factors of a block. s, ds:
 * (T,BLOCK). turned: (dim,BLOCK). */
struct work {
    float *kt, *vt, *qt, *dt, *q, *d, *s, *ds, *turned;
};

static size_t take(size_t floats, size_t *used)
{
    size_t at = *used;
    *used += (floats + LINE - 1) / LINE * LINE;
    return at;
}

static struct work divide_scratch(int T, int dim)
{
    size_t used = 0, tall = left_floats(T, dim), rows = (size_t)T * BLOCK;
    size_t kt = take(tall, &used), vt = take(tall, &used);
    size_t qt = take(right_floats(dim, BLOCK), &used);
    size_t dt = take(right_floats(dim, BLOCK), &used);
    size_t q = take(right_floats(BLOCK, dim), &used);
    size_t d = take(right_floats(BLOCK, dim), &used);
    size_t s = take(rows, &used), ds = take(rows, &used);
    size_t turned = take((size_t)dim * BLOCK, &used);
    float *p = pl_host_scratch(used);
    return (struct work){p + kt, p + vt, p + qt, p + dt,    p + q,
                         p + d,  p + s,  p + ds, p + turned};
}

/* A block of queries: the first, how many, and by piece how many of them and how many
 * keys they see. */
struct block {
    int first, queries, width[PIECES], keys[PIECES];
};

static struct block block_at(const struct head *a, int first)
{
    struct block b = {.first = first, .queries = least(BLOCK, a->T - first)};
    for (int p = 0; p < PIECES; p++) {
        int width = least(PANEL, b.queries - p * PANEL);
        b.width[p] = width > 0 ? width : 0;
        b.keys[p] = width > 0 ? first + p * PANEL + width : 0;
    }
    return b;
}

/* Every piece of s = scale * left (keys,dim) right: transposed scores, and dP. */
static void scores(const struct head *a, const struct block *b, float scale,
                   const float *left, const float *right, float *s)
{
    for (int p = 0; p < PIECES; p++) {
        struct panels one = {right + (size_t)p * panel_stride(a->dim, PANEL), 0, PANEL};
        if (b->width[p])
            multiply(b->keys[p], PANEL, a->dim, scale, left, a->ld, one, 0,
                     s + p * PANEL, BLOCK);
    }
}

/* Keys after the query: e^-large is exactly 0. */
static void mask(const struct block *b, int piece, float *s)
{
    const vec least_score = {0};
    lane_index lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    int first = b->first + piece * PANEL;
    for (int j = first; j < b->keys[piece]; j++)
        for (int h = 0; h < 2; h++) {
            loose_vec *at =
                (loose_vec *)(s + (size_t)j * BLOCK + piece * PANEL + h * LANES);
            lane_index seen = lane + (h * LANES) >= j - first;
            *at = (vec)((seen & (lane_index)*at) |
                        (~seen & (lane_index)(least_score - 1e30f)));
        }
}

/* Softmax of a piece but for the factor 1 / sum, which is returned by lane, and lse. */
static void softmax(const struct block *b, int piece, float *s, float *inverse,
                    float *lse)
{
    int keys = b->keys[piece];
    s += piece * PANEL;
    for (int h = 0; h < PANEL; h += LANES) {
        vec max = *(const loose_vec *)(s + h), sum = {0};
        for (int j = 1; j < keys; j++)
            max = vec_max(*(const loose_vec *)(s + (size_t)j * BLOCK + h), max);
        for (int j = 0; j < keys; j++) {
            float *at = s + (size_t)j * BLOCK + h;
            vec e = exp_vec(*(loose_vec *)at - max);
            *(loose_vec *)at = e;
            sum += e;
        }
        for (int i = 0; i < LANES; i++) {
            inverse[h + i] = 1 / sum[i];
            if (h + i < b->width[piece])
                lse[h + i] = (float)(max[i] + log((double)sum[i]));
        }
    }
}

/* to (queries, dim) rows ld apart = transpose of turned (dim, BLOCK). */
static void turn(int queries, int dim, const float *turned, float *to, size_t ld)
{
    int c = 0;
    for (; c + LANES <= dim; c += LANES) {
        int r = 0;
        const float *from = turned + (size_t)c * BLOCK;
        for (; r + LANES <= queries; r += LANES)
            transpose(from + r, BLOCK, to + (size_t)r * ld + c, ld);
        for (; r < queries; r++)
            for (int i = 0; i < LANES; i++)
                to[(size_t)r * ld + (size_t)(c + i)] = from[i * BLOCK + r];
    }
    for (; c < dim; c++)
        for (int r = 0; r < queries; r++)
            to[(size_t)r * ld + (size_t)c] = turned[c * BLOCK + r];
}

/* turned = alpha * left (dim,keys) s (keys,queries), times factor by lane if given. */
static void gather(const struct head *a, const struct block *b, float alpha,
                   const float *left, const float *s, const float *factor,
                   float *turned)
{
    struct panels tall = {left, panel_stride(a->T, TILE_ROWS), TILE_ROWS};
    for (int p = 0; p < PIECES; p++) {
        float *to = turned + p * PANEL;
        struct panels right = {s + p * PANEL, 0, BLOCK};
        if (!b->width[p]) continue;
        multiply_packed(a->dim, PANEL, b->keys[p], alpha, tall, right, 0, to, BLOCK);
        for (int c = 0; factor && c < a->dim; c++)
            for (int h = 0; h < PANEL; h += LANES)
                *(loose_vec *)(to + c * BLOCK + h) *=
                    *(const loose_vec *)(factor + p * PANEL + h);
    }
}

static void attend(const struct head *a, const struct work *w)
{
    for (int i = 0; i < a->T; i += BLOCK) {
        struct block b = block_at(a, i);
        float inverse[BLOCK];
        struct strided q = {a->q + (size_t)i * a->ld, 1, a->ld};
        pack_right(a->dim, b.queries, q, w->qt);
        scores(a, &b, a->scale, a->k, w->qt, w->s);
        for (int p = 0; p < PIECES; p++) {
            if (!b.width[p]) continue;
            mask(&b, p, w->s);
            softmax(&b, p, w->s, inverse + p * PANEL, a->lse + i + p * PANEL);
        }
        gather(a, &b, 1, w->vt, w->s, inverse, w->turned);
        turn(b.queries, a->dim, w->turned, a->out + (size_t)i * a->out_ld, a->out_ld);
    }
}

/* c (keys,dim) += alpha s right. Keys after a piece add nothing to it. */
static void spread(const struct head *a, const struct block *b, float alpha,
                   const float *s, const float *right, float *c)
{
    struct panels all = {right, panel_stride(b->queries, PANEL), PANEL};
    int from = 0;
    for (int p = 0; p < PIECES; p++) {
        int keys = b->keys[p] - from;
        if (keys <= 0) continue;
        multiply(keys, a->dim, b->queries - p * PANEL, alpha,
                 s + (size_t)from * BLOCK + p * PANEL, BLOCK, all, 1,
                 c + (size_t)from * a->ld, a->ld);
        all.at += (size_t)PANEL * PANEL;
        from = b->keys[p];
    }
}

/* s becomes p = e^(s - lse); ds, which holds dout v, becomes p (dout v - dout out). */
static void block_back(const struct head *a, const struct block *b, int piece, float *s,
                       float *ds)
{
    float lse[PANEL] = {0}, mean[PANEL] = {0};
    int first = b->first + piece * PANEL;
    for (int r = 0; r < b->width[piece]; r++) {
        size_t at = (size_t)(first + r) * a->out_ld;
        mean[r] = row_dot(a->dim, a->out_back + at, a->dout + at);
        lse[r] = a->lse[first + r];
    }
    s += piece * PANEL;
    ds += piece * PANEL;
    for (int j = 0; j < b->keys[piece]; j++)
        for (int h = 0; h < PANEL; h += LANES) {
            loose_vec *x = (loose_vec *)(s + (size_t)j * BLOCK + h);
            loose_vec *y = (loose_vec *)(ds + (size_t)j * BLOCK + h);
            *x = exp_vec(*x - *(const loose_vec *)(lse + h));
            *y = *x * (*y - *(const loose_vec *)(mean + h));
        }
}

static void attend_back(const struct head *a, const struct work *w)
{
    for (int i = 0; i < a->T; i += BLOCK) {
        struct block b = block_at(a, i);
        const float *q = a->q + (size_t)i * a->ld;
        const float *d = a->dout + (size_t)i * a->out_ld;
        pack_right(a->dim, b.queries, (struct strided){q, 1, a->ld}, w->qt);
        pack_right(a->dim, b.queries, (struct strided){d, 1, a->out_ld}, w->dt);
        pack_right(b.queries, a->dim, (struct strided){q, a->ld, 1}, w->q);
        pack_right(b.queries, a->dim, (struct strided){d, a->out_ld, 1}, w->d);
        scores(a, &b, a->scale, a->k, w->qt, w->s);
        scores(a, &b, 1, a->v, w->dt, w->ds);
        for (int p = 0; p < PIECES; p++) {
            if (!b.width[p]) continue;
            mask(&b, p, w->s);
            block_back(a, &b, p, w->s, w->ds);
        }
        gather(a, &b, a->scale, w->kt, w->ds, NULL, w->turned);
        turn(b.queries, a->dim, w->turned, a->dq + (size_t)i * a->ld, a->ld);
        spread(a, &b, 1, w->s, w->d, a->dv);
        spread(a, &b, a->scale, w->ds, w->q, a->dk);
    }
}

struct attention {
    const struct pl_attention_shape *shape;
    const float *qkv, *out_back, *dout;
    float *out, *lse, *dqkv;
};

static struct head head_at(const struct attention *x, int b, int h)
{
    const struct pl_attention_shape *s = x->shape;
    size_t dim = (size_t)s->head_dim, heads = (size_t)s->heads,
           kv = (size_t)s->kv_heads, T = (size_t)s->T, one = (size_t)h;
    size_t ld = (heads + 2 * kv) * dim, row = (size_t)b * T;
    size_t q = row * ld + one * dim;
    size_t k = row * ld + (heads + one / (heads / kv)) * dim;
    size_t out = row * heads * dim + one * dim;
    struct head a = {.q = x->qkv + q, .k = x->qkv + k, .v = x->qkv + k + kv * dim};
    a.ld = ld;
    a.out_ld = heads * dim;
    a.T = s->T;
    a.dim = s->head_dim;
    a.scale = (float)(1 / sqrt((double)s->head_dim));
    a.lse = x->lse + ((size_t)b * heads + one) * T;
    if (x->out) a.out = x->out + out;
    if (!x->dqkv) return a;
    a.out_back = x->out_back + out;
    a.dout = x->dout + out;
    a.dq = x->dqkv + q;
    a.dk = x->dqkv + k;
    a.dv = a.dk + kv * dim;
    return a;
}

static void attention_part(void *context, int part)
{
    const struct attention *x = context;
    const struct pl_attention_shape *s = x->shape;
    int group = s->heads / s->kv_heads, b = part / s->kv_heads;
    int first = part % s->kv_heads * group;
    struct work w = divide_scratch(s->T, s->head_dim);
    struct head a = head_at(x, b, first);
    if (x->dqkv)
        pack_left(a.dim, a.T, (struct strided){a.k, 1, a.ld}, w.kt);
    else
        pack_left(a.dim, a.T, (struct strided){a.v, 1, a.ld}, w.vt);
    for (int t = 0; x->dqkv && t < a.T; t++) {
        memset(a.dk + (size_t)t * a.ld, 0, (size_t)a.dim * sizeof *a.dk);
        memset(a.dv + (size_t)t * a.ld, 0, (size_t)a.dim * sizeof *a.dv);
    }
    for (int h = first; h < first + group; h++) {
        a = head_at(x, b, h);
        (x->dqkv ? attend_back : attend)(&a, &w);
    }
}

int HOST(attention)(const struct pl_attention_shape *shape, const float *qkv,
                    float *out, float *lse)
{
    struct attention x = {.shape = shape, .qkv = qkv, .out = out, .lse = lse};
    pl_pool_for(shape->B * shape->kv_heads, attention_part, &x);
    return 0;
}

int HOST(attention_back)(const struct pl_attention_shape *shape, const float *qkv,
                         const float *out, const float *lse, const float *dout,
                         float *dqkv)
{
    struct attention x = {.shape = shape, .qkv = qkv, .out_back = out, .dout = dout};
    x.lse = (float *)(uintptr_t)lse; /* read only */
    x.dqkv = dqkv;
    pl_pool_for(shape->B * shape->kv_heads, attention_part, &x);
    return 0;
}

#endif
