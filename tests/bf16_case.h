/* The kinds of tiles of host in bf16, for the tests of them. */
#ifndef TESTS_BF16_CASE_H
#define TESTS_BF16_CASE_H

#include "gpu/host_bf16.h"
#include "gpu/host_bf16_tiles.h"
#include "tests/amx_trap.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* Rounding x of [2^e, 2^(e+1)) to nearest in 8 bits, neighbours 2^(e-7) apart: at most
 * u 2^e with u = 2^-8 and, as x is then at least 2^e (1 + u), u / (1 + u) of x itself.
 * Cutting off bits instead can be nearly 2 u. */
#define U_BF16 (0x1p-8 / (1 + 0x1p-8))

enum { PLAIN, AVX512, AMX, KINDS };

/* The device with one kind of tiles; NULL: this CPU cannot run it at all. */
static inline const struct pl_device *kind(int k)
{
    const struct pl_device *const *sets = pl_host_bf16_sets();
    const char *reason;
    int n = 0, amx = pl_host_amx(&reason);
    while (sets[n + 1]) n++;
    if (k == PLAIN) return sets[n];
    if (n == amx) return NULL; /* no vectors */
    if (k == AVX512) return sets[amx];
    if (amx) return sets[0];
    if (!amx_trap_install()) return NULL;
    static struct pl_device trapped;
    trapped = *sets[0];
    trapped.gemm = pl_bf16_amx_gemm;
    trapped.attention = pl_bf16_amx_attention;
    trapped.attention_back = pl_bf16_amx_attention_back;
    return &trapped;
}

static inline float *rounded(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = pl_bf16_float(pl_bf16(x[i]));
    return x;
}

static inline void same(const float *x, const float *y, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(!memcmp(x + i, y + i, sizeof *x), "%s[%zu]: %a, %a", what, i,
                      (double)x[i], (double)y[i]);
}

#endif
