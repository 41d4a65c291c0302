/* host: everything but GEMM and attention; formulas as in ref_layers.c. Loops marked
 * simd are the vector ones: float sums in one lane each, a fixed order on a given CPU.
 * Each op is a loop over rows or elements that pl_host_rows shares out. Included once
 * for each instruction set, with HOST defined, after host_math.h. */
#ifndef PL_GPU_HOST_LAYERS_H
#define PL_GPU_HOST_LAYERS_H

struct axpby {
    float a, b, *y;
    const float *x;
};

static void axpby_part(void *args, int part, size_t from, size_t to)
{
    const struct axpby *p = args;
    const float *x = p->x, a = p->a, b = p->b;
    float *y = p->y;
    (void)part;
    if (b == 0) {
#pragma omp simd
        for (size_t i = from; i < to; i++) y[i] = a * x[i];
    } else {
#pragma omp simd
        for (size_t i = from; i < to; i++) y[i] = a * x[i] + b * y[i];
    }
}

int HOST(axpby)(size_t n, float a, const float *x, float b, float *y)
{
    struct axpby p = {a, b, y, x};
    pl_host_rows(n, 1, axpby_part, &p);
    return 0;
}

struct dot {
    const float *x, *y;
    double slot[PL_HOST_PARTS];
};

static void dot_part(void *args, int part, size_t from, size_t to)
{
    struct dot *p = args;
    const float *x = p->x, *y = p->y;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = from; i < to; i++) sum += (double)x[i] * y[i];
    p->slot[part] = sum;
}

static double slot_sum(int n, const double *slot)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += slot[i];
    return sum;
}

int HOST(dot)(size_t n, const float *x, const float *y, double *out)
{
    struct dot p = {.x = x, .y = y};
    pl_host_rows(n, 1, dot_part, &p);
    *out = slot_sum(pl_host_parts(n, 1), p.slot);
    return 0;
}

static void sign_part(void *args, int part, size_t from, size_t to)
{
    const struct axpby *p = args;
    const float *x = p->x;
    float *y = p->y;
    (void)part;
#pragma omp simd
    for (size_t i = from; i < to; i++) y[i] = (float)((x[i] > 0) - (x[i] < 0));
}

int HOST(sign)(size_t n, const float *x, float *y)
{
    struct axpby p = {.y = y, .x = x};
    pl_host_rows(n, 1, sign_part, &p);
    return 0;
}

struct adamw {
    int count;
    const struct pl_adamw_tensor *list;
    const struct pl_adamw_args *args;
};

enum { ADAMW_PART = 16384 }; /* elements */

static size_t adamw_parts(const struct pl_adamw_tensor *x)
{
    return (x->n + ADAMW_PART - 1) / ADAMW_PART;
}

/* Part k of all tensors' parts, one after another. */
static void adamw_part(void *context, int k)
{
    const struct adamw *p = context;
    const struct pl_adamw_args *a = p->args;
    const struct pl_adamw_tensor *x = p->list;
    size_t at = (size_t)k;
    for (; at >= adamw_parts(x); x++) at -= adamw_parts(x);
    const size_t from = at * ADAMW_PART;
    const size_t to = x->n - from < ADAMW_PART ? x->n : from + ADAMW_PART;
    const float *g = x->g, *w = x->w;
    float *m = x->m, *v = x->v, *u = x->u;
    float step = (float)(a->eta / a->bc1), root = (float)(1 / sqrt(a->bc2));
    float decay = (float)(a->eta * x->decay), eps = (float)a->eps;
    float b1 = (float)a->beta1, b2 = (float)a->beta2;
    float c1 = (float)(1 - a->beta1), c2 = (float)(1 - a->beta2);
#pragma omp simd
    for (size_t i = from; i < to; i++) {
        float mi = b1 * m[i] + c1 * g[i], vi = b2 * v[i] + c2 * g[i] * g[i];
        m[i] = mi;
        v[i] = vi;
        u[i] = step * mi / (__builtin_sqrtf(vi) * root + eps) + decay * w[i];
    }
}

int HOST(adamw)(int count, const struct pl_adamw_tensor *list,
                const struct pl_adamw_args *args)
{
    struct adamw p = {count, list, args};
    size_t parts = 0;
    for (int k = 0; k < count; k++) parts += adamw_parts(&list[k]);
    if (parts) pl_pool_for((int)parts, adamw_part, &p);
    return 0;
}

struct embed {
    int rows;
    size_t width;
    const int32_t *tokens;
    const float *from;
    float *to;
};

static void embed_part(void *args, int part, size_t from, size_t to)
{
    const struct embed *p = args;
    size_t width = p->width;
    (void)part;
    for (size_t r = from; r < to; r++)
        memcpy(p->to + r * width, p->from + (size_t)p->tokens[r] * width,
               width * sizeof *p->to);
}

