/* host: everything but GEMM and attention; formulas as in ref_layers.c. Loops marked
 * simd are the vector ones: float sums in one lane each, a fixed order on a given CPU.
 * Included once for each instruction set, with HOST defined. */
#ifndef PL_GPU_HOST_LAYERS_H
#define PL_GPU_HOST_LAYERS_H

#include <math.h>
#include <string.h>

static inline float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* e^x for x <= 0 (up to 88 in fact): 2^n e^r, n = round(x / ln 2), |r| <= ln 2 / 2,
 * Taylor to r^7 (rest 6e-9), so the error is that of rounding. 0 below -87, where e^x
 * is 1.6e-38. */
static inline float exp_f(float x)
{
    const float magic = 12582912; /* 1.5 * 2^23: adding it rounds to an integer */
    float shifted = x * 1.44269504f + magic, n = shifted - magic;
    float r = x - n * 0.693145752f; /* ln 2 in two parts, the first 9 bits short */
    r = r - n * 1.42860677e-6f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    uint32_t power = (uint32_t)bits_of(shifted) << 23;
    float e = float_of((int32_t)((uint32_t)bits_of(p) + power));
    return x < -87.0f ? 0.0f : e;
}

enum { LANE_BITS = LANES == 16 ? 4 : LANES == 8 ? 3 : 2 };

typedef int32_t lane_index __attribute__((vector_size(4 * LANES), may_alias));

#define SWAPPED(w)                                                                    \
    {                                                                                 \
        0 ^ w, 1 ^ w, 2 ^ w, 3 ^ w, 4 ^ w, 5 ^ w, 6 ^ w, 7 ^ w, 8 ^ w, 9 ^ w, 10 ^ w, \
            11 ^ w, 12 ^ w, 13 ^ w, 14 ^ w, 15 ^ w                                    \
    }
static const int32_t swapped[4][16]
    __attribute__((aligned(64))) = {SWAPPED(1), SWAPPED(2), SWAPPED(4), SWAPPED(8)};

/* v with lane i taking lane i ^ 2^level. */
static inline __attribute__((always_inline)) vec lane_swap(vec v, int level)
{
    return __builtin_shuffle(v, *(const lane_index *)swapped[level]);
}

static inline __attribute__((always_inline)) float lane_sum(vec v)
{
#pragma GCC unroll 4
    for (int k = 0; k < LANE_BITS; k++) v += lane_swap(v, k);
    return v[0];
}

static inline __attribute__((always_inline)) vec vec_max(vec u, vec v)
{
    lane_index above = u > v;
    return (vec)((above & (lane_index)u) | (~above & (lane_index)v));
}

static inline __attribute__((always_inline)) float lane_max(vec v)
{
#pragma GCC unroll 4
    for (int k = 0; k < LANE_BITS; k++) v = vec_max(lane_swap(v, k), v);
    return v[0];
}

/* Reductions over a row: two vectors of partial sums, a tree over lanes, then the rest.
 */
static inline float row_dot(int n, const float *x, const float *y)
{
    vec even = {0}, odd = {0};
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        even += *(const loose_vec *)(x + i) * *(const loose_vec *)(y + i);
        odd +=
            *(const loose_vec *)(x + i + LANES) * *(const loose_vec *)(y + i + LANES);
    }
    if (i + LANES <= n) {
        even += *(const loose_vec *)(x + i) * *(const loose_vec *)(y + i);
        i += LANES;
    }
    float sum = lane_sum(even + odd);
    for (; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static inline float row_sum(int n, const float *x)
{
    vec even = {0}, odd = {0};
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        even += *(const loose_vec *)(x + i);
        odd += *(const loose_vec *)(x + i + LANES);
    }
    if (i + LANES <= n) {
        even += *(const loose_vec *)(x + i);
        i += LANES;
    }
    float sum = lane_sum(even + odd);
    for (; i < n; i++) sum += x[i];
    return sum;
}

/* 1 / (1 + e^-x) without overflow for either sign. */
static inline float sigmoid_f(float x)
{
    float e = exp_f(-__builtin_fabsf(x)), up = 1 / (1 + e);
    return x < 0 ? e * up : up;
}

int HOST(axpby)(size_t n, float a, const float *x, float b, float *y)
{
    if (b == 0) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = a * x[i];
    } else {
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = a * x[i] + b * y[i];
    }
    return 0;
}

int HOST(dot)(size_t n, const float *x, const float *y, double *out)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * y[i];
    *out = sum;
    return 0;
}

int HOST(sign)(size_t n, const float *x, float *y)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] = (float)((x[i] > 0) - (x[i] < 0));
    return 0;
}

int HOST(adamw)(size_t n, const struct pl_adamw_args *args, const float *g,
                const float *w, float *m, float *v, float *u)
{
    float step = (float)(args->eta / args->bc1), root = (float)(1 / sqrt(args->bc2));
    float decay = (float)(args->eta * args->decay), eps = (float)args->eps;
    float b1 = (float)args->beta1, b2 = (float)args->beta2;
    float c1 = (float)(1 - args->beta1), c2 = (float)(1 - args->beta2);
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float mi = b1 * m[i] + c1 * g[i], vi = b2 * v[i] + c2 * g[i] * g[i];
        m[i] = mi;
        v[i] = vi;
        u[i] = step * mi / (__builtin_sqrtf(vi) * root + eps) + decay * w[i];
    }
    return 0;
}

