/* host: exponentials, and sums over a row in a fixed order. Included once for each
 * instruction set, after host_pack.h. */
#ifndef PL_GPU_HOST_MATH_H
#define PL_GPU_HOST_MATH_H

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

/* exp_f lane by lane. */
static inline __attribute__((always_inline)) vec exp_vec(vec x)
{
    const float magic = 12582912;
    vec shifted = x * 1.44269504f + magic, n = shifted - magic;
    vec r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    vec p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    lane_bits e = (lane_bits)p + ((lane_bits)shifted << 23);
    return (vec)(e & (lane_bits)(x >= -87.0f));
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

static inline float row_max(int n, const float *x)
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
static inline float row_exp(int n, const float *x, float shift, float *y)
{
#pragma omp simd
    for (int i = 0; i < n; i++) y[i] = exp_f(x[i] - shift);
    return row_sum(n, y);
}

#endif
