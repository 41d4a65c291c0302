/* Activation bytes of a block: the formulas and the table of Korthikanti et al., and
 * every tensor of the other families by hand. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/model_hf.h"
#include "sim/work.h"
#include "tests/runner.h"
#include "tests/work_case.h"

static const double GIB = 1024.0 * 1024 * 1024;

/* Korthikanti et al., Table 2 and section 4: every line of it, b = 2, s = 2048. */
START_TEST(activations_of_gpt)
{
    struct pl_model m = preset("megatron-22b");
    const double s = 2048, h = 6144, a = 64, sbh = 2 * s * h, core = 5 * a * s / h;
    for (int t = 1; t <= 8; t *= 2) {
        struct pl_parallel p = alone;
        p.tp = t;
        struct pl_work w = block(&m, p, 2, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq_tol(w.act_bytes, sbh * (10 + 24.0 / t + core / t), 1);
        ck_assert_double_eq(w.kept_bytes, sbh * (8 + 24.0 / t));
        ck_assert_double_eq(w.live_bytes, w.act_bytes);
        p.recompute = PL_RECOMPUTE_SELECTIVE;
        w = block(&m, p, 2, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq_tol(w.act_bytes, sbh * (10 + 24.0 / t), 1);
        ck_assert_double_eq(w.recompute_flops, w.attention_flops);
        p.sp = true;
        w = block(&m, p, 2, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq_tol(w.act_bytes, sbh * 34 / t, 1);
        ck_assert_double_eq_tol(w.kept_bytes, sbh * 32 / t, 1);
        p.recompute = PL_RECOMPUTE_NONE;
        w = block(&m, p, 2, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq_tol(w.act_bytes, sbh * (34 + core) / t, 1);
        p.recompute = PL_RECOMPUTE_FULL;
        w = block(&m, p, 2, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq(w.act_bytes, sbh * 2 / t);
        ck_assert_double_eq_tol(w.live_bytes, sbh * (34 + core) / t, 1);
        ck_assert_double_eq(w.recompute_flops, w.forward_flops);
        p.sp = false;
        w = block(&m, p, 2, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq(w.act_bytes, sbh * 2);
    }
    /* section 4.3: what the ends add, 4 s b h / t (1 + v/h) + s b h p / t at p = 1 */
    struct pl_parallel p = alone;
    p.tp = 8;
    p.sp = true;
    double ends = block(&m, p, 2, 2048, PL_BLOCK_EMBEDDING).act_bytes +
                  block(&m, p, 2, 2048, PL_BLOCK_HEAD).act_bytes;
    ck_assert_double_eq(ends, 4 * sbh / 8 * (1 + 51200 / h) + sbh / 8);
}
END_TEST

/* Korthikanti et al.: first stage, GiB per GPU, and weights + gradients + optimizer. */
static const struct {
    const char *name;
    int64_t b;
    int p, v;
    double none, both, state;        /* GiB: no recomputation, SP + selective */
    double sp, selective, all, full; /* percent of none, as printed in figure 7 */
} memory[] = {
    {"megatron-22b", 4, 1, 1, 59.25, 9.5625, 45.56, 66.84, 49.42, 16.18, 7.64},
    {"megatron-175b", 1, 8, 3, 66.84, 12.35, 45.56, 62.04, 56.53, 18.49, 8.71},
    {"megatron-530b", 1, 35, 3, 114.02, 23.08, 31.64, 58.31, 62.04, 20.27, 9.42},
    {"megatron-1t", 1, 64, 1, 131.25, 26.56, 32.96, 58.31, 62.04, 20.27, 9.42},
};

START_TEST(memory_table)
{
    const int i = _i, p = memory[i].p, v = memory[i].v;
    struct pl_model m = preset(memory[i].name);
    struct pl_parallel x = alone;
    x.tp = 8;
    struct pl_work none = block(&m, x, memory[i].b, 2048, PL_BLOCK_DENSE);
    /* interleaving: (1 + (p-1)/(p v)) L layers in flight on the first stage */
    double layers = m.layers * (v > 1 ? 1 + (p - 1.0) / (p * v) : 1);
    ck_assert_double_eq_tol(layers * none.act_bytes / GIB, memory[i].none, .005);
    double state = none.weight_bytes + none.gradient_bytes + none.optimizer_bytes;
    /* the printed ones are 18 bytes of 12 l h^2: biases and norms are below .1 % */
    double printed = 18.0 * 12 * m.layers * m.hidden * m.hidden / 8 / p / GIB;
    ck_assert_double_eq_tol(printed, memory[i].state, .005);
    ck_assert_double_eq_tol(state * m.layers / p / GIB / printed, 1, .001);
    x.recompute = PL_RECOMPUTE_FULL;
    double full = block(&m, x, memory[i].b, 2048, PL_BLOCK_DENSE).act_bytes;
    x.recompute = PL_RECOMPUTE_SELECTIVE;
    double selective = block(&m, x, memory[i].b, 2048, PL_BLOCK_DENSE).act_bytes;
    x.sp = true;
    double both = block(&m, x, memory[i].b, 2048, PL_BLOCK_DENSE).act_bytes;
    ck_assert_double_eq_tol(layers * both / GIB, memory[i].both, .005);
    x.recompute = PL_RECOMPUTE_NONE;
    double sp = block(&m, x, memory[i].b, 2048, PL_BLOCK_DENSE).act_bytes;
    /* The printed percentages differ from the paper's own formulas by up to .14 points
     * (bars of a figure); two digits are what agrees. */
    ck_assert_double_eq_tol(100 * sp / none.act_bytes, memory[i].sp, .15);
    ck_assert_double_eq_tol(100 * selective / none.act_bytes, memory[i].selective, .15);
    ck_assert_double_eq_tol(100 * both / none.act_bytes, memory[i].all, .15);
    ck_assert_double_eq_tol(100 * full / none.act_bytes, memory[i].full, .15);
}
END_TEST

/* Gated MLP, grouped queries, no dropout, fused attention: every tensor by hand. */
START_TEST(activations_of_llama)
{
    struct pl_model m = preset("llama-3-8b");
    struct pl_parallel p = alone;
    p.flash = true;
    const double h = 4096, kv = 1024, f = 14336, a = 32, tokens = 8192;
    struct pl_work w = block(&m, p, 1, 8192, PL_BLOCK_DENSE);
    double each =
        4 * h + 2 * h + 2 * (h + 2 * kv) + 4 * a + 2 * h + 2 * h + 4 * f + 2 * f;
    ck_assert_double_eq(w.act_bytes, tokens * each);
    double kept = 2 * (h + h + 2 * kv) + 2 * (h + h) + 2 * (h + 2 * f) + 2 * (f + h);
    ck_assert_double_eq(w.kept_bytes, tokens * kept);
    p.cp = 4;
    ck_assert_double_eq(block(&m, p, 1, 8192, PL_BLOCK_DENSE).act_bytes,
                        tokens * each / 4);
    p.cp = 1;
    p.flash = false; /* softmax output, 2 a s b bytes a row */
    ck_assert_double_eq(block(&m, p, 1, 8192, PL_BLOCK_DENSE).act_bytes,
                        tokens * (each - 4 * a + 2 * a * 8192));
}
END_TEST

/* Experts: every tensor by hand, tp 1 and then 2 with sp. */
START_TEST(activations_of_experts)
{
    struct pl_model m = preset("olmoe-1b-7b");
    struct pl_parallel p = alone;
    p.flash = true;
    const double h = 2048, f = 1024, a = 16, k = 8, E = 64, tokens = 4096;
    struct pl_work w = block(&m, p, 1, 4096, PL_BLOCK_MOE);
    double sp = 4 * h + 2 * h /* norms, qkv */ + 2 * h + 4 * E /* router */ +
                2 * k * h /* expert outputs */;
    double tp = 6 * h + 4 * h /* Q, K before their norms */ + 4 * a + 2 * h +
                k * 2 * (2 * f + f);
    double whole = 2 * k * h; /* expert inputs */
    ck_assert_double_eq(w.act_bytes, tokens * (sp + tp + whole));
    double kept_sp = 2 * h + 2 * h + 2 * h + 4 * E, kept_tp = 6 * h + 2 * h + k * 6 * f;
    double kept_whole = 2 * k * h + 2 * k * h;
    ck_assert_double_eq(w.kept_bytes, tokens * (kept_sp + kept_tp + kept_whole));
    p.tp = 2;
    p.sp = true;
    w = block(&m, p, 1, 4096, PL_BLOCK_MOE);
    ck_assert_double_eq(w.act_bytes, tokens * ((sp + tp) / 2 + whole));
    ck_assert_double_eq(w.kept_bytes, tokens * ((kept_sp + kept_tp) / 2 + kept_whole));
}
END_TEST

/* Latent attention of DeepSeek-V2: compressed query and key/value, then full heads. */
START_TEST(activations_of_latent_attention)
{
    struct pl_model m = preset("deepseek-v2");
    struct pl_parallel p = alone;
    p.flash = true;
    const double h = 5120, H = 128, qr = 1536, r = 512, f = 12288, tokens = 4096;
    struct pl_work w = block(&m, p, 1, 4096, PL_BLOCK_DENSE);
    double each = 4 * h + 2 * h + 2 * qr + 2 * qr + 2 * (r + 64) + 2 * r +
                  2 * H * (192 + 192 + 128) + 4 * H + 2 * H * 128 + 2 * h + 6 * f;
    ck_assert_double_eq(w.act_bytes, tokens * each);
    double kept = 2 * h + 2 * qr + 2 * qr + 2 * H * 192 + 2 * (r + 64) + 2 * r +
                  2 * H * 256 + 2 * H * 128 + 2 * h + 2 * h + 6 * f + 2 * h;
    ck_assert_double_eq(w.kept_bytes, tokens * kept);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, activations_of_gpt);
    tcase_add_loop_test(t, memory_table, 0, (int)(sizeof memory / sizeof *memory));
    tcase_add_test(t, activations_of_llama);
    tcase_add_test(t, activations_of_experts);
    tcase_add_test(t, activations_of_latent_attention);
}

int main(void)
{
    return run_tests("activations", fill);
}
