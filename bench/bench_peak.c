/* What the machine can do at most, with every core, measured in the same run as what we
 * do: multiply-adds in registers, and a triad a = b + s c over memory. */
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/stats.h"
#include "bench/bench.h"

enum { CHAINS = 16, STEPS = 4000000 };

/* CHAINS independent chains, STEPS long, in vectors of W floats; the sum of them all.
 */
#define CHAIN(name, W, isa)                                                            \
    __attribute__((target(isa), optimize("fp-contract=fast"))) static float name(void) \
    {                                                                                  \
        typedef float wide __attribute__((vector_size(4 * W)));                        \
        wide x[CHAINS], a = (wide){0} + 0.999f, b = (wide){0} + 1e-3f;                 \
        float sum = 0;                                                                 \
        _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) x[i] =               \
            (wide){0} + (float)i;                                                      \
        for (int k = 0; k < STEPS; k++)                                                \
            _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) x[i] =           \
                x[i] * a + b;                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) sum += x[i][0];      \
        return sum;                                                                    \
    }

#ifdef __x86_64__
CHAIN(chain16, 16, "avx512f,prefer-vector-width=512")
CHAIN(chain8, 8, "avx2,fma")
#endif

static volatile float sink;

static void fma_part(void *context, int i)
{
    (void)i;
    sink = ((float (*)(void)) * (float (**)(void))context)();
}

void peak_fma(double *value, double *peer_value)
{
    double rate[BATCHES];
    float (*chain)(void) = NULL;
    int width = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        chain = chain8, width = 8;
    if (__builtin_cpu_supports("avx512f")) chain = chain16, width = 16;
#endif
    *value = *peer_value = NAN;
    if (!chain) return;
    pl_pool_threads_set(pl_pool_cores());
    for (int i = 0; i < BATCHES; i++) {
        double begin = pl_clock();
        pl_pool_for(4 * pl_pool_cores(), fma_part, &chain);
        rate[i] = 4.0 * pl_pool_cores() * STEPS * CHAINS * 2 * width /
                  (pl_clock() - begin) * 1e-9;
    }
    pl_pool_threads_set(1);
    *value = pl_quantile(rate, BATCHES, 0.5);
}

enum { PIECE = 1 << 16, PIECES = 512 }; /* 128 MiB an array */

struct triad {
    float *a, *b, *c;
};

static void triad_part(void *context, int i)
{
    const struct triad *t = context;
    float *restrict a = t->a + (size_t)i * PIECE;
    const float *b = t->b + (size_t)i * PIECE, *c = t->c + (size_t)i * PIECE;
    for (int k = 0; k < PIECE; k++) a[k] = b[k] + 0.5f * c[k];
}

void peak_triad(double *value, double *peer_value)
{
    const size_t n = (size_t)PIECE * PIECES;
    double rate[BATCHES];
    struct triad t = {PL_NEW(n, float), PL_NEW(n, float), PL_NEW(n, float)};
    pl_pool_threads_set(pl_pool_cores());
    pl_pool_for(PIECES, triad_part, &t);
    for (int i = 0; i < BATCHES; i++) {
        double begin = pl_clock();
        pl_pool_for(PIECES, triad_part, &t);
        rate[i] = 3.0 * sizeof(float) * (double)n / (pl_clock() - begin) * 1e-9;
    }
    pl_pool_threads_set(1);
    *value = pl_quantile(rate, BATCHES, 0.5);
    *peer_value = NAN;
    free(t.a), free(t.b), free(t.c);
}
