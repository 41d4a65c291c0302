/* host: LayerNorm, GELU, rows that are added to rows, RMSNorm of heads; formulas as in
 * ref_blocks.c. Gradients of gains are summed by parts, then part after part. Included
 * once for each instruction set, after host_layers.h. */
#ifndef PL_GPU_HOST_BLOCKS_H
#define PL_GPU_HOST_BLOCKS_H

struct layernorm {
    size_t d;
    float eps;
    const float *x, *gain, *shift, *dy, *mean, *rstd;
    float *y, *to_mean, *to_rstd, *dx;
    float *part; /* two rows for each part: of the gain, of the shift */
};

static void layernorm_part(void *args, int part, size_t from, size_t to)
{
    const struct layernorm *p = args;
    const size_t d = p->d;
    const float *gain = p->gain, *shift = p->shift;
    (void)part;
    for (size_t r = from; r < to; r++) {
        const float *x = p->x + r * d;
        float center = row_sum((int)d, x) / (float)d, square = 0, *y = p->y + r * d;
#pragma omp simd reduction(+ : square)
        for (size_t i = 0; i < d; i++) square += (x[i] - center) * (x[i] - center);
        float factor = 1 / __builtin_sqrtf(square / (float)d + p->eps);
        if (shift) {
#pragma omp simd
            for (size_t i = 0; i < d; i++)
                y[i] = (x[i] - center) * factor * gain[i] + shift[i];
        } else {
#pragma omp simd
            for (size_t i = 0; i < d; i++) y[i] = (x[i] - center) * factor * gain[i];
        }
        p->to_mean[r] = center;
        p->to_rstd[r] = factor;
    }
}

int HOST(layernorm)(int rows, int d, float eps, const float *x, const float *gain,
                    const float *shift, float *y, float *mean, float *rstd)
{
    struct layernorm p = {.d = (size_t)d, .eps = eps, .x = x, .gain = gain};
    p.shift = shift;
    p.y = y;
    p.to_mean = mean;
    p.to_rstd = rstd;
    pl_host_rows((size_t)rows, p.d, layernorm_part, &p);
    return 0;
}

static void layernorm_back_part(void *args, int part, size_t from, size_t to)
{
    const struct layernorm *p = args;
    const size_t d = p->d;
    const bool apart = p->dx != p->dy;
    const float *gain = p->gain;
    float *dgain = p->part + (size_t)part * 2 * d, *dshift = dgain + d;
    memset(dgain, 0, 2 * d * sizeof *dgain);
    for (size_t r = from; r < to; r++) {
        const float *x = p->x + r * d, *dy = p->dy + r * d;
        float plain = 0, along = 0, factor = p->rstd[r], center = p->mean[r];
        float *dx = p->dx + r * d;
#pragma omp simd reduction(+ : plain, along)
        for (size_t i = 0; i < d; i++) {
            float e = dy[i] * gain[i];
            plain += e;
            along += e * ((x[i] - center) * factor);
        }
        plain /= (float)d;
        along /= (float)d;
#pragma omp simd
        for (size_t i = 0; i < d; i++) {
            const float n = (x[i] - center) * factor;
            const float e = dy[i], old = apart ? dx[i] : 0;
            dx[i] = old + factor * (e * gain[i] - plain - n * along);
            dgain[i] += e * n;
            dshift[i] += e;
        }
    }
}

/* to (n) += rows of `from`, `step` floats apart, one after another. */
static void add_parts(int parts, size_t n, size_t step, const float *from, float *to)
{
    for (int k = 0; k < parts; k++)
#pragma omp simd
        for (size_t i = 0; i < n; i++) to[i] += from[(size_t)k * step + i];
}

int HOST(layernorm_back)(int rows, int d, const float *x, const float *gain,
                         const float *mean, const float *rstd, const float *dy,
                         float *dx, float *dgain, float *dshift)
{
    struct layernorm p = {.d = (size_t)d, .x = x, .gain = gain, .dy = dy};
    int parts = pl_host_parts((size_t)rows, p.d);
    p.mean = mean;
    p.rstd = rstd;
    p.dx = dx;
    p.part = pl_host_scratch((size_t)parts * 2 * p.d);
    pl_host_rows((size_t)rows, p.d, layernorm_back_part, &p);
    add_parts(parts, p.d, 2 * p.d, p.part, dgain);
    if (dshift) add_parts(parts, p.d, 2 * p.d, p.part + p.d, dshift);
    return 0;
}

struct headnorm {
    int n_heads;
    size_t d, more, ld;
    float eps;
    const float *x, *gain, *rstd;
    float *y, *to_rstd, *g, *dgain; /* dgain: a row for each part */
};

static void headnorm_part(void *args, int part, size_t from, size_t to)
{
    const struct headnorm *p = args;
    const size_t heads = (size_t)p->n_heads, d = p->d;
    const float *gain = p->gain;
    (void)part;
    for (size_t k = from * heads; k < to * heads; k++) {
        const size_t at = k / heads * p->ld + k % heads * d;
        const float *x = p->x + at;
        float *y = p->y + at;
        float factor = 1 / __builtin_sqrtf(row_dot((int)d, x, x) / (float)d + p->eps);
#pragma omp simd
        for (size_t i = 0; i < d; i++) y[i] = x[i] * factor * gain[i];
        p->to_rstd[k] = factor;
    }
    for (size_t r = from; p->more && r < to; r++)
        memcpy(p->y + r * p->ld + heads * d, p->x + r * p->ld + heads * d,
               p->more * sizeof *p->y);
}

