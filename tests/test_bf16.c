/* host in bf16: tiles by hand-computed cases, the three kinds against double and
 * against each other. Code for AMX runs on the CPU's tiles or, without those, by
 * amx_trap.c. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "tests/bf16_case.h"
#include "tests/conformance.h"
#include "tests/runner.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Roundings of float that those of two factors amount to: (1 + U)^2 - 1 =
 * (2 u + 3 u^2) / (1 + u)^2 < 2 u, u = 2^-8. No slack: cutting off bits must not pass.
 */
#define PRODUCT (2 * 0x1p-8 / (double)FLT_EPSILON)

START_TEST(rounding_is_to_nearest_even)
{
    static const struct {
        float x;
        uint16_t want;
    } cases[] = {
        {1, 0x3f80},
        {-1, 0xbf80},
        {1 + 0x1p-8f, 0x3f80},            /* half way, down to even */
        {1 + 3 * 0x1p-8f, 0x3f82},        /* half way, up to even */
        {1 + 0x1p-8f + 0x1p-23f, 0x3f81}, /* above half way */
        {FLT_MAX, 0x7f80},
        {INFINITY, 0x7f80},
        {-INFINITY, 0xff80},
        {FLT_MIN, 0x0080},
        {-FLT_MIN / 2, 0x8000}, /* denormal */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(pl_bf16(cases[i].x), cases[i].want);
    ck_assert(isnan(pl_bf16_float(pl_bf16(NAN))));
    uint32_t signalling = 0x7f800001; /* whose upper half alone would be inf */
    float x;
    memcpy(&x, &signalling, sizeof x);
    ck_assert(isnan(pl_bf16_float(pl_bf16(x))));
}
END_TEST

/* a (m,1) times 1 is a, rounded: bit patterns of every exponent. */
START_TEST(packing_rounds_like_the_instruction)
{
    enum { M = 4096 };
    const struct pl_device *d = kind(_i);
    if (!d) return;
    float *a = PL_NEW(M, float), c[M], one = 1;
    for (int ta = 0; ta < 2; ta++) {
        for (uint32_t i = 0; i < M; i++) {
            uint32_t bits = i * 0x9e3779b9u + (uint32_t)ta;
            memcpy(&a[i], &bits, sizeof bits);
        }
        ck_assert_int_eq(
            d->gemm(ta, false, M, 1, 1, 1, a, ta ? M : 1, &one, 1, 0, c, 1), 0);
        for (int i = 0; i < M; i++) {
            float want = pl_bf16_float(pl_bf16(a[i]));
            ck_assert_msg(isnan(want) ? isnan(c[i]) : c[i] == want, "%a to %a, not %a",
                          (double)a[i], (double)c[i], (double)want);
        }
    }
    free(a);
}
END_TEST

static uint32_t pair(float x, float y)
{
    return (uint32_t)pl_bf16(y) << 16 | pl_bf16(x);
}

/* c (2 x 1) += a (2 x 2 pairs) b (2 pairs x 1), and what lies beyond rows and bytes. */
START_TEST(tiles_by_hand)
{
    struct pl_tile_config small = {.palette = 1};
    small.rows[0] = 2, small.row_bytes[0] = 4;
    small.rows[1] = 2, small.row_bytes[1] = 8;
    small.rows[2] = 2, small.row_bytes[2] = 4;
    uint32_t a[2][3] = {{pair(1, 2), pair(3, 4), 9}, {pair(5, 6), pair(7, 8), 9}};
    uint32_t b[2] = {pair(1, -1), pair(10, 0.5f)};
    float c[2] = {100, 200}, out[4] = {7, 7, 7, 7};
    pl_tiles_configure(&small);
    pl_tile_load(0, c, 4);
    pl_tile_load(1, a, sizeof a[0]);
    pl_tile_load(2, b, 4);
    pl_tile_mul(0, 1, 2);
    pl_tile_store(0, out, 8);
    ck_assert(out[0] == 100 + 1 - 2 + 30 + 2 && out[2] == 200 + 5 - 6 + 70 + 4);
    ck_assert(out[1] == 7 && out[3] == 7);
    pl_tile_zero(0);
    pl_tile_store(0, out, 8);
    ck_assert(out[0] == 0 && out[2] == 0);
    pl_tiles_configure(&small);
    pl_tile_store(1, out, 8);
    ck_assert(out[0] == 0 && out[1] == 0 && out[2] == 0 && out[3] == 0);
    pl_tiles_release();
}
END_TEST

/* The CPU's or the trapped instructions give the order of sums: 2^24 + 1 is lost among
 * the even members, 1 + 1 of the odd ones is not. */
START_TEST(order_and_flushing)
{
    const struct pl_device *d = kind(_i);
    if (!d) return;
    float x[4] = {4096, 1, 1, 1}, small[2] = {0x1p-64f, 0x1p-63f}, c = NAN;
    ck_assert_int_eq(d->gemm(false, false, 1, 1, 4, 1, x, 4, x, 1, 0, &c, 1), 0);
    ck_assert(c == 16777218);
    d->gemm(false, false, 1, 1, 1, 1, small, 1, small, 1, 0, &c, 1);
    ck_assert(c == 0); /* 2^-128 */
    d->gemm(false, false, 1, 1, 1, 1, small + 1, 1, small + 1, 1, 0, &c, 1);
    ck_assert(c == 0x1p-126f);
    float tiny = FLT_MIN / 2;
    d->gemm(false, false, 1, 1, 1, 1, &tiny, 1, x, 1, 0, &c, 1);
    ck_assert(c == 0);
}
END_TEST

static const struct conformance *op_named(const char *name)
{
    const struct conformance *op = conformance_table;
    while (strcmp(op->op, name)) op++;
    return op;
}

static const char *const ops[] = {"gemm", "product_groups", "attention",
                                  "attention_back"};

START_TEST(conforms_with_rounded_factors)
{
    const struct pl_device *d = kind(_i % KINDS);
    const struct conformance *op = op_named(ops[_i / KINDS]);
    char text[300];
    if (!d) return;
    bool good = conformance_run_rounded(op, d, PRODUCT, text, sizeof text);
    ck_assert_msg(good, "%s (%s)", text, d->summary);
    ck_assert(!conformance_run(op, d, text, sizeof text)); /* it does round */
}
END_TEST

/* ref's result, one element off by more than rounding. */
static int off_gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                    int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    pl_device_ref.gemm(ta, tb, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    C[0] += 0.1f * (1 + fabsf(C[0]));
    return 0;
}

/* n floats without their lower halves. */
static float *cut_off(const float *x, size_t n)
{
    float *cut = PL_NEW(n, float);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0xffff0000;
        memcpy(&cut[i], &bits, sizeof bits);
    }
    return cut;
}

