/* Attention of host in bf16: the kinds of tiles against each other and, with rounded
 * factors, against double within what the rounding of p adds. (Against double in
 * general: tests/test_bf16.c.) */
#include "base/pool.h"
#include "base/mem.h"
#include "tests/bf16_case.h"
#include "tests/conformance.h"
#include "tests/runner.h"

#include <float.h>
#include <stdlib.h>

static const struct pl_attention_shape shapes[] = {
    {1, 1, 1, 1, 16},   {2, 33, 4, 2, 16},  {1, 64, 2, 2, 32},  {1, 100, 3, 1, 64},
    {2, 130, 2, 1, 48}, {1, 70, 2, 2, 128}, {1, 600, 1, 1, 16},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct attention {
    size_t n, n_out, rows;
    float *qkv, *dout, *out, *lse, *dqkv;
};

/* Forward and backward of rounded factors by a device. */
static struct attention attend(const struct pl_device *d,
                               const struct pl_attention_shape *s)
{
    size_t rows = (size_t)(s->B * s->T);
    struct attention x = {.n = rows *
                               (size_t)((s->heads + 2 * s->kv_heads) * s->head_dim),
                          .n_out = rows * (size_t)(s->heads * s->head_dim),
                          .rows = rows * (size_t)s->heads};
    x.qkv = rounded(trial_random(x.n, 4), x.n);
    x.dout = rounded(trial_random(x.n_out, 5), x.n_out);
    x.out = trial_random(x.n_out, 6);
    x.lse = trial_random(x.rows, 7);
    x.dqkv = trial_random(x.n, 8); /* overwritten */
    ck_assert_int_eq(d->attention(s, x.qkv, x.out, x.lse), 0);
    ck_assert_int_eq(d->attention_back(s, x.qkv, x.out, x.lse, x.dout, x.dqkv), 0);
    return x;
}

static void attention_free(struct attention *x)
{
    free(x->qkv), free(x->dout), free(x->out), free(x->lse), free(x->dqkv);
}

/* Softmax is compiled from the same text with the same vectors in both. */
START_TEST(attention_on_amx_is_that_of_avx512)
{
    const struct pl_device *avx512 = kind(AVX512), *amx = kind(AMX);
    if (!amx) return;
    struct attention x = attend(avx512, &shapes[_i]), y = attend(amx, &shapes[_i]);
    same(x.out, y.out, x.n_out, "out");
    same(x.lse, y.lse, x.rows, "lse");
    same(x.dqkv, y.dqkv, x.n, "dqkv");
    attention_free(&x);
    attention_free(&y);
}
END_TEST

/* Rounded q, k, v, dout: what is left is the rounding of p (out, dv) on top of float's.
 * The sum of p |v| is ref's out for |v|, that of p |dout| its dv for |dout|. */
START_TEST(attention_rounds_p_only)
{
    const struct pl_attention_shape *s = &shapes[_i % SHAPES];
    const struct pl_device *d = kind(_i / SHAPES);
    if (!d) return;
    struct attention x = attend(d, s), want = attend(&pl_device_ref, s);
    int width = (s->heads + 2 * s->kv_heads) * s->head_dim;
    int first_v = (s->heads + s->kv_heads) * s->head_dim;
    float *size = PL_NEW(x.n_out, float), *dsize = PL_NEW(x.n, float), *qkv = x.qkv;
    float *lse = PL_NEW(x.rows, float);
    for (size_t i = 0; i < x.n_out; i++) x.dout[i] = fabsf(x.dout[i]);
    pl_device_ref.attention_back(s, qkv, want.out, want.lse, x.dout, dsize);
    for (size_t i = 0; i < x.n; i++)
        if ((int)(i % (size_t)width) >= first_v) qkv[i] = fabsf(qkv[i]);
    pl_device_ref.attention(s, qkv, size, lse);
    double rounds = 2 * 8 * s->head_dim + 3 * s->T + 16; /* A <= 8 with these numbers */
    double unit = 2 * U_BF16 + rounds * (double)FLT_EPSILON;
    for (size_t i = 0; i < x.n_out; i++)
        ck_assert_double_le(fabs((double)x.out[i] - want.out[i]), unit * size[i]);
    for (size_t i = 0; i < x.n; i++)
        if ((int)(i % (size_t)width) >= first_v)
            ck_assert_double_le(fabs((double)x.dqkv[i] - want.dqkv[i]),
                                unit * dsize[i]);
    for (size_t i = 0; i < x.rows; i++)
        ck_assert_double_le(fabs((double)x.lse[i] - want.lse[i]),
                            rounds * (double)FLT_EPSILON *
                                (1 + fabs((double)want.lse[i])));
    attention_free(&x);
    attention_free(&want);
    free(size), free(dsize), free(lse);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    const struct pl_attention_shape *s = &shapes[_i];
    const struct pl_device *d = kind(AVX512) ? kind(AVX512) : kind(PLAIN);
    struct attention one = attend(d, s);
    for (int threads = 2; threads < 4; threads++) {
        pl_pool_threads_set(threads);
        struct attention y = attend(d, s);
        same(one.out, y.out, y.n_out, "out");
        same(one.dqkv, y.dqkv, y.n, "dqkv");
        attention_free(&y);
    }
    pl_pool_threads_set(1);
    attention_free(&one);
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_loop_test(tests, attention_on_amx_is_that_of_avx512, 0, SHAPES);
    tcase_add_loop_test(tests, attention_rounds_p_only, 0, 2 * SHAPES);
    tcase_add_loop_test(tests, threads_change_no_bit, 0, SHAPES);
}

int main(void)
{
    return run_tests("bf16_attention", fill);
}