int HOST(headnorm)(int rows, int n_heads, int d, int more, int ld, float eps,
                   const float *x, const float *gain, float *y, float *rstd)
{
    struct headnorm p = {.n_heads = n_heads, .d = (size_t)d, .ld = (size_t)ld};
    p.more = (size_t)more;
    p.eps = eps;
    p.x = x;
    p.gain = gain;
    p.y = y;
    p.to_rstd = rstd;
    pl_host_rows((size_t)rows, (size_t)n_heads * p.d, headnorm_part, &p);
    return 0;
}

static void headnorm_back_part(void *args, int part, size_t from, size_t to)
{
    const struct headnorm *p = args;
    const size_t heads = (size_t)p->n_heads, d = p->d;
    const float *gain = p->gain;
    float *dgain = p->dgain + (size_t)part * d;
    memset(dgain, 0, d * sizeof *dgain);
    for (size_t k = from * heads; k < to * heads; k++) {
        const size_t at = k / heads * p->ld + k % heads * d;
        const float *x = p->x + at;
        float *g = p->g + at, mean = 0, factor = p->rstd[k];
#pragma omp simd reduction(+ : mean)
        for (size_t i = 0; i < d; i++) mean += g[i] * gain[i] * x[i];
        mean *= factor * factor / (float)d;
#pragma omp simd
        for (size_t i = 0; i < d; i++) {
            float dy = g[i];
            g[i] = factor * (dy * gain[i] - x[i] * mean);
            dgain[i] += dy * x[i] * factor;
        }
    }
}

int HOST(headnorm_back)(int rows, int n_heads, int d, int ld, const float *x,
                        const float *gain, const float *rstd, float *g, float *dgain)
{
    struct headnorm p = {.n_heads = n_heads, .d = (size_t)d, .ld = (size_t)ld};
    const size_t width = (size_t)n_heads * p.d;
    int parts = pl_host_parts((size_t)rows, width);
    p.x = x;
    p.gain = gain;
    p.rstd = rstd;
    p.g = g;
    p.dgain = pl_host_scratch((size_t)parts * p.d);
    pl_host_rows((size_t)rows, width, headnorm_back_part, &p);
    add_parts(parts, p.d, p.d, p.dgain, dgain);
    return 0;
}

struct add_rows {
    size_t rows, period, d;
    const float *from;
    float *to;
};

static void add_rows_part(void *args, int part, size_t from, size_t to)
{
    const struct add_rows *p = args;
    (void)part;
    for (size_t r = from; r < to; r++) {
        const float *x = p->from + r % p->period * p->d;
        float *y = p->to + r * p->d;
#pragma omp simd
        for (size_t i = 0; i < p->d; i++) y[i] += x[i];
    }
}

int HOST(add_rows)(int rows, int period, int d, const float *x, float *y)
{
    struct add_rows p = {(size_t)rows, (size_t)period, (size_t)d, x, y};
    pl_host_rows(p.rows, p.d, add_rows_part, &p);
    return 0;
}

enum { ADD_SLICE = 64 }; /* of a part of add_rows_back */

/* A slice of the columns: rows stay in order. */
static void add_rows_back_part(void *args, int part)
{
    const struct add_rows *p = args;
    const size_t first = (size_t)part * ADD_SLICE, left = p->d - first;
    const size_t n = left < ADD_SLICE ? left : ADD_SLICE;
    for (size_t r = 0; r < p->rows; r++) {
        const float *dy = p->from + r * p->d + first;
        float *dx = p->to + r % p->period * p->d + first;
#pragma omp simd
        for (size_t i = 0; i < n; i++) dx[i] += dy[i];
    }
}

int HOST(add_rows_back)(int rows, int period, int d, const float *dy, float *dx)
{
    struct add_rows p = {(size_t)rows, (size_t)period, (size_t)d, dy, dx};
    pl_pool_for((d + ADD_SLICE - 1) / ADD_SLICE, add_rows_back_part, &p);
    return 0;
}

/* 2 sqrt(2/pi), and times the cubic coefficient. */
#define GELU_A 1.59576912160573071176f
#define GELU_B (GELU_A * 0.044715f)

struct gelu {
    const float *x, *dy;
    float *to;
};

static void gelu_part(void *args, int part, size_t from, size_t to)
{
    const struct gelu *p = args;
    const float *x = p->x;
    float *y = p->to;
    (void)part;
#pragma omp simd
    for (size_t i = from; i < to; i++)
        y[i] = x[i] * sigmoid_f(x[i] * (GELU_A + GELU_B * x[i] * x[i]));
}

int HOST(gelu)(size_t n, const float *x, float *y)
{
    struct gelu p = {x, NULL, y};
    pl_host_rows(n, 1, gelu_part, &p);
    return 0;
}

static void gelu_back_part(void *args, int part, size_t from, size_t to)
{
    const struct gelu *p = args;
    const float *x = p->x, *dy = p->dy;
    float *dx = p->to;
    (void)part;
#pragma omp simd
    for (size_t i = from; i < to; i++) {
        float v = x[i], square = v * v, s = sigmoid_f(v * (GELU_A + GELU_B * square));
        float slope = GELU_A + 3 * GELU_B * square;
        dx[i] = dy[i] * s * (1 + v * (1 - s) * slope);
    }
}

int HOST(gelu_back)(size_t n, const float *x, const float *dy, float *dx)
{
    struct gelu p = {x, dy, dx};
    pl_host_rows(n, 1, gelu_back_part, &p);
    return 0;
}

#endif
