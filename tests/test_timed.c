/* The measuring device against a net whose operations can be counted by hand, and the
 * profile of a run that is made of it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "gpu/timed.h"
#include "tests/net_fixture.h"
#include "tests/runner.h"
#include "train/profile.h"

enum { L = 3, B = 2, T = 6, ROWS = B * T };

static const struct pl_model model = {.layers = L,
                                      .hidden = 16,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 4,
                                      .ffn = 20,
                                      .vocab = 31,
                                      .rope_theta = 1e4,
                                      .norm_eps = 1e-5};

static const struct pl_model gpt2 = {.layers = L,
                                     .hidden = 16,
                                     .heads = 4,
                                     .kv_heads = 4,
                                     .head_dim = 4,
                                     .ffn = 64,
                                     .vocab = 31,
                                     .positions = T,
                                     .norm = PL_NORM_LAYER,
                                     .bias = PL_BIAS_ALL,
                                     .mlp = PL_MLP_GELU,
                                     .rope_theta = 1e4,
                                     .norm_eps = 1e-5};

/* One gradient; the table of its operations. */
static struct pl_timed_table gradient_table(const struct pl_device *device,
                                            const struct pl_model *m)
{
    struct pl_timed_table table = {0};
    struct fixture f;
    fixture_open(&f, pl_timed_device(0, device), m, 2, B, T);
    pl_timed_into(&table);
    fixture_gradient(&f, 1);
    pl_timed_into(NULL);
    fixture_gradient(&f, 1); /* not counted */
    fixture_free(&f);
    return table;
}

static void check_calls(const struct pl_timed_table *t, const int64_t *want)
{
    for (int row = 0; row < PL_TIMED_ROWS; row++)
        ck_assert_msg(t->row[row].calls == want[row], "%s: %lld calls, expected %lld",
                      pl_timed_names[row], (long long)t->row[row].calls,
                      (long long)want[row]);
}

START_TEST(calls_are_those_of_the_net)
{
    const struct pl_timed_table t = gradient_table(&pl_device_host, &model);
    int64_t want[PL_TIMED_ROWS] = {0};
    want[PL_TIMED_product] = want[PL_TIMED_product_dx] = want[PL_TIMED_product_dw] =
        4 * L + 1; /* qkv, o, gate and up, down; head */
    want[PL_TIMED_embed] = want[PL_TIMED_embed_back] = want[PL_TIMED_xent] = 1;
    want[PL_TIMED_rmsnorm] = want[PL_TIMED_rmsnorm_back] = 2 * L + 1;
    want[PL_TIMED_attention] = want[PL_TIMED_attention_back] = L;
    want[PL_TIMED_swiglu] = want[PL_TIMED_swiglu_back] = L;
    want[PL_TIMED_rope] = 2 * L;
    want[PL_TIMED_zero] = 1; /* sums */
    want[PL_TIMED_download] = 1;
    check_calls(&t, want);
}
END_TEST

/* Nothing is copied or cleared, no bias is added alone. */
START_TEST(calls_are_those_of_gpt2)
{
    const struct pl_timed_table t = gradient_table(&pl_device_host, &gpt2);
    int64_t want[PL_TIMED_ROWS] = {0};
    want[PL_TIMED_product] = want[PL_TIMED_product_dx] = want[PL_TIMED_product_dw] =
        4 * L + 1;
    want[PL_TIMED_embed] = want[PL_TIMED_embed_back] = want[PL_TIMED_xent] = 1;
    want[PL_TIMED_layernorm] = want[PL_TIMED_layernorm_back] = 2 * L + 1;
    want[PL_TIMED_attention] = want[PL_TIMED_attention_back] = L;
    want[PL_TIMED_gelu] = want[PL_TIMED_gelu_back] = L;
    want[PL_TIMED_add_rows] = 1;              /* positions */
    want[PL_TIMED_add_rows_back] = 4 * L + 1; /* and biases */
    want[PL_TIMED_zero] = want[PL_TIMED_download] = 1;
    check_calls(&t, want);
}
END_TEST

static double gradient_bytes(struct pl_model m, int layers, int sequences)
{
    struct pl_timed_table t = {0};
    struct fixture f;
    double bytes = 0;
    m.layers = layers;
    fixture_open(&f, pl_timed_device(0, &pl_device_host), &m, 1, sequences, T);
    pl_timed_into(&t);
    fixture_gradient(&f, 1);
    pl_timed_into(NULL);
    fixture_free(&f);
    for (int row = 0; row < PL_TIMED_ROWS; row++) bytes += t.row[row].bytes;
    return bytes;
}

/* One more row in one more block: what train/net.h counts, lse of each head and the
 * norms' statistics, written and read. */
