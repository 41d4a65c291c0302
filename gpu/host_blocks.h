/* host: LayerNorm, GELU, rows that are added to rows, RMSNorm of heads; formulas as in
 * ref_blocks.c. Included once for each instruction set, after host_layers.h. */
#ifndef PL_GPU_HOST_BLOCKS_H
#define PL_GPU_HOST_BLOCKS_H

int HOST(layernorm)(int rows, int d, float eps, const float *x, const float *gain,
                    const float *shift, float *y, float *mean, float *rstd)
{
    for (int r = 0; r < rows; r++, x += d, y += d) {
        float center = row_sum(d, x) / (float)d, square = 0;
#pragma omp simd reduction(+ : square)
        for (int i = 0; i < d; i++) square += (x[i] - center) * (x[i] - center);
        float factor = 1 / __builtin_sqrtf(square / (float)d + eps);
        if (shift) {
#pragma omp simd
            for (int i = 0; i < d; i++)
                y[i] = (x[i] - center) * factor * gain[i] + shift[i];
        } else {
#pragma omp simd
            for (int i = 0; i < d; i++) y[i] = (x[i] - center) * factor * gain[i];
        }
        mean[r] = center;
        rstd[r] = factor;
    }
    return 0;
}

int HOST(layernorm_back)(int rows, int d, const float *x, const float *gain,
                         const float *mean, const float *rstd, const float *dy,
                         float *dx, float *dgain, float *dshift)
{
    for (int r = 0; r < rows; r++, x += d, dy += d, dx += d) {
        float plain = 0, along = 0, factor = rstd[r], center = mean[r];
#pragma omp simd reduction(+ : plain, along)
        for (int i = 0; i < d; i++) {
            float e = dy[i] * gain[i];
            plain += e;
            along += e * ((x[i] - center) * factor);
        }
        plain /= (float)d;
        along /= (float)d;
#pragma omp simd
        for (int i = 0; i < d; i++) {
            float n = (x[i] - center) * factor;
            dx[i] += factor * (dy[i] * gain[i] - plain - n * along);
            dgain[i] += dy[i] * n;
        }
        if (!dshift) continue;
#pragma omp simd
        for (int i = 0; i < d; i++) dshift[i] += dy[i];
    }
    return 0;
}

int HOST(headnorm)(int rows, int n_heads, int d, int ld, float eps, const float *x,
                   const float *gain, float *y, float *rstd)
{
    for (int r = 0; r < rows; r++, x += ld, y += ld, rstd += n_heads)
        for (int h = 0; h < n_heads; h++) {
            const float *from = x + h * d;
            float *to = y + h * d;
            float factor = 1 / __builtin_sqrtf(row_dot(d, from, from) / (float)d + eps);
#pragma omp simd
            for (int i = 0; i < d; i++) to[i] = from[i] * factor * gain[i];
            rstd[h] = factor;
        }
    return 0;
}

int HOST(headnorm_back)(int rows, int n_heads, int d, int ld, const float *x,
                        const float *gain, const float *rstd, float *g, float *dgain)
{
    for (int r = 0; r < rows; r++, x += ld, g += ld, rstd += n_heads)
        for (int h = 0; h < n_heads; h++) {
            const float *from = x + h * d;
            float *to = g + h * d, mean = 0, factor = rstd[h];
#pragma omp simd reduction(+ : mean)
            for (int i = 0; i < d; i++) mean += to[i] * gain[i] * from[i];
            mean *= factor * factor / (float)d;
#pragma omp simd
            for (int i = 0; i < d; i++) {
                float dy = to[i];
                to[i] = factor * (dy * gain[i] - from[i] * mean);
                dgain[i] += dy * from[i] * factor;
            }
        }
    return 0;
}

int HOST(add_rows)(int rows, int period, int d, const float *x, float *y)
{
    for (int r = 0; r < rows; r++, y += d) {
        const float *from = x + (size_t)(r % period) * (size_t)d;
#pragma omp simd
        for (int i = 0; i < d; i++) y[i] += from[i];
    }
    return 0;
}

int HOST(add_rows_back)(int rows, int period, int d, const float *dy, float *dx)
{
    for (int r = 0; r < rows; r++, dy += d) {
        float *to = dx + (size_t)(r % period) * (size_t)d;
#pragma omp simd
        for (int i = 0; i < d; i++) to[i] += dy[i];
    }
    return 0;
}

/* 2 sqrt(2/pi), and times the cubic coefficient. */
#define GELU_A 1.59576912160573071176f
#define GELU_B (GELU_A * 0.044715f)

int HOST(gelu)(size_t n, const float *x, float *y)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * sigmoid_f(x[i] * (GELU_A + GELU_B * x[i] * x[i]));
    return 0;
}

int HOST(gelu_back)(size_t n, const float *x, const float *dy, float *dx)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = x[i], square = v * v, s = sigmoid_f(v * (GELU_A + GELU_B * square));
        float slope = GELU_A + 3 * GELU_B * square;
        dx[i] = dy[i] * s * (1 + v * (1 - s) * slope);
    }
    return 0;
}

#endif
