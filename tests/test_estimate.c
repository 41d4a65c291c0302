/* Costs of blocks, optimizer steps and chunks against hand counts and sums. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sim/estimate.h"
#include "sim/roofline.h"
#include "tests/sim_case.h"

/* A GPU of round numbers: 100 Tflop/s at .5, 1 TB/s at .5, no waves. */
static const struct pl_gpu gpu = {.bf16 = 100e12,
                                  .memory_bandwidth = 1e12,
                                  .gemm_fraction = .5,
                                  .memory_fraction = .5};

static void assert_near(double got, double want, double tolerance, const char *what)
{
    ck_assert_msg(fabs(got - want) <= tolerance * fabs(want), "%s: %.9g, expected %.9g",
                  what, got, want);
}

START_TEST(products)
{
    double start = pl_roofline_gemm(&gpu, 0, 0, 0, 0);
    /* whole tiles: 2 M N (K + 256) flops at 50 Tflop/s */
    assert_near(pl_roofline_gemm(&gpu, 4096, 4096, 4096, 1) - start,
                2. * 4096 * 4096 * (4096 + 256) / 50e12, 1e-12, "square");
    /* one column: moves M K operands at .5 TB/s */
    assert_near(pl_roofline_gemm(&gpu, 65536, 1, 16384, 1) - start,
                2 * (65536. * 16384 + 16384 + 65536) / .5e12, 1e-12, "matrix vector");
    /* 109 tiles on 108 multiprocessors take as long as 216 */
    struct pl_gpu waves = gpu;
    waves.sms = 108;
    double one = pl_roofline_gemm(&waves, 256, 128 * 108, 8192, 1) - start;
    double two = pl_roofline_gemm(&waves, 256, 128 * 216, 8192, 1) - start;
    double more = pl_roofline_gemm(&waves, 256, 128 * 109, 8192, 1) - start;
    assert_near(two, 2 * one, 1e-12, "two waves");
    ck_assert_double_gt(more, 1.2 * one);
    ck_assert_double_le(more, two);
    for (uint32_t k = 0; k < 500;
         k++) { /* never above the rate, more work never less */
        double x[3];
        for (uint64_t i = 0; i < 3; i++)
            x[i] = 1 + (double)pl_rng_below(i, PL_RNG_TEST, 70, k, 9000);
        double t = pl_roofline_gemm(&waves, x[0], x[1], x[2], 3);
        ck_assert_double_ge(t, 6 * x[0] * x[1] * x[2] / 50e12);
        ck_assert_double_ge(pl_roofline_gemm(&waves, 2 * x[0], x[1], x[2], 3), t);
        ck_assert_double_ge(pl_roofline_gemm(&waves, x[0], 2 * x[1], x[2], 3), t);
        ck_assert_double_ge(pl_roofline_gemm(&waves, x[0], x[1], 2 * x[2], 3), t);
    }
}
END_TEST

static struct pl_config *config_of(const char *const *settings)
{
    struct pl_config *config = pl_config_new();
    for (; *settings; settings++)
        ck_assert_msg(pl_config_set(config, *settings, "test") == PL_OK, "%s",
                      pl_error_text());
    ck_assert_msg(pl_config_resolve(config) == PL_OK, "%s", pl_error_text());
    return config;
}

/* settings: NULL-terminated, after a model on enough A100 nodes. */
static struct pl_estimate estimate_of(const char *model, int P, int v,
                                      const char *const *settings)
{
    char *preset = pl_printf("model.preset=%s", model);
    const char *all[24] = {preset, "cluster.preset=dgx-a100-80",
                           "cluster.levels=node:64 gpu:8", "cost.type=roofline"};
    for (int i = 0; settings[i]; i++) all[4 + i] = settings[i];
    struct pl_config *config = config_of(all);
    int *device = PL_NEW(P * v, int);
    for (int c = 0; c < P * v; c++) device[c] = c % P;
    struct pl_layout layout = {P, P * v, 1, device};
    struct pl_estimate e;
    ck_assert_msg(pl_estimate_new(config, &layout, &e) == PL_OK, "%s", pl_error_text());
    free(device);
    free(preset);
    pl_config_free(config);
    return e;
}

