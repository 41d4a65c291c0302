/* host in bf16: rounding and transposing for packing, with AVX-512 and AVX512_BF16
 * (VCVTNE2PS2BF16: nearest even, denormals to 0). See gpu/host_bf16_gemm.h. */
#ifndef PL_GPU_HOST_BF16_PAIRS_H
#define PL_GPU_HOST_BF16_PAIRS_H

#include <immintrin.h>
#include <stdint.h>

static inline void pairs_along(const float *x, uint32_t *out)
{
    __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
    _mm512_storeu_si512(out, (__m512i)both);
}

static inline void pairs_across(const float *x, const float *y, uint32_t *out)
{
    __m256i low = (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x));
    __m256i high = (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(y));
    __m512i up = _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
    _mm512_storeu_si512(out, _mm512_or_si512(up, _mm512_cvtepu16_epi32(low)));
}

/* Four rounds: words, pairs of words, then quarters of rows twice. */
static inline void transpose(const uint32_t *in, uint32_t *out)
{
    __m512i a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_si512(in + 16 * i);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 16
        for (int k = 0; k < 2; k++) {
            a[i + 2 * k] = _mm512_unpacklo_epi64(b[i + k], b[i + k + 2]);
            a[i + 2 * k + 1] = _mm512_unpackhi_epi64(b[i + k], b[i + k + 2]);
        }
        /* a[i + c] has columns c, 4 + c, 8 + c, 12 + c of rows i .. i + 3 as quarters
         */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 8)
#pragma GCC unroll 16
        for (int c = 0; c < 4; c++) {
            b[i + c] = _mm512_shuffle_i32x4(a[i + c], a[i + 4 + c], 0x88);
            b[i + 4 + c] = _mm512_shuffle_i32x4(a[i + c], a[i + 4 + c], 0xdd);
        }
#pragma GCC unroll 16
    for (int c = 0; c < 4; c++) {
        __m512i *p = b + c, *q = b + 8 + c;
        _mm512_storeu_si512(out + 16 * c, _mm512_shuffle_i32x4(p[0], q[0], 0x88));
        _mm512_storeu_si512(out + 16 * (c + 4), _mm512_shuffle_i32x4(p[4], q[4], 0x88));
        _mm512_storeu_si512(out + 16 * (c + 8), _mm512_shuffle_i32x4(p[0], q[0], 0xdd));
        _mm512_storeu_si512(out + 16 * (c + 12),
                            _mm512_shuffle_i32x4(p[4], q[4], 0xdd));
    }
}

#endif
