/* host: element by element products and quotients of the optimizers, sums of squares of
 * rows and columns; formulas as in ref_vector.c. Included once for each instruction
 * set, after host_layers.h. */
#ifndef PL_GPU_HOST_VECTOR_H
#define PL_GPU_HOST_VECTOR_H

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
