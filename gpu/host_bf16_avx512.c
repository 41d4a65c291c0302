/* host in bf16, tiles in memory multiplied by AVX-512: the sums of TDPBF16PS in the
 * same order with the same roundings, so the same bits at the speed of fp32. (VDPBF16PS
 * adds both members of a pair to one sum and is half as fast as a float FMA.) See
 * host.h. */
#include "gpu/host_bf16.h"
#include "gpu/host_bf16_tiles.h"

#ifdef __x86_64__
#include <string.h>

#pragma GCC target("arch=x86-64-v4,avx512bf16")
#pragma GCC target("prefer-vector-width=512")
#pragma GCC optimize("fp-contract=fast")
#define HOST(name) pl_bf16_avx512_##name
enum { LANES = 16 };

#include "gpu/host_bf16_pairs.h"

static _Thread_local uint32_t tile[PL_TILES][16 * 16] __attribute__((aligned(64)));

static void tile_load(uint32_t *t, const void *from, size_t stride)
{
    for (size_t r = 0; r < 16; r++)
        _mm512_store_si512(t + 16 * r,
                           _mm512_loadu_si512((const char *)from + r * stride));
}

static void tile_store(const uint32_t *t, void *to, size_t stride)
{
    for (size_t r = 0; r < 16; r++)
        _mm512_storeu_si512((char *)to + r * stride, _mm512_load_si512(t + 16 * r));
}

/* Rows of c, eight at a time: even and odd members of the pairs apart. */
static inline void mul_rows(uint32_t *c, const uint32_t *a, const uint32_t *b)
{
    enum { ROWS_AT_ONCE = 8 };
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    __m512 even[ROWS_AT_ONCE], odd[ROWS_AT_ONCE];
    for (int r = 0; r < ROWS_AT_ONCE; r++) even[r] = odd[r] = _mm512_setzero_ps();
    for (int k = 0; k < 16; k++) {
        __m512i right = _mm512_load_si512(b + 16 * k);
        __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(right, 16));
        __m512 high = _mm512_castsi512_ps(_mm512_and_si512(right, upper));
#pragma GCC unroll 8
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            __m512i left = _mm512_set1_epi32((int)a[16 * r + k]);
            __m512 x = _mm512_castsi512_ps(_mm512_slli_epi32(left, 16));
            __m512 y = _mm512_castsi512_ps(_mm512_and_si512(left, upper));
            even[r] = _mm512_fmadd_ps(x, low, even[r]);
            odd[r] = _mm512_fmadd_ps(y, high, odd[r]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
        __m512 old = _mm512_load_ps((const void *)(c + 16 * r));
        old = _mm512_add_ps(old, _mm512_add_ps(even[r], odd[r]));
        _mm512_store_ps((void *)(c + 16 * r), old);
    }
}

/* Under the rounding of the tiles: nearest even, denormals are 0 in and out. Operands
 * and results pass through memory, which orders them with the control word. */
static void tile_mul(uint32_t *c, const uint32_t *a, const uint32_t *b)
{
    unsigned control = _mm_getcsr();
    _mm_setcsr((control & ~0x6000u) | 0x8040);
    __asm__ volatile("" ::: "memory");
    mul_rows(c, a, b);
    mul_rows(c + 128, a + 128, b);
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(control);
}

#define TILES_ON() (void)0
#define TILES_OFF() (void)0
#define TILE_ZERO(t) memset(tile[t], 0, sizeof tile[t])
#define TILE_LOAD(t, p, stride) tile_load(tile[t], p, stride)
#define TILE_STORE(t, p, stride) tile_store(tile[t], p, stride)
#define TILE_MUL(c, a, b) tile_mul(tile[c], tile[a], tile[b])

#include "gpu/host_bf16_gemm.h"
#include "gpu/host_math.h"
#include "gpu/host_bf16_attention.h"
#endif
