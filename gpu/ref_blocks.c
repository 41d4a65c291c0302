/* ref: the operations of GPT-2's blocks and of normed queries and keys: LayerNorm,
 * GELU, rows that are added to rows, RMSNorm of heads. Sums in double. */
#include "gpu/ref.h"

#include <math.h>

/* y = (x - mean) / sqrt(var + eps) gain + shift (Ba, Kiros and Hinton 2016). */
int pl_ref_layernorm(int rows, int d, float eps, const float *x, const float *gain,
                     const float *shift, float *y, float *mean, float *rstd)
{
    for (int r = 0; r < rows; r++, x += d, y += d) {
        double sum = 0, square = 0;
        for (int i = 0; i < d; i++) sum += x[i];
        double center = sum / d;
        for (int i = 0; i < d; i++) square += (x[i] - center) * (x[i] - center);
        double scale = 1 / sqrt(square / d + eps);
        for (int i = 0; i < d; i++)
            y[i] = (float)((x[i] - center) * scale * gain[i] + (shift ? shift[i] : 0));
        mean[r] = (float)center;
        rstd[r] = (float)scale;
    }
    return 0;
}

/* n = (x - mean) rstd, e = dy gain: dx += rstd (e - mean(e) - n mean(e n)), = where dx
 * is dy; dgain += sum over rows of dy n, dshift += sum of dy. */
int pl_ref_layernorm_back(int rows, int d, const float *x, const float *gain,
                          const float *mean, const float *rstd, const float *dy,
                          float *dx, float *dgain, float *dshift)
{
    for (int i = 0; i < d; i++) {
        double scaled = 0, plain = 0;
        for (int r = 0; r < rows; r++) {
            size_t at = (size_t)r * (size_t)d + (size_t)i;
            scaled += dy[at] * ((double)x[at] - mean[r]) * rstd[r];
            plain += dy[at];
        }
        dgain[i] = (float)(dgain[i] + scaled);
        if (dshift) dshift[i] = (float)(dshift[i] + plain);
    }
    for (int r = 0; r < rows; r++, x += d, dy += d, dx += d) {
        double plain = 0, along = 0, scale = rstd[r];
        for (int i = 0; i < d; i++) {
            double e = (double)dy[i] * gain[i];
            plain += e;
            along += e * ((double)x[i] - mean[r]) * scale;
        }
        for (int i = 0; i < d; i++) {
            double n = ((double)x[i] - mean[r]) * scale;
            dx[i] =
                (float)((dx == dy ? 0 : dx[i]) +
                        scale * ((double)dy[i] * gain[i] - plain / d - n * along / d));
        }
    }
    return 0;
}

/* As rmsnorm, head by head (query and key norm: Dehghani et al. 2023, OLMoE, Qwen3). */
int pl_ref_headnorm(int rows, int n_heads, int d, int more, int ld, float eps,
                    const float *x, const float *gain, float *y, float *rstd)
{
    for (int r = 0; r < rows; r++) {
        size_t at = (size_t)r * (size_t)ld;
        for (int h = 0; h < n_heads; h++, at += (size_t)d)
            pl_ref_rmsnorm(1, d, eps, x + at, gain, y + at, rstd++);
        for (int i = 0; i < more; i++) y[at + (size_t)i] = x[at + (size_t)i];
    }
    return 0;
}

int pl_ref_headnorm_back(int rows, int n_heads, int d, int ld, const float *x,
                         const float *gain, const float *rstd, float *g, float *dgain)
{
    for (int i = 0; i < d; i++) {
        double sum = 0;
        for (int k = 0; k < rows * n_heads; k++) {
            size_t at = (size_t)(k / n_heads) * (size_t)ld +
                        (size_t)(k % n_heads) * (size_t)d + (size_t)i;
            sum += (double)g[at] * x[at] * rstd[k];
        }
        dgain[i] = (float)(dgain[i] + sum);
    }
    for (int k = 0; k < rows * n_heads; k++) {
        size_t at =
            (size_t)(k / n_heads) * (size_t)ld + (size_t)(k % n_heads) * (size_t)d;
        double mean = 0, scale = rstd[k];
        for (int i = 0; i < d; i++)
            mean += (double)g[at + (size_t)i] * gain[i] * x[at + (size_t)i];
        mean *= scale * scale / d;
        for (size_t e = at; e < at + (size_t)d; e++)
            g[e] = (float)(scale * ((double)g[e] * gain[e - at] - x[e] * mean));
    }
    return 0;
}

int pl_ref_add_rows(int rows, int period, int d, const float *x, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < d; i++)
            y[(size_t)r * (size_t)d + (size_t)i] +=
                x[(size_t)(r % period) * (size_t)d + (size_t)i];
    return 0;
}

int pl_ref_add_rows_back(int rows, int period, int d, const float *dy, float *dx)
{
    for (int t = 0; t < period; t++, dx += d)
        for (int i = 0; i < d; i++) {
            double sum = dx[i];
            for (int r = t; r < rows; r += period)
                sum += dy[(size_t)r * (size_t)d + (size_t)i];
            dx[i] = (float)sum;
        }
    return 0;
}

/* tanh form of x Phi(x) (Hendrycks and Gimpel 2016), GPT-2's. */
static const double root = 0.79788456080286535588, cubic = 0.044715; /* sqrt(2/pi) */

int pl_ref_gelu(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) {
        double v = x[i];
        y[i] = (float)(v / (1 + exp(-2 * root * (v + cubic * v * v * v))));
    }
    return 0;
}

/* With s = sigmoid(2 u), u = root (x + cubic x^3), y = x s: y' = s + x s (1 - s) 2 u'.
 */
int pl_ref_gelu_back(size_t n, const float *x, const float *dy, float *dx)
{
    for (size_t i = 0; i < n; i++) {
        double v = x[i], s = 1 / (1 + exp(-2 * root * (v + cubic * v * v * v)));
        double slope = 2 * root * (1 + 3 * cubic * v * v);
        dx[i] = (float)(dy[i] * s * (1 + v * (1 - s) * slope));
    }
    return 0;
}