/* ref's of factors that were not rounded to nearest. */
static int cut_gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                    int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    float *a = cut_off(A, (size_t)lda * (size_t)(ta ? K : M));
    float *b = cut_off(B, (size_t)ldb * (size_t)(tb ? N : K));
    pl_device_ref.gemm(ta, tb, M, N, K, alpha, a, lda, b, ldb, beta, C, ldc);
    free(a), free(b);
    return 0;
}

START_TEST(a_fault_is_caught)
{
    struct pl_device d = pl_device_ref;
    char text[300];
    d.gemm = _i ? cut_gemm : off_gemm;
    ck_assert(
        !conformance_run_rounded(op_named("gemm"), &d, PRODUCT, text, sizeof text));
}
END_TEST

struct product {
    int M, N, K, pad;
    float alpha, beta;
};

/* Powers of two, so that alpha s + beta c rounds once however it is written. Tails of
 * every kind, whole blocks, more than DEPTH, more than COLUMNS. */
static const struct product products[] = {
    {1, 1, 1, 0, 1, 0},     {16, 16, 32, 0, 1, 0},   {32, 32, 32, 4, 1, 1},
    {64, 96, 64, 0, 1, 1},  {33, 47, 70, 3, 0.5, 2}, {17, 31, 33, 1, -2, 0.25},
    {70, 40, 600, 0, 1, 1}, {5, 1040, 31, 2, 1, 0},  {96, 64, 1056, 0, 1, 0},
    {40, 7, 0, 0, 1, 0.5},
};
enum { PRODUCTS = sizeof products / sizeof *products };

struct matrices {
    int lda, ldb, ldc;
    size_t nc;
    float *a, *b, *c;
};

static struct matrices matrices_new(const struct product *p, bool ta, bool tb)
{
    struct matrices x = {.lda = (ta ? p->M : p->K) + p->pad,
                         .ldb = (tb ? p->K : p->N) + p->pad,
                         .ldc = p->N + p->pad};
    size_t na = (size_t)(x.lda * (ta ? p->K : p->M)),
           nb = (size_t)(x.ldb * (tb ? p->N : p->K));
    x.nc = (size_t)(x.ldc * p->M);
    x.a = rounded(trial_random(na, 1), na);
    x.b = rounded(trial_random(nb, 2), nb);
    x.c = trial_random(x.nc, 3);
    return x;
}

static void matrices_free(struct matrices *x)
{
    free(x->a), free(x->b), free(x->c);
}