START_TEST(a_block_moves_what_is_promised)
{
    struct pl_model m = _i == 1 ? gpt2 : model;
    if (_i == 2) m.qk_norm = PL_QK_HEAD;
    const double two = gradient_bytes(m, 2, 2) - gradient_bytes(m, 1, 2);
    const double one = gradient_bytes(m, 2, 1) - gradient_bytes(m, 1, 1);
    const double d = m.hidden, q = m.heads * m.head_dim, f = m.ffn;
    const double k = m.kv_heads * m.head_dim, w = q + 2 * k;
    double reals = _i == 1 ? 103 * d : 26 * d + 17 * f + 10 * q + 4 * k + 6 * w;
    double stats = (_i == 1 ? 8 : 4) + 2 * m.heads;
    if (_i == 2) reals += 2 * w + 3 * (q + k), stats += 2 * (m.heads + m.kv_heads);
    ck_assert_double_eq((two - one) / T, 4 * (reals + stats));
}
END_TEST

/* 2 N of the products a token in Y, DX and DW each: 6 N in all, N without the table. */
START_TEST(products_are_6n)
{
    const struct pl_timed_table t = gradient_table(&pl_device_host, &model);
    const double N = (double)pl_model_count(&model).n_matmul -
                     (2 * L + 1) * model.hidden; /* gains */
    const int rows[] = {PL_TIMED_product, PL_TIMED_product_dx, PL_TIMED_product_dw};
    for (int k = 0; k < 3; k++) ck_assert_double_eq(t.row[rows[k]].flops, 2 * N * ROWS);
    /* causal: T (T+1) / 2 pairs, 4 flops a pair and element of a head; back 5/2 of it
     */
    const double pairs = L * B * model.heads * T * (T + 1) / 2.0;
    ck_assert_double_eq(t.row[PL_TIMED_attention].flops, 4 * pairs * model.head_dim);
    ck_assert_double_eq(t.row[PL_TIMED_attention_back].flops,
                        10 * pairs * model.head_dim);
    ck_assert_double_eq(t.row[PL_TIMED_swiglu].flops, 0);
}
END_TEST

START_TEST(bytes_are_those_of_the_arguments)
{
    const struct pl_timed_table t = gradient_table(&pl_device_host, &model);
    const double d = model.hidden, f = model.ffn;
    ck_assert_double_eq(t.row[PL_TIMED_swiglu].bytes, L * 4 * 3 * ROWS * f);
    ck_assert_double_eq(t.row[PL_TIMED_zero].bytes, 3 * 8);
    ck_assert_double_eq(
        t.row[PL_TIMED_rmsnorm_back].bytes, /* that of the head adds to nothing */
        4 * (2 * L * 4 * ROWS * d + 3 * ROWS * d + (2 * L + 1) * (3 * d + ROWS)));
    ck_assert_double_eq(t.row[PL_TIMED_rmsnorm].bytes,
                        (2 * L + 1) * 4 * (2 * ROWS * d + d + ROWS));
    /* x and y, and W: qkv, o and down with an addend, gate and up, head */
    const double qkv = 2 * d, v = model.vocab;
    ck_assert_double_eq(
        t.row[PL_TIMED_product].bytes,
        4 * (L * (ROWS * (d + qkv) + d * qkv + ROWS * 3 * d + d * d +
                  ROWS * (d + 2 * f) + d * 2 * f + ROWS * (f + 2 * d) + f * d) +
             ROWS * (d + v) + d * v));
}
END_TEST

START_TEST(an_addend_and_a_bias_are_read)
{
    enum { IN = 3, OUT = 5 };
    const struct pl_device *dev = pl_timed_device(0, &pl_device_ref);
    const float x[ROWS * IN] = {0}, w[OUT * IN] = {0}, bias[OUT] = {0};
    float y[ROWS * OUT] = {0};
    struct pl_timed_table t = {0};
    double bytes = 4 * (ROWS * (IN + OUT) + OUT * IN);
    pl_timed_into(&t);
    const double *got = &t.row[PL_TIMED_product].bytes;
    dev->product(PL_PRODUCT_Y, ROWS, IN, OUT, x, w, NULL, NULL, y);
    ck_assert_double_eq(*got, bytes);
    dev->product(PL_PRODUCT_Y, ROWS, IN, OUT, x, w, bias, NULL, y);
    ck_assert_double_eq(*got, 2 * bytes + 4 * OUT);
    dev->product(PL_PRODUCT_Y, ROWS, IN, OUT, x, w, NULL, y, y);
    ck_assert_double_eq(*got, 3 * bytes + 4 * OUT + 4 * ROWS * OUT);
    pl_timed_into(NULL);
}
END_TEST

static int half_gelu(size_t n, const float *x, float *y)
{
    (void)n, (void)x, (void)y;
    return 0;
}

static int no_gelu(size_t n, const float *x, float *y)
{
    (void)n, (void)x, (void)y;
    return pl_fail(PL_EDEVICE, "planted");
}

static int waits;
static int count_wait(void)
{
    waits++;
    return 0;
}

