/* host: weighted sums of arrays and their distance, element by element products and
 * quotients of the optimizers, sums of squares of rows and columns; formulas as in
 * ref_vector.c. Included once for each instruction set, after host_layers.h. */
#ifndef PL_GPU_HOST_VECTOR_H
#define PL_GPU_HOST_VECTOR_H

struct blend {
    int terms;
    float a[PL_BLEND], *y;
    const float *x[PL_BLEND];
};

/* terms and one (a[0] is 1) are constants at every call. */
static inline __attribute__((always_inline)) void
blend_terms(int terms, bool one, const struct blend *p, size_t from, size_t to)
{
    const float *x0 = p->x[0], *x1 = p->x[1], *x2 = p->x[2], *x3 = p->x[3];
    const float a0 = p->a[0], a1 = p->a[1], a2 = p->a[2], a3 = p->a[3];
    float *y = p->y;
#pragma omp simd
    for (size_t i = from; i < to; i++) {
        float sum = one ? x0[i] : a0 * x0[i];
        if (terms > 1) sum = a1 * x1[i] + sum;
        if (terms > 2) sum = a2 * x2[i] + sum;
        if (terms > 3) sum = a3 * x3[i] + sum;
        y[i] = sum;
    }
}

static void blend_part(void *args, int part, size_t from, size_t to)
{
    const struct blend *p = args;
    (void)part;
    switch (p->a[0] == 1 ? -p->terms : p->terms) {
    case 0:
        memset(p->y + from, 0, (to - from) * sizeof *p->y);
        break;
    case 1:
        blend_terms(1, false, p, from, to);
        break;
    case 2:
        blend_terms(2, false, p, from, to);
        break;
    case 3:
        blend_terms(3, false, p, from, to);
        break;
    case 4:
        blend_terms(4, false, p, from, to);
        break;
    case -1:
        blend_terms(1, true, p, from, to);
        break;
    case -2:
        blend_terms(2, true, p, from, to);
        break;
    case -3:
        blend_terms(3, true, p, from, to);
        break;
    default:
        blend_terms(4, true, p, from, to);
    }
}

int HOST(blend)(size_t n, int terms, const float *a, const float *const *x, float *y)
{
    struct blend p = {.terms = terms, .y = y};
    for (int k = 0; k < terms; k++) {
        p.a[k] = a[k];
        p.x[k] = x[k];
    }
    pl_host_rows(n, 1, blend_part, &p);
    return 0;
}

static void distance_part(void *args, int part, size_t from, size_t to)
{
    struct dot *p = args;
    const float *x = p->x, *y = p->y;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = from; i < to; i++) {
        float d = x[i] - y[i];
        sum += (double)d * d;
    }
    p->slot[part] = sum;
}

int HOST(distance)(size_t n, const float *x, const float *y, double *out)
{
    struct dot p = {.x = x, .y = y};
    pl_host_rows(n, 1, distance_part, &p);
    *out = slot_sum(pl_host_parts(n, 1), p.slot);
    return 0;
}

struct mul {
    float a, b, *y;
    const float *x, *z;
};

static void mul_part(void *args, int part, size_t from, size_t to)
{
    const struct mul *p = args;
    const float *x = p->x, *z = p->z, a = p->a, b = p->b;
    float *y = p->y;
    (void)part;
    if (b == 0) {
#pragma omp simd
        for (size_t i = from; i < to; i++) y[i] = a * x[i] * z[i];
    } else {
#pragma omp simd
        for (size_t i = from; i < to; i++) y[i] = a * x[i] * z[i] + b * y[i];
    }
}

int HOST(mul)(size_t n, float a, const float *x, const float *z, float b, float *y)
{
    struct mul p = {a, b, y, x, z};
    pl_host_rows(n, 1, mul_part, &p);
    return 0;
}

struct ratio {
    float a, b, s, under, eps, least; /* d = max(s sqrt(v + under) + eps, least) */
    enum pl_along along;
    size_t width;
    const float *x, *v;
    float *y;
};

static inline float ratio_divisor(const struct ratio *r, float v)
{
    float d = r->s * __builtin_sqrtf(v + r->under) + r->eps;
    return d > r->least ? d : r->least;
}

static void ratio_each(size_t n, struct ratio r, const float *x, const float *v,
                       float *y)
{
    if (r.b == 0) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = r.a * x[i] / ratio_divisor(&r, v[i]);
    } else {
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            y[i] = r.a * x[i] / ratio_divisor(&r, v[i]) + r.b * y[i];
    }
}

static void ratio_part(void *args, int part, size_t from, size_t to)
{
    const struct ratio *r = args;
    const size_t width = r->width;
    if (r->along == PL_EACH)
        ratio_each(to - from, *r, r->x + from, r->v + from, r->y + from);
    for (size_t i = from; i < to && r->along != PL_EACH; i++) {
        const float *x = r->x + i * width;
        struct axpby row = {0, r->b, r->y + i * width, x};
        if (r->along == PL_COLUMN) {
            ratio_each(width, *r, x, r->v, row.y);
        } else {
            row.a = r->a / ratio_divisor(r, r->v[i]);
            axpby_part(&row, part, 0, width);
        }
    }
}

int HOST(ratio)(int m, int n, const struct pl_ratio_args *args, const float *x,
                const float *v, float *y)
{
    struct ratio r = {.a = (float)args->a,
                      .b = (float)args->b,
                      .s = (float)args->s,
                      .under = (float)args->under,
                      .eps = args->clamp ? 0 : (float)args->eps,
                      .least = args->clamp ? (float)args->eps : 0,
                      .along = args->along,
                      .width = (size_t)n};
    r.x = x;
    r.v = v;
    r.y = y;
    if (args->along == PL_EACH)
        pl_host_rows((size_t)m * r.width, 1, ratio_part, &r);
    else
        pl_host_rows((size_t)m, r.width, ratio_part, &r);
    return 0;
}

struct squares {
    size_t m, n;
    float a, b, *out;
    const float *x;
};

static void squares_rows(void *args, int part, size_t from, size_t to)
{
    const struct squares *p = args;
    (void)part;
    for (size_t i = from; i < to; i++) {
        const float *x = p->x + i * p->n;
        float sum = p->a * row_dot((int)p->n, x, x);
        p->out[i] = p->b == 0 ? sum : sum + p->b * p->out[i];
    }
}

enum { SQUARES_SLICE = 64 }; /* columns of a part */

/* A slice of the columns: rows stay in order. */
static void squares_columns(void *context, int part)
{
    const struct squares *p = context;
    const size_t first = (size_t)part * SQUARES_SLICE, left = p->n - first;
    const size_t n = left < SQUARES_SLICE ? left : SQUARES_SLICE;
    float *out = p->out + first;
    struct axpby old = {p->b, 0, out, out};
    if (p->b == 0)
        memset(out, 0, n * sizeof *out);
    else
        axpby_part(&old, part, 0, n);
    for (size_t i = 0; i < p->m; i++) {
        const float *x = p->x + i * p->n + first;
        struct mul add = {p->a, 1, out, x, x};
        mul_part(&add, part, 0, n);
    }
}

int HOST(squares)(enum pl_along along, int m, int n, float a, const float *x, float b,
                  float *out)
{
    struct squares p = {(size_t)m, (size_t)n, a, b, out, x};
    if (along == PL_ROW)
        pl_host_rows(p.m, p.n, squares_rows, &p);
    else
        pl_pool_for((n + SQUARES_SLICE - 1) / SQUARES_SLICE, squares_columns, &p);
    return 0;
}

#endif
