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

/* 0 but in every eighth row, another one for each column: sums over few. */
static void thin_out(float *x, int rows, int width, int first)
{
    for (int r = 0; r < rows; r++)
        for (int i = first; i < width; i++)
            if (r % 8 != i % 8) x[(size_t)r * (size_t)width + (size_t)i] = 0;
}

static int first_value(const struct pl_attention_shape *s)
{
    return (s->heads + s->kv_heads) * s->head_dim;
}

/* Forward and backward of rounded factors by a device; v and dout thin: see above. */
static struct attention attend(const struct pl_device *d,
                               const struct pl_attention_shape *s, bool thin)
{
    size_t rows = (size_t)(s->B * s->T);
    struct attention x = {.n = rows *
                               (size_t)((s->heads + 2 * s->kv_heads) * s->head_dim),
                          .n_out = rows * (size_t)(s->heads * s->head_dim),
                          .rows = rows * (size_t)s->heads};
    x.qkv = rounded(trial_random(x.n, 4), x.n);
    x.dout = rounded(trial_random(x.n_out, 5), x.n_out);
    if (thin) {
        thin_out(x.qkv, (int)rows, (int)(x.n / rows), first_value(s));
        thin_out(x.dout, (int)rows, s->heads * s->head_dim, 0);
    }
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
    struct attention x = attend(avx512, &shapes[_i], false),
                     y = attend(amx, &shapes[_i], false);
    same(x.out, y.out, x.n_out, "out");
    same(x.lse, y.lse, x.rows, "lse");
    same(x.dqkv, y.dqkv, x.n, "dqkv");
    attention_free(&x);
    attention_free(&y);
}
END_TEST

/* Largest |x - want| / size of the n elements, of every `width` those from first on. */
static double worst(const float *x, const float *want, const float *size, size_t n,
                    int width, int first)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if ((int)(i % (size_t)width) >= first)
            most = fmax(most, fabs((double)x[i] - want[i]) / (size[i] + 1e-30));
    return most;
}

/* Rounded q, k, v, dout: what is left is the rounding of p (out, dv) on top of float's.
 * The sum of p |v| is ref's out for |v|, that of p |dout| its dv for |dout|. */
START_TEST(attention_rounds_p_only)
{
    const struct pl_attention_shape *s = &shapes[_i % SHAPES];
    const struct pl_device *d = kind(_i / SHAPES);
    if (!d) return;
    struct attention x = attend(d, s, true), want = attend(&pl_device_ref, s, true);
    int width = (s->heads + 2 * s->kv_heads) * s->head_dim;
    int first_v = first_value(s);
    float *size = PL_NEW(x.n_out, float), *dsize = PL_NEW(x.n, float), *qkv = x.qkv;
    float *lse = PL_NEW(x.rows, float);
    for (size_t i = 0; i < x.n_out; i++) x.dout[i] = fabsf(x.dout[i]);
    pl_device_ref.attention_back(s, qkv, want.out, want.lse, x.dout, dsize);
    for (size_t i = 0; i < x.n; i++)
        if ((int)(i % (size_t)width) >= first_v) qkv[i] = fabsf(qkv[i]);
    pl_device_ref.attention(s, qkv, size, lse);
    double rounds = 2 * 8 * s->head_dim + 3 * s->T + 16; /* A <= 8 with these numbers */
    double unit = U_BF16 + rounds * (double)FLT_EPSILON;
    ck_assert_double_le(worst(x.out, want.out, size, x.n_out, 1, 0), unit);
    ck_assert_double_le(worst(x.dqkv, want.dqkv, dsize, x.n, width, first_v), unit);
    for (size_t i = 0; i < x.rows; i++)
        ck_assert_double_le(fabs((double)x.lse[i] - want.lse[i]),
                            rounds * (double)FLT_EPSILON *
                                (1 + fabs((double)want.lse[i])));
    attention_free(&x);
    attention_free(&want);
    free(size), free(dsize), free(lse);
}
END_TEST

/* out (T,dim), and size as above, of one head whose p is not rounded to nearest: the
 * lower halves of exp(score - largest) are cut off. */
static void attend_cutting(int T, int dim, const float *qkv, float *out, float *size)
{
    double *p = PL_NEW(T, double);
    for (int t = 0; t < T; t++) {
        double most = -INFINITY, sum = 0;
        for (int j = 0; j <= t; j++) {
            p[j] = 0;
            for (int i = 0; i < dim; i++)
                p[j] += (double)qkv[3 * t * dim + i] * qkv[(3 * j + 1) * dim + i];
            p[j] /= sqrt(dim);
            most = fmax(most, p[j]);
        }
        for (int i = 0; i < dim; i++) out[t * dim + i] = size[t * dim + i] = 0;
        for (int j = 0; j <= t; j++) sum += p[j] = exp(p[j] - most);
        for (int j = 0; j <= t; j++) {
            const float x = (float)p[j];
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            for (int i = 0; i < dim; i++) {
                const float v = qkv[(3 * j + 2) * dim + i];
                out[t * dim + i] +=
                    (float)((double)pl_bf16_float((uint16_t)(bits >> 16)) * v / sum);
                size[t * dim + i] += (float)(p[j] * fabs((double)v) / sum);
            }
        }
    }
    free(p);
}

START_TEST(cutting_off_p_would_be_caught)
{
    const struct pl_attention_shape s = {1, 70, 1, 1, 32};
    struct attention want = attend(&pl_device_ref, &s, true);
    float *out = PL_NEW(2 * want.n_out, float), *size = out + want.n_out;
    attend_cutting(s.T, s.head_dim, want.qkv, out, size);
    ck_assert_double_gt(worst(out, want.out, size, want.n_out, 1, 0), 1.5 * U_BF16);
    attention_free(&want);
    free(out);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    const struct pl_attention_shape *s = &shapes[_i];
    const struct pl_device *d = kind(AVX512) ? kind(AVX512) : kind(PLAIN);
    struct attention one = attend(d, s, false);
    for (int threads = 2; threads < 4; threads++) {
        pl_pool_threads_set(threads);
        struct attention y = attend(d, s, false);
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
    tcase_add_test(tests, cutting_off_p_would_be_caught);
    tcase_add_loop_test(tests, threads_change_no_bit, 0, SHAPES);
}

int main(void)
{
    return run_tests("bf16_attention", fill);
}