START_TEST(halves_failures_and_waits)
{
    struct pl_device half = pl_device_ref, broken = pl_device_ref;
    struct pl_timed_table t = {0};
    float x[8] = {0};
    half.real_bytes = 2;
    half.gelu = half_gelu;
    half.wait = count_wait;
    broken.gelu = no_gelu;
    const struct pl_device *a = pl_timed_device(0, &half);
    const struct pl_device *b = pl_timed_device(1, &broken);
    ck_assert_uint_eq(a->real_bytes, 2);
    ck_assert_int_eq(a->gelu(8, x, x), 0);
    ck_assert_int_eq(waits, 0); /* nothing is measured */
    pl_timed_into(&t);
    ck_assert_int_eq(a->gelu(8, x, x), 0);
    ck_assert_int_eq(waits, 2);
    ck_assert_int_eq(b->gelu(8, x, x), PL_EDEVICE);
    pl_timed_into(NULL);
    ck_assert_int_eq(t.row[PL_TIMED_gelu].calls, 1);
    ck_assert_double_eq(t.row[PL_TIMED_gelu].bytes, 2 * 8 * 2);
}
END_TEST

static int slow_gelu(size_t n, const float *x, float *y)
{
    (void)n, (void)x, (void)y;
    const double began = pl_timed_now();
    while (pl_timed_now() - began < 1e-3) continue;
    return 0;
}

START_TEST(seconds_are_those_of_the_calls)
{
    struct pl_device slow = pl_device_ref;
    struct pl_timed_table t = {0};
    float x[1] = {0};
    slow.gelu = slow_gelu;
    const struct pl_device *dev = pl_timed_device(0, &slow);
    const double began = pl_timed_now();
    pl_timed_into(&t);
    for (int i = 0; i < 5; i++) dev->gelu(1, x, x);
    dev->sign(1, x, x);
    pl_timed_into(NULL);
    const double all = pl_timed_now() - began;
    ck_assert_int_eq(t.row[PL_TIMED_gelu].calls, 5);
    ck_assert(t.row[PL_TIMED_gelu].seconds >= 5e-3);
    ck_assert(t.row[PL_TIMED_gelu].seconds + t.row[PL_TIMED_sign].seconds <= all);
}
END_TEST

/* The same bits with the measuring device before another one. */
START_TEST(results_do_not_change)
{
    struct pl_timed_table t = {0};
    struct fixture plain, timed;
    fixture_open(&plain, &pl_device_host, &model, 2, B, T);
    fixture_open(&timed, pl_timed_device(0, &pl_device_host), &model, 2, B, T);
    pl_timed_into(&t);
    const double loss = fixture_gradient(&timed, 1);
    pl_timed_into(NULL);
    ck_assert_double_eq(loss, fixture_gradient(&plain, 1));
    for (int i = 0; i < plain.p->n_params; i++) {
        float *a = fixture_get(&plain, plain.grads, i);
        float *b = fixture_get(&timed, timed.grads, i);
        ck_assert_int_eq(
            memcmp(a, b, sizeof(float) * pl_param_size(&plain.p->params[i])), 0);
        free(a);
        free(b);
    }
    fixture_free(&plain);
    fixture_free(&timed);
}
END_TEST

START_TEST(a_machine_has_some_speed)
{
    struct pl_machine m;
    struct pl_device apart = pl_device_host; /* copies are measured, too */
    ck_assert_int_eq(pl_machine_measure(&pl_device_host, &pl_device_host, &m), 0);
    ck_assert(m.bytes_per_s > 1e6 && m.bytes_per_s < 1e13);
    ck_assert(m.flops_per_s > 1e6 && m.flops_per_s < 1e15);
    ck_assert(!m.copies);
    apart.host_memory = false;
    apart.wait = count_wait;
    ck_assert_int_eq(pl_machine_measure(&apart, &apart, &m), 0);
    ck_assert(m.copies && m.upload_bytes_per_s > 1e6 && m.download_bytes_per_s > 1e6);
    ck_assert(m.upload_s > 0 && m.upload_s < 1);
}
END_TEST

static void fill(TCase *tests)
{
    tcase_set_timeout(tests, 60); /* machines may be busy */
    tcase_add_test(tests, calls_are_those_of_the_net);
    tcase_add_test(tests, calls_are_those_of_gpt2);
    tcase_add_loop_test(tests, a_block_moves_what_is_promised, 0, 3);
    tcase_add_test(tests, products_are_6n);
    tcase_add_test(tests, bytes_are_those_of_the_arguments);
    tcase_add_test(tests, an_addend_and_a_bias_are_read);
    tcase_add_test(tests, halves_failures_and_waits);
    tcase_add_test(tests, seconds_are_those_of_the_calls);
    tcase_add_test(tests, results_do_not_change);
    tcase_add_test(tests, a_machine_has_some_speed);
}

int main(void)
{
    return run_tests("timed", fill);
}