static double sum_of(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* The whole model takes the same wherever it is cut, and holds the same bytes. */
START_TEST(cuts_add_up)
{
    static const char *const none[] = {NULL};
    static const char *const models[] = {"llama-3-8b", "mixtral-8x7b", "deepseek-v2",
                                         "gpt-2-small"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct pl_estimate whole = estimate_of(models[i], 1, 1, none);
        for (int P = 2; P <= 4; P += 2)
            for (int v = 1; v <= 3; v++) {
                struct pl_estimate cut = estimate_of(models[i], P, v, none);
                assert_near(sum_of(cut.forward, P * v), whole.forward[0], 1e-9, "F");
                assert_near(sum_of(cut.backward, P * v), whole.backward[0], 1e-9, "B");
                assert_near(sum_of(cut.weight, P * v), whole.weight[0], 1e-9, "W");
                double held = 0;
                for (int c = 0; c < P * v; c++) held += (double)cut.bytes[c].activation;
                assert_near(held, (double)whole.bytes[0].activation, 1e-6,
                            "activations");
                pl_estimate_free(&cut);
            }
        pl_estimate_free(&whole);
    }
}
END_TEST

/* Bytes and flops of a rule's step on an A100 (2039 GB/s x .9): AdamW moves 7 words and
 * writes 2 bytes a parameter, what is around it 2 words, clipping 3; SmolLM-135M has
 * 134,515,008 of them, its head's table once. */
START_TEST(adamw_step)
{
    static const char *const adamw[] = {"optimizer.name=adamw", NULL};
    struct pl_estimate e = estimate_of("smollm-135m", 1, 1, adamw);
    double rate = e.cluster.gpu.memory_bandwidth * e.cluster.gpu.memory_fraction;
    assert_near(e.update[0], 134515008. * 50 / rate, 1e-9, "AdamW");
    pl_estimate_free(&e);
    static const char *const unclipped[] = {"optimizer.name=adamw", "clip.norm=0",
                                            NULL};
    e = estimate_of("smollm-135m", 1, 1, unclipped);
    assert_near(e.update[0], 134515008. * 38 / rate, 1e-9, "without clipping");
    pl_estimate_free(&e);
}
END_TEST

/* Newton-Schulz of SmolLM-135M, symmetric halves once, on the matrices as they are
 * stored (fused q k v and gate up, 30 layers): 1031.956 Gflop a step; on separate ones
 * it would be 1024.5. Muon and SGD move the same words on them, AdamW two more on the
 * table. */
START_TEST(muon_step)
{
    static const char *const sgd[] = {"optimizer.name=sgd", NULL};
    static const char *const muon[] = {"optimizer.name=muon", NULL};
    struct pl_estimate a = estimate_of("smollm-135m", 1, 1, sgd);
    struct pl_estimate b = estimate_of("smollm-135m", 1, 1, muon);
    double rate = a.cluster.gpu.bf16 * a.cluster.gpu.gemm_fraction;
    double memory = a.cluster.gpu.memory_bandwidth * a.cluster.gpu.memory_fraction;
    double table = (49152. + 1) * 576 * 8 / memory; /* and the last norm */
    assert_near((b.update[0] - a.update[0] - table) * rate, 1031.9560704e9, 1e-6,
                "Muon");
    pl_estimate_free(&a);
    pl_estimate_free(&b);
}
END_TEST

/* SOAP's products and factorings, from the shapes. */
START_TEST(soap_step)
{
    static const char *const adamw[] = {"cost.optimizer=adamw", NULL};
    static const char *const soap[] = {"cost.optimizer=soap", NULL};
    struct pl_estimate a = estimate_of("smollm-135m", 1, 1, adamw);
    struct pl_estimate b = estimate_of("smollm-135m", 1, 1, soap);
    double rate = a.cluster.gpu.tf32 * a.cluster.gpu.gemm_fraction, flops = 0;
    static const double sides[4][2] = {
        {576, 960}, {576, 576}, {576, 3072}, {1536, 576}};
    for (int i = 0; i < 4; i++) {
        double m = sides[i][0], n = sides[i][1], cubes = m * m * m + n * n * n;
        flops += 30 * (6 * (m * m * n + m * n * n) + 4 * cubes / 10 +
                       10 * (2 + 8. / 3) * cubes / 10); /* QR at a tenth of the rate */
    }
    double h = 576, vocab = 49152; /* the table's long side has no factor */
    flops += 6 * h * h * vocab + 4 * h * h * h / 10 + (2 + 8. / 3) * h * h * h;
    assert_near((b.update[0] - a.update[0]) * rate, flops, 1e-6, "SOAP");
    ck_assert_uint_gt(b.bytes[0].optimizer, 2 * a.bytes[0].optimizer);
    pl_estimate_free(&a);
    pl_estimate_free(&b);
}
END_TEST

/* Data parallelism: the exchange is added; divided state makes the rule's part smaller;
 * overlap hides some of the exchange, never all of it. */
START_TEST(gradient_exchange)
{
    static const char *const alone[] = {NULL};
    static const char *const dp[] = {"parallel.dp=8", NULL};
    static const char *const zero[] = {"parallel.dp=8", "parallel.zero=1", NULL};
    static const char *const hidden[] = {"parallel.dp=8", "parallel.overlap=yes", NULL};
    struct pl_estimate a = estimate_of("llama-3-8b", 4, 1, alone),
                       b = estimate_of("llama-3-8b", 4, 1, dp),
                       c = estimate_of("llama-3-8b", 4, 1, zero),
                       d = estimate_of("llama-3-8b", 4, 1, hidden);
    for (int s = 0; s < 4; s++) {
        double exchange = b.update[s] - a.update[s];
        ck_assert_double_gt(exchange, 0);
        ck_assert_double_lt(c.update[s], b.update[s]);
        ck_assert_double_lt(d.update[s], b.update[s]);
        ck_assert_double_ge(d.update[s], a.update[s] + exchange / d.chunk[s].n * .999);
        ck_assert_uint_eq(b.bytes[s].optimizer, a.bytes[s].optimizer);
        ck_assert_uint_eq(c.bytes[s].optimizer, a.bytes[s].optimizer / 8);
    }
    pl_estimate_free(&a);
    pl_estimate_free(&b);
    pl_estimate_free(&c);
    pl_estimate_free(&d);
}
END_TEST

/* Tensor parallelism: each GPU does less, the group more; the boundary shrinks with
 * sequence parallelism. */
START_TEST(tensor_parallel)
{
    static const char *const one[] = {NULL};
    static const char *const eight[] = {"parallel.tp=8", NULL};
    static const char *const sp[] = {"parallel.tp=8", "parallel.sp=yes", NULL};
    struct pl_estimate a = estimate_of("megatron-22b", 2, 1, one),
                       b = estimate_of("megatron-22b", 2, 1, eight),
                       c = estimate_of("megatron-22b", 2, 1, sp);
    ck_assert_double_lt(b.forward[0], a.forward[0]);
    ck_assert_double_gt(8 * b.forward[0], a.forward[0]);
    assert_near(a.boundary_bytes, 2. * 2048 * 6144, 0, "boundary");
    assert_near(b.boundary_bytes, 2. * 2048 * 6144, 0, "boundary, tp");
    assert_near(c.boundary_bytes, 2. * 2048 * 6144 / 8, 0, "boundary, sp");
    /* stage 0 to 1: inside the node at tp 1, over HDR at tp 8 */
    ck_assert_double_gt(b.next[0], 5 * a.next[0]);
    ck_assert_int_eq(b.gpus, 16);
    pl_estimate_free(&a);
    pl_estimate_free(&b);
    pl_estimate_free(&c);
}
END_TEST

/* Gradients of 2 bytes: half of the exchange and of their memory; a word more around
 * the rule. */
START_TEST(short_gradients)
{
    static const char *const cases[4][4] = {
        {NULL},
        {"parallel.grad_16=yes", NULL},
        {"parallel.dp=64", NULL},
        {"parallel.dp=64", "parallel.grad_16=yes", NULL},
    };
    struct pl_estimate e[4];
    for (int i = 0; i < 4; i++) e[i] = estimate_of("smollm-135m", 1, 1, cases[i]);
    double rate = e[0].cluster.gpu.memory_bandwidth * e[0].cluster.gpu.memory_fraction;
    assert_near((e[1].update[0] - e[0].update[0]) * rate, 4 * 134515008., 1e-9, "cast");
    double whole = e[2].update[0] - e[0].update[0],
           half = e[3].update[0] - e[1].update[0];
    ck_assert_double_lt(half, .75 * whole); /* starts are not halved */
    ck_assert_double_ge(half, .5 * whole);
    ck_assert_uint_eq(2 * e[1].bytes[0].gradient, e[0].bytes[0].gradient);
    for (int i = 0; i < 4; i++) pl_estimate_free(&e[i]);
}
END_TEST

/* Summing a weight gradient apart moves 10 bytes a parameter and microbatch. */
START_TEST(unfused_gradients)
{
    static const char *const fused[] = {NULL};
    static const char *const apart[] = {"parallel.fuse_gradients=no", NULL};
    struct pl_estimate a = estimate_of("smollm-135m", 1, 1, fused),
                       b = estimate_of("smollm-135m", 1, 1, apart);
    double rate = a.cluster.gpu.memory_bandwidth * a.cluster.gpu.memory_fraction;
    /* the tied table gets two gradients */
    assert_near((b.weight[0] - a.weight[0]) * rate, 10 * (134515008. + 49152 * 576),
                1e-9, "sum");
    assert_near(b.forward[0] + b.backward[0], a.forward[0] + a.backward[0], 1e-12, "F");
    pl_estimate_free(&a);
    pl_estimate_free(&b);
}
END_TEST

START_TEST(throughput)
{
    static const char *const dp[] = {"parallel.dp=4", "parallel.micro_batch=2", NULL};
    struct pl_estimate e = estimate_of("llama-3-8b", 2, 1, dp);
    struct pl_throughput t = pl_estimate_throughput(&e, 5, 10);
    double tokens = 5. * 2 * (double)e.batch.s * 4 / 10 / 8;
    assert_near(t.tokens_per_s_gpu, tokens, 1e-12, "tokens/s/GPU");
    assert_near(t.mfu_6n, tokens * 6 * (8030261248. - 4096. * 128256) / 312e12, 1e-12,
                "6 N");
    assert_near(t.mfu - t.mfu_6n, tokens * 12 * 32 * 4096 * (double)e.batch.s / 312e12,
                1e-9, "12 L d T");
    pl_estimate_free(&e);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, products);
    tcase_add_test(t, cuts_add_up);
    tcase_add_test(t, adamw_step);
    tcase_add_test(t, muon_step);
    tcase_add_test(t, soap_step);
    tcase_add_test(t, gradient_exchange);
    tcase_add_test(t, tensor_parallel);
    tcase_add_test(t, short_gradients);
    tcase_add_test(t, unfused_gradients);
    tcase_add_test(t, throughput);
}

int main(void)
{
    return run_tests("estimate", fill);
}
