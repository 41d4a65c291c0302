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

int HOST(mul)(size_t n, float a, const float *x, const float *z, float b, float *y)
{
    if (b == 0) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = a * x[i] * z[i];
    } else {
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = a * x[i] * z[i] + b * y[i];
    }
    return 0;
}

struct ratio {
    float a, b, s, under, eps, least; /* d = max(s sqrt(v + under) + eps, least) */
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

int HOST(ratio)(int m, int n, const struct pl_ratio_args *args, const float *x,
                const float *v, float *y)
{
    struct ratio r = {(float)args->a,
                      (float)args->b,
                      (float)args->s,
                      (float)args->under,
                      args->clamp ? 0 : (float)args->eps,
                      args->clamp ? (float)args->eps : 0};
    const size_t width = (size_t)n;
    if (args->along == PL_EACH) {
        ratio_each((size_t)m * width, r, x, v, y);
        return 0;
    }
    for (int i = 0; i < m; i++, x += width, y += width) {
        if (args->along == PL_COLUMN)
            ratio_each(width, r, x, v, y);
        else
            HOST(axpby)(width, r.a / ratio_divisor(&r, v[i]), x, r.b, y);
    }
    return 0;
}

int HOST(squares)(enum pl_along along, int m, int n, float a, const float *x, float b,
                  float *out)
{
    const size_t width = (size_t)n;
    if (along == PL_ROW) {
        for (int i = 0; i < m; i++, x += width) {
            float sum = a * row_dot(n, x, x);
            out[i] = b == 0 ? sum : sum + b * out[i];
        }
        return 0;
    }
    if (b == 0)
        memset(out, 0, width * sizeof *out);
    else
        HOST(axpby)(width, b, out, 0, out);
    for (int i = 0; i < m; i++, x += width) HOST(mul)(width, a, x, x, 1, out);
    return 0;
}

#endif