int HOST(embed)(int rows, int d, const int32_t *tokens, const float *table, float *out)
{
    size_t width = (size_t)d;
    for (int r = 0; r < rows; r++, out += width)
        memcpy(out, table + (size_t)tokens[r] * width, width * sizeof *out);
    return 0;
}

int HOST(embed_back)(int rows, int d, const int32_t *tokens, const float *dout,
                     float *dtable)
{
    for (int r = 0; r < rows; r++, dout += d) {
        float *to = dtable + (size_t)tokens[r] * (size_t)d;
#pragma omp simd
        for (int i = 0; i < d; i++) to[i] += dout[i];
    }
    return 0;
}

int HOST(rmsnorm)(int rows, int d, float eps, const float *x, const float *gain,
                  float *y, float *rstd)
{
    for (int r = 0; r < rows; r++, x += d, y += d) {
        float factor = 1 / __builtin_sqrtf(row_dot(d, x, x) / (float)d + eps);
#pragma omp simd
        for (int i = 0; i < d; i++) y[i] = x[i] * factor * gain[i];
        rstd[r] = factor;
    }
    return 0;
}

int HOST(rmsnorm_back)(int rows, int d, const float *x, const float *gain,
                       const float *rstd, const float *dy, float *dx, float *dgain)
{
    for (int r = 0; r < rows; r++, x += d, dy += d, dx += d) {
        float mean = 0, factor = rstd[r];
#pragma omp simd reduction(+ : mean)
        for (int i = 0; i < d; i++) mean += dy[i] * gain[i] * x[i];
        mean *= factor * factor / (float)d;
#pragma omp simd
        for (int i = 0; i < d; i++) {
            dx[i] += factor * (dy[i] * gain[i] - x[i] * mean);
            dgain[i] += dy[i] * x[i] * factor;
        }
    }
    return 0;
}

enum { PAIRS = 64 }; /* rotation angles computed at a time */

static void rotate(int n, const float *c, const float *s, float *a, float *b)
{
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float left = a[i], right = b[i];
        a[i] = left * c[i] - right * s[i];
        b[i] = left * s[i] + right * c[i];
    }
}

int HOST(rope)(int rows, int T, int n_heads, int head_dim, int ld, double theta,
               int direction, float *x)
{
    int half = head_dim / 2;
    for (int from = 0; from < half; from += PAIRS) {
        int n = half - from < PAIRS ? half - from : PAIRS;
        double frequency[PAIRS];
        float c[PAIRS], s[PAIRS];
        for (int i = 0; i < n; i++)
            frequency[i] = direction * pow(theta, -2.0 * (from + i) / head_dim);
        for (int t = 0; t < T && t < rows; t++) {
            for (int i = 0; i < n; i++) {
                c[i] = (float)cos(t * frequency[i]);
                s[i] = (float)sin(t * frequency[i]);
            }
            for (int r = t; r < rows; r += T)
                for (int h = 0; h < n_heads; h++) {
                    float *p = x + (size_t)r * (size_t)ld + h * head_dim + from;
                    rotate(n, c, s, p, p + half);
                }
        }
    }
    return 0;
}

int HOST(swiglu)(int rows, int f, const float *gate_up, float *h)
{
    for (int r = 0; r < rows; r++, gate_up += 2 * (size_t)f, h += f) {
        const float *gate = gate_up, *up = gate_up + f;
#pragma omp simd
        for (int i = 0; i < f; i++) h[i] = gate[i] * up[i] * sigmoid_f(gate[i]);
    }
    return 0;
}

int HOST(swiglu_back)(int rows, int f, const float *gate_up, const float *dh,
                      float *dgate_up)
{
    for (int r = 0; r < rows; r++, dh += f) {
        const float *gate = gate_up, *up = gate_up + f;
        float *dgate = dgate_up, *dup = dgate_up + f;
#pragma omp simd
        for (int i = 0; i < f; i++) {
            float s = sigmoid_f(gate[i]), d = dh[i];
            dgate[i] = d * up[i] * s * (1 + gate[i] * (1 - s));
            dup[i] = d * gate[i] * s;
        }
        gate_up += 2 * (size_t)f;
        dgate_up += 2 * (size_t)f;
    }
    return 0;
}

static float row_max(int n, const float *x)
{
    float max = x[0];
    int i = 0;
    if (n >= LANES) {
        vec v = *(const loose_vec *)x;
        for (i = LANES; i + LANES <= n; i += LANES)
            v = vec_max(*(const loose_vec *)(x + i), v);
        max = lane_max(v);
    }
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

/* y = e^(x - shift); the sum of y is returned. y may be x. */
static float row_exp(int n, const float *x, float shift, float *y)
{
#pragma omp simd
    for (int i = 0; i < n; i++) y[i] = exp_f(x[i] - shift);
    return row_sum(n, y);
}

int HOST(xent)(int rows, int vocab, float *logits, const int32_t *targets, float scaled,
               double *loss)
{
    double total = 0;
    for (int r = 0; r < rows; r++, logits += vocab) {
        float max = row_max(vocab, logits), target = logits[targets[r]], sum = 0;
        if (scaled != 0) {
            sum = row_exp(vocab, logits, max, logits);
            float factor = scaled / sum;
#pragma omp simd
            for (int i = 0; i < vocab; i++) logits[i] *= factor;
            logits[targets[r]] -= scaled;
        } else {
#pragma omp simd reduction(+ : sum)
            for (int i = 0; i < vocab; i++) sum += exp_f(logits[i] - max);
        }
        total += (double)max - target + log((double)sum);
    }
    *loss = total;
    return 0;
}

#endif
