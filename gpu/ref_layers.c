/* ref: the layers of a transformer except attention. Row by row, sums in double. */
#include "gpu/ref.h"

#include <math.h>

int pl_ref_gather(int n, int d, const int32_t *from, const float *x, float *y)
{
    return pl_ref_embed(n, d, from, x, y);
}

int pl_ref_embed(int rows, int d, const int32_t *tokens, const float *table, float *out)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < d; i++)
            out[(size_t)r * (size_t)d + i] = table[(size_t)tokens[r] * (size_t)d + i];
    return 0;
}

int pl_ref_embed_back(int rows, int d, const int32_t *tokens, const float *dout,
                      float *dtable)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < d; i++)
            dtable[(size_t)tokens[r] * (size_t)d + i] +=
                dout[(size_t)r * (size_t)d + i];
    return 0;
}

/* y = x gain / sqrt(mean x^2 + eps) (Zhang and Sennrich 2019). */
int pl_ref_rmsnorm(int rows, int d, float eps, const float *x, const float *gain,
                   float *y, float *rstd)
{
    for (int r = 0; r < rows; r++, x += d, y += d) {
        double square = 0;
        for (int i = 0; i < d; i++) square += (double)x[i] * x[i];
        double scale = 1 / sqrt(square / d + eps);
        for (int i = 0; i < d; i++) y[i] = (float)(x[i] * scale * gain[i]);
        rstd[r] = (float)scale;
    }
    return 0;
}

/* dx += rstd (dy gain - x rstd^2 mean(dy gain x)), = where dx is dy; dgain += sum over
 * rows of dy x rstd. */
int pl_ref_rmsnorm_back(int rows, int d, const float *x, const float *gain,
                        const float *rstd, const float *dy, float *dx, float *dgain)
{
    for (int i = 0; i < d; i++) {
        double sum = 0;
        for (int r = 0; r < rows; r++) {
            size_t at = (size_t)r * (size_t)d + (size_t)i;
            sum += (double)dy[at] * x[at] * rstd[r];
        }
        dgain[i] = (float)(dgain[i] + sum);
    }
    for (int r = 0; r < rows; r++, x += d, dy += d, dx += d) {
        double mean = 0, scale = rstd[r];
        for (int i = 0; i < d; i++) mean += (double)dy[i] * gain[i] * x[i];
        mean *= scale * scale / d;
        for (int i = 0; i < d; i++)
            dx[i] = (float)((dx == dy ? 0 : dx[i]) +
                            scale * ((double)dy[i] * gain[i] - x[i] * mean));
    }
    return 0;
}

/* (a, b) -> (a cos - b sin, a sin + b cos) at angle t theta^(-2i/head_dim) (Su et al.
 * 2021). */
int pl_ref_rope(int rows, int T, int n_heads, int head_dim, int ld, double theta,
                int direction, float *x)
{
    int half = head_dim / 2;
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < n_heads; h++)
            for (int i = 0; i < half; i++) {
                float *p =
                    x + (size_t)r * (size_t)ld + (size_t)h * (size_t)head_dim + i;
                double angle = r % T * pow(theta, -2.0 * i / head_dim) * direction;
                double c = cos(angle), s = sin(angle), a = p[0], b = p[half];
                p[0] = (float)(a * c - b * s);
                p[half] = (float)(a * s + b * c);
            }
    return 0;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* h = silu(gate) up, silu(g) = g sigmoid(g) (Shazeer 2020). */
int pl_ref_swiglu(int rows, int f, const float *gate_up, float *h)
{
    for (int r = 0; r < rows; r++, gate_up += 2 * (size_t)f, h += f)
        for (int i = 0; i < f; i++)
            h[i] = (float)(gate_up[i] * sigmoid(gate_up[i]) * gate_up[f + i]);
    return 0;
}

/* silu'(g) = s (1 + g (1 - s)), s = sigmoid(g). */
int pl_ref_swiglu_back(int rows, int f, const float *gate_up, const float *dh,
                       float *dgate_up)
{
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < f; i++) {
            double g = gate_up[i], up = gate_up[f + i], s = sigmoid(g);
            dgate_up[i] = (float)(dh[i] * up * s * (1 + g * (1 - s)));
            dgate_up[f + i] = (float)(dh[i] * g * s);
        }
        gate_up += 2 * (size_t)f;
        dgate_up += 2 * (size_t)f;
        dh += f;
    }
    return 0;
}

int pl_ref_xent(int rows, int vocab, float *logits, const int32_t *targets, float scale,
                double *sum)
{
    double total = 0;
    for (int r = 0; r < rows; r++, logits += vocab) {
        double max = logits[0], all = 0;
        for (int i = 1; i < vocab; i++) max = logits[i] > max ? logits[i] : max;
        for (int i = 0; i < vocab; i++) all += exp(logits[i] - max);
        double lse = max + log(all);
        total += lse - logits[targets[r]];
        if (scale != 0)
            for (int i = 0; i < vocab; i++)
                logits[i] = (float)(scale * (exp(logits[i] - lse) - (i == targets[r])));
    }
    *sum += total;
    return 0;
}