int HOST(embed)(int rows, int d, const int32_t *tokens, const float *table, float *out)
{
    struct embed p = {rows, (size_t)d, tokens, table, out};
    pl_host_rows((size_t)rows, p.width, embed_part, &p);
    return 0;
}

int HOST(gather)(int n, int d, const int32_t *from, const float *x, float *y)
{
    return HOST(embed)(n, d, from, x, y);
}

enum { EMBED_SLICE = 64 }; /* columns */

/* A slice of the columns: rows that share a token stay in order. */
static void embed_back_part(void *context, int part)
{
    const struct embed *p = context;
    size_t first = (size_t)part * EMBED_SLICE, left = p->width - first;
    size_t n = left < EMBED_SLICE ? left : EMBED_SLICE;
    for (int r = 0; r < p->rows; r++) {
        const float *from = p->from + (size_t)r * p->width + first;
        float *to = p->to + (size_t)p->tokens[r] * p->width + first;
#pragma omp simd
        for (size_t i = 0; i < n; i++) to[i] += from[i];
    }
}

int HOST(embed_back)(int rows, int d, const int32_t *tokens, const float *dout,
                     float *dtable)
{
    struct embed p = {rows, (size_t)d, tokens, dout, dtable};
    pl_pool_for((d + EMBED_SLICE - 1) / EMBED_SLICE, embed_back_part, &p);
    return 0;
}

struct norm {
    size_t d;
    float eps;
    const float *x, *gain, *dy;
    float *y, *rstd, *dx, *dgain; /* dgain: a row for each part */
};

static void rmsnorm_part(void *args, int part, size_t from, size_t to)
{
    const struct norm *p = args;
    const size_t d = p->d;
    (void)part;
    for (size_t r = from; r < to; r++) {
        const float *x = p->x + r * d, *gain = p->gain;
        float *y = p->y + r * d;
        float factor = 1 / __builtin_sqrtf(row_dot((int)d, x, x) / (float)d + p->eps);
#pragma omp simd
        for (size_t i = 0; i < d; i++) y[i] = x[i] * factor * gain[i];
        p->rstd[r] = factor;
    }
}

int HOST(rmsnorm)(int rows, int d, float eps, const float *x, const float *gain,
                  float *y, float *rstd)
{
    struct norm p = {.d = (size_t)d, .eps = eps, .x = x, .gain = gain};
    p.y = y;
    p.rstd = rstd;
    pl_host_rows((size_t)rows, p.d, rmsnorm_part, &p);
    return 0;
}

static void rmsnorm_back_part(void *args, int part, size_t from, size_t to)
{
    const struct norm *p = args;
    const size_t d = p->d;
    const bool apart = p->dx != p->dy;
    const float *gain = p->gain;
    float *dgain = p->dgain + (size_t)part * d;
    memset(dgain, 0, d * sizeof *dgain);
    for (size_t r = from; r < to; r++) {
        const float *x = p->x + r * d, *dy = p->dy + r * d;
        float mean = 0, factor = p->rstd[r], *dx = p->dx + r * d;
#pragma omp simd reduction(+ : mean)
        for (size_t i = 0; i < d; i++) mean += dy[i] * gain[i] * x[i];
        mean *= factor * factor / (float)d;
#pragma omp simd
        for (size_t i = 0; i < d; i++) {
            const float e = dy[i], old = apart ? dx[i] : 0;
            dx[i] = old + factor * (e * gain[i] - x[i] * mean);
            dgain[i] += e * x[i] * factor;
        }
    }
}

int HOST(rmsnorm_back)(int rows, int d, const float *x, const float *gain,
                       const float *rstd, const float *dy, float *dx, float *dgain)
{
    struct norm p = {.d = (size_t)d, .x = x, .gain = gain, .dy = dy, .dx = dx};
    int parts = pl_host_parts((size_t)rows, p.d);
    p.rstd = (float *)(uintptr_t)rstd; /* read only */
    p.dgain = pl_host_scratch((size_t)parts * p.d);
    pl_host_rows((size_t)rows, p.d, rmsnorm_back_part, &p);
    for (int k = 0; k < parts; k++)
#pragma omp simd
        for (size_t i = 0; i < p.d; i++) dgain[i] += p.dgain[(size_t)k * p.d + i];
    return 0;
}

struct rope {
    int rows, T, heads, dim, direction;
    size_t ld;
    double theta;
    float *x;
};

static void rotate(int n, const float *c, const float *s, float *a, float *b)
{
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float left = a[i], right = b[i];
        a[i] = left * c[i] - right * s[i];
        b[i] = left * s[i] + right * c[i];
    }
}

/* One sequence. The angle grows by its frequency from row to row: a rotation in double,
 * of which T leave an error of T 2^-53. */
