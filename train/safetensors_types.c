/* Numbers of tensors: bfloat16 is the upper half of a float; F16 is IEEE 754 binary16.
 * Both are rounded to nearest, ties to even. */
#include <float.h>
#include <string.h>

#include "train/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors are copied as they lie in the file");

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static void decode_f64(const void *in, size_t n, float *out)
{
    const unsigned char *p = in;
    for (size_t i = 0; i < n; i++) {
        double x;
        memcpy(&x, p + sizeof x * i, sizeof x);
        out[i] = (float)x;
    }
}

static void decode_f32(const void *in, size_t n, float *out)
{
    memcpy(out, in, sizeof *out * n);
}

static void encode_f32(const float *in, size_t n, void *out)
{
    memcpy(out, in, sizeof *in * n);
}

static void decode_bf16(const void *in, size_t n, float *out)
{
    const uint16_t *h = in;
    for (size_t i = 0; i < n; i++) out[i] = float_of((uint32_t)h[i] << 16);
}

static uint16_t bf16_of(float x)
{
    uint32_t u = bits_of(x);
    if (x != x) return (uint16_t)(u >> 16 | 0x40); /* a NaN stays one */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static void encode_bf16(const float *in, size_t n, void *out)
{
    uint16_t *h = out;
    for (size_t i = 0; i < n; i++) h[i] = bf16_of(in[i]);
}

static float float_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 31) return float_of(sign | 0x7f800000 | m << 13);
    if (e) return float_of(sign | (e + 112) << 23 | m << 13);
    float x = (float)m * 0x1p-24f; /* exact */
    return sign ? -x : x;
}

static void decode_f16(const void *in, size_t n, float *out)
{
    const uint16_t *h = in;
    for (size_t i = 0; i < n; i++) out[i] = float_of_f16(h[i]);
}

static uint16_t f16_of(float x)
{
    uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
    if (a < 0x38800000) { /* below 2^-14: adding 1/2 leaves multiples of 2^-24 */
        uint32_t m = bits_of(float_of(a) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | m);
    }
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | ((a >> 13) - (112u << 10)));
}

static void encode_f16(const float *in, size_t n, void *out)
{
    uint16_t *h = out;
    for (size_t i = 0; i < n; i++) h[i] = f16_of(in[i]);
}

const struct pl_tensor_type pl_tensor_types[] = {
    {"F32", 4, decode_f32, encode_f32, FLT_MAX},
    {"BF16", 2, decode_bf16, encode_bf16, 0x1.fep127},
    {"F16", 2, decode_f16, encode_f16, 65504},
    {"F64", 8, decode_f64, NULL, DBL_MAX},
    {"I64", 8, NULL, NULL, 0},
    {"U64", 8, NULL, NULL, 0},
    {"I32", 4, NULL, NULL, 0},
    {"U32", 4, NULL, NULL, 0},
    {"I16", 2, NULL, NULL, 0},
    {"U16", 2, NULL, NULL, 0},
    {"I8", 1, NULL, NULL, 0},
    {"U8", 1, NULL, NULL, 0},
    {"BOOL", 1, NULL, NULL, 0},
    {"F8_E4M3", 1, NULL, NULL, 0},
    {"F8_E5M2", 1, NULL, NULL, 0},
    {0},
};

const struct pl_tensor_type *pl_tensor_type_find(const char *name)
{
    for (const struct pl_tensor_type *t = pl_tensor_types; t->name; t++)
        if (!strcmp(t->name, name)) return t;
    return NULL;
}
