/* The device `host`: vector loops and an own GEMM on AVX2 and AVX-512, OpenBLAS with
 * one thread elsewhere. OpenBLAS 0.3.21 knows no CPU younger than itself and falls back
 * to its SSE3 kernels there (30 of 230 GFLOP/s on an Emerald Rapids core), and its
 * packing costs as much as the product at K = 64; hence the own kernel. */
#include "gpu/host.h"
#include "base/err.h"
#include "base/mem.h"
#include "gpu/hostmem.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

enum { SCRATCH = 2 << 20 }; /* bytes that a thread starts with: a huge page */

struct scratch {
    size_t floats;
    float *block;
};

static once_flag once = ONCE_FLAG_INIT;
static tss_t key;

static void scratch_free(void *object)
{
    struct scratch *s = object;
    pl_hostmem_release(s->block);
    free(s);
}

static void make_key(void)
{
    if (tss_create(&key, scratch_free) != thrd_success) abort();
}

float *pl_host_scratch(size_t floats)
{
    call_once(&once, make_key);
    struct scratch *s = tss_get(key);
    if (!s) {
        s = PL_NEW(1, struct scratch);
        if (tss_set(key, s) != thrd_success) abort();
    }
    if (s->floats < floats) {
        const size_t bytes = sizeof(float) * floats;
        pl_hostmem_release(s->block);
        void *block;
        if (pl_hostmem_alloc(bytes < SCRATCH ? SCRATCH : bytes, &block))
            pl_out_of_memory(bytes);
        s->block = block;
        s->floats = (bytes < SCRATCH ? SCRATCH : bytes) / sizeof(float);
    }
    return s->block;
}

/* What attention takes with AVX-512, whose blocks are the largest: two factors of
 * (head_dim,T) in panels of 12, two blocks of scores (T,64), and blocks of queries. In
 * bf16 three factors and three blocks of scores in words of 2 bytes, two blocks of them
 * in floats. What products pack fits in SCRATCH: 256 x (512 + 480) floats, or 512 x
 * 1024 words. */
size_t pl_host_scratch_bytes(int T, int head_dim, bool bf16)
{
    size_t t = (size_t)T, dim = (size_t)head_dim;
    size_t floats = 2 * (t + 1) * (dim + 12 + 64) + 5 * 64 * (dim + 64);
    if (bf16) {
        t = (t + 31) / 32 * 32, dim = (dim + 31) / 32 * 32;
        floats = t * (3 * dim / 2 + 7 * 64 / 2) + 6 * 64 * dim / 2;
    }
    size_t bytes = floats * sizeof(float);
    return bytes > SCRATCH ? bytes : SCRATCH;
}

/* Rows of one part. */
static size_t part_step(size_t n, size_t width)
{
    enum { FLOATS = 16384, LINE = 16 };
    size_t step = FLOATS / (width ? width : 1) + 1;
    if (step < (n + PL_HOST_PARTS - 1) / PL_HOST_PARTS)
        step = (n + PL_HOST_PARTS - 1) / PL_HOST_PARTS;
    return width > 1 ? step : (step + LINE - 1) / LINE * LINE;
}

int pl_host_parts(size_t n, size_t width)
{
    size_t step = part_step(n, width);
    return (int)((n + step - 1) / step);
}

struct rows {
    pl_host_work *work;
    void *args;
    size_t n, step;
};

static void rows_part(void *context, int part)
{
    const struct rows *r = context;
    size_t from = (size_t)part * r->step, to = from + r->step;
    r->work(r->args, part, from, to < r->n ? to : r->n);
}

void pl_host_rows(size_t n, size_t width, pl_host_work *work, void *args)
{
    struct rows r = {work, args, n, part_step(n, width)};
    pl_pool_for(pl_host_parts(n, width), rows_part, &r);
}

static int host_open(void)
{
    openblas_set_num_threads(1);
    return 0;
}

static void host_close(void)
{
}

static void host_describe(char *text, size_t n)
{
    snprintf(text, n, "host: %s; %s, core %s", pl_host_sets()[0]->summary,
             openblas_get_config(), openblas_get_corename());
}

#define SET(p, title)                                                                  \
    {                                                                                  \
        .name = "host", .summary = title, .host_memory = true,                         \
        .real_bytes = sizeof(float), .precision = "fp32", .open = host_open,           \
        .close = host_close,                                                           \
        .describe = host_describe, .alloc = pl_hostmem_alloc,                          \
        .release = pl_hostmem_release, .upload = pl_hostmem_copy,                      \
        .download = pl_hostmem_copy, .copy = pl_hostmem_copy, .zero = pl_hostmem_zero, \
        .prefetch = pl_hostmem_copy,                                                   \
        PL_DEVICE_OP_TABLE(p)                                                          \
    }

static const struct pl_device base_set =
    SET(pl_base_, "portable vector loops, OpenBLAS");

#ifdef __x86_64__
static const struct pl_device avx2_set = SET(pl_avx2_, "AVX2 kernels");
static const struct pl_device avx512_set = SET(pl_avx512_, "AVX-512 kernels");

const struct pl_device *const *pl_host_sets(void)
{
    static const struct pl_device *const sets[] = {&avx512_set, &avx2_set, &base_set,
                                                   NULL};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return sets;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? sets + 1
                                                                           : sets + 2;
}
#else
const struct pl_device *const *pl_host_sets(void)
{
    static const struct pl_device *const sets[] = {&base_set, NULL};
    return sets;
}
#endif

#define FORWARD(p, name, params, args)       \
    static int p##name params                \
    {                                        \
        return pl_host_sets()[0]->name args; \
    }
PL_OPS(FORWARD, host_)

const struct pl_device pl_device_host =
    SET(host_, "own GEMM and vector loops, or OpenBLAS");