/* Products of bf16 are exact, so the bound is that of float sums: K + 3 roundings. */
static void check_exact(const struct product *p, const struct matrices *x, bool ta,
                        bool tb, const float *c)
{
    for (int i = 0; i < p->M; i++)
        for (int j = 0; j < p->N; j++) {
            double sum = 0, size = 0;
            float old = x->c[i * x->ldc + j];
            for (int k = 0; k < p->K; k++) {
                double v = (double)x->a[ta ? k * x->lda + i : i * x->lda + k] *
                           x->b[tb ? j * x->ldb + k : k * x->ldb + j];
                sum += v;
                size += fabs(v);
            }
            double want = p->alpha * sum + (p->beta == 0 ? 0 : (double)p->beta * old);
            size = fabs(p->alpha * size) +
                   (p->beta == 0 ? 0 : fabs((double)p->beta * old));
            double bound = (p->K + 3) * (double)FLT_EPSILON * size;
            ck_assert_msg(fabs(c[i * x->ldc + j] - want) <= bound,
                          "%dx%dx%d form %d: (%d,%d) is %.9g, not %.9g within %.2g",
                          p->M, p->N, p->K, ta + 2 * tb, i, j,
                          (double)c[i * x->ldc + j], want, bound);
        }
}

START_TEST(kinds_agree_on_products)
{
    const struct product *p = &products[_i / 4];
    bool ta = _i & 1, tb = _i & 2;
    struct matrices x = matrices_new(p, ta, tb);
    float *first = PL_NEW(x.nc, float), *c = PL_NEW(x.nc, float);
    for (int k = 0; k < KINDS; k++) {
        const struct pl_device *d = kind(k);
        float *out = k == PLAIN ? first : c;
        long before = amx_trap_products();
        if (!d) continue;
        memcpy(out, x.c, x.nc * sizeof *c);
        ck_assert_int_eq(d->gemm(ta, tb, p->M, p->N, p->K, p->alpha, x.a, x.lda, x.b,
                                 x.ldb, p->beta, out, x.ldc),
                         0);
        if (k == PLAIN) check_exact(p, &x, ta, tb, out);
        ck_assert_msg(!memcmp(first, out, x.nc * sizeof *c), "%s: other bits",
                      d->summary);
        const char *reason;
        if (k == AMX && !pl_host_amx(&reason) && p->K)
            ck_assert(amx_trap_products() > before);
    }
    matrices_free(&x);
    free(first), free(c);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    const struct pl_device *d = kind(AVX512) ? kind(AVX512) : kind(PLAIN);
    const struct product *p = &products[_i];
    struct matrices x = matrices_new(p, _i & 1, _i & 2);
    float *c = PL_NEW(x.nc, float), *first = PL_NEW(x.nc, float);
    for (int threads = 1; threads < 4; threads++) {
        float *out = threads == 1 ? first : c;
        pl_pool_threads_set(threads);
        memcpy(out, x.c, x.nc * sizeof *c);
        d->gemm(_i & 1, _i & 2, p->M, p->N, p->K, p->alpha, x.a, x.lda, x.b, x.ldb,
                p->beta, out, x.ldc);
        same(first, out, x.nc, "C");
    }
    pl_pool_threads_set(1);
    matrices_free(&x);
    free(first), free(c);
}
END_TEST

START_TEST(precision_of_a_device)
{
    const struct pl_device *d = NULL;
    const char *reason;
    char text[300];
    ck_assert_int_eq(pl_device_precision(&pl_device_ref, "fp32", &d), 0);
    ck_assert_ptr_eq(d, &pl_device_ref);
    ck_assert_int_eq(pl_device_precision(&pl_device_ref, "bf16", &d), PL_EUNSUP);
    ck_assert_ptr_eq(d, &pl_device_ref);
    ck_assert_int_eq(pl_device_precision(&pl_device_host, "bf16-emulated", &d), 0);
    d->describe(text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "emulated"));
    int rc = pl_device_precision(&pl_device_host, "bf16", &d);
    if (pl_host_amx(&reason)) {
        ck_assert_int_eq(rc, 0);
        d->describe(text, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, "AMX"));
    } else {
        ck_assert_int_eq(rc, PL_ENODEV);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), "AMX"));
    }
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_test(tests, rounding_is_to_nearest_even);
    tcase_add_loop_test(tests, packing_rounds_like_the_instruction, 0, KINDS);
    tcase_add_test(tests, tiles_by_hand);
    tcase_add_loop_test(tests, order_and_flushing, 0, KINDS);
    tcase_add_loop_test(tests, conforms_with_rounded_factors, 0, 3 * KINDS);
    tcase_add_loop_test(tests, a_fault_is_caught, 0, 2);
    tcase_add_loop_test(tests, kinds_agree_on_products, 0, 4 * PRODUCTS);
    tcase_add_loop_test(tests, threads_change_no_bit, 0, PRODUCTS);
    tcase_add_test(tests, precision_of_a_device);
}

int main(void)
{
    return run_tests("bf16", fill);
}