static void rope_part(void *context, int part)
{
    enum { PAIRS = 64 };
    const struct rope *p = context;
    const int half = p->dim / 2, first = part * p->T;
    for (int from = 0; from < half; from += PAIRS) {
        int n = least(PAIRS, half - from);
        double c[PAIRS], s[PAIRS], turn_c[PAIRS], turn_s[PAIRS];
        float fc[PAIRS], fs[PAIRS];
        for (int i = 0; i < n; i++) {
            double angle = p->direction * pow(p->theta, -2.0 * (from + i) / p->dim);
            c[i] = 1;
            s[i] = 0;
            turn_c[i] = cos(angle);
            turn_s[i] = sin(angle);
        }
        for (int r = first; r < least(first + p->T, p->rows); r++) {
            float *x = p->x + (size_t)r * p->ld + from;
#pragma omp simd
            for (int i = 0; i < n; i++) {
                double now = c[i];
                fc[i] = (float)now;
                fs[i] = (float)s[i];
                c[i] = now * turn_c[i] - s[i] * turn_s[i];
                s[i] = now * turn_s[i] + s[i] * turn_c[i];
            }
            for (int h = 0; h < p->heads; h++, x += p->dim)
                rotate(n, fc, fs, x, x + half);
        }
    }
}

int HOST(rope)(int rows, int T, int n_heads, int head_dim, int ld, double theta,
               int direction, float *x)
{
    struct rope p = {rows, T, n_heads, head_dim, direction, (size_t)ld, theta, x};
    pl_pool_for((rows + T - 1) / T, rope_part, &p);
    return 0;
}

struct swiglu {
    size_t f;
    const float *gate_up, *dh;
    float *h, *dgate_up;
};

static void swiglu_part(void *args, int part, size_t from, size_t to)
{
    const struct swiglu *p = args;
    const size_t f = p->f;
    (void)part;
    for (size_t r = from; r < to; r++) {
        const float *gate = p->gate_up + r * 2 * f, *up = gate + f;
        float *h = p->h + r * f;
#pragma omp simd
        for (size_t i = 0; i < f; i++) h[i] = gate[i] * up[i] * sigmoid_f(gate[i]);
    }
}

int HOST(swiglu)(int rows, int f, const float *gate_up, float *h)
{
    struct swiglu p = {.f = (size_t)f, .gate_up = gate_up, .h = h};
    pl_host_rows((size_t)rows, 3 * p.f, swiglu_part, &p);
    return 0;
}

static void swiglu_back_part(void *args, int part, size_t from, size_t to)
{
    const struct swiglu *p = args;
    const size_t f = p->f;
    (void)part;
    for (size_t r = from; r < to; r++) {
        const float *gate = p->gate_up + r * 2 * f, *up = gate + f, *dh = p->dh + r * f;
        float *dgate = p->dgate_up + r * 2 * f, *dup = dgate + f;
#pragma omp simd
        for (size_t i = 0; i < f; i++) {
            float s = sigmoid_f(gate[i]), d = dh[i];
            dgate[i] = d * up[i] * s * (1 + gate[i] * (1 - s));
            dup[i] = d * gate[i] * s;
        }
    }
}

int HOST(swiglu_back)(int rows, int f, const float *gate_up, const float *dh,
                      float *dgate_up)
{
    struct swiglu p = {(size_t)f, gate_up, dh, NULL, dgate_up};
    pl_host_rows((size_t)rows, 5 * p.f, swiglu_back_part, &p);
    return 0;
}

struct xent {
    int vocab;
    float *logits, scaled;
    const int32_t *targets;
    double slot[PL_HOST_PARTS];
};

static void xent_part(void *args, int part, size_t from, size_t to)
{
    struct xent *p = args;
    const int vocab = p->vocab;
    double total = 0;
    for (size_t r = from; r < to; r++) {
        float *logits = p->logits + r * (size_t)vocab, sum = 0;
        float max = row_max(vocab, logits), target = logits[p->targets[r]];
        if (p->scaled != 0) {
            sum = row_exp(vocab, logits, max, logits);
            float factor = p->scaled / sum;
#pragma omp simd
            for (int i = 0; i < vocab; i++) logits[i] *= factor;
            logits[p->targets[r]] -= p->scaled;
        } else {
#pragma omp simd reduction(+ : sum)
            for (int i = 0; i < vocab; i++) sum += exp_f(logits[i] - max);
        }
        total += (double)max - target + log((double)sum);
    }
    p->slot[part] = total;
}

int HOST(xent)(int rows, int vocab, float *logits, const int32_t *targets, float scaled,
               double *sum)
{
    struct xent p = {vocab, logits, scaled, targets, {0}};
    pl_host_rows((size_t)rows, (size_t)vocab, xent_part, &p);
    *sum += slot_sum(pl_host_parts((size_t)rows, (size_t)vocab), p.slot);
    return 0;
}

#endif
