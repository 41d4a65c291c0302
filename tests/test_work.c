/* Flops, bytes and exchanges of a block against closed forms and published tables. */
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

/* Narayanan et al. SC'21: 96 B s l h^2 (1 + s/6h + V/16lh) with full recomputation. */
START_TEST(flops_of_gpt)
{
    static const char *const names[] = {"megatron-1.7b", "megatron-18.4b",
                                        "megatron-145.6b", "megatron-1t"};
    for (size_t i = 0; i < 4; i++) {
        struct pl_model m = preset(names[i]);
        struct pl_parallel p = alone;
        p.recompute = PL_RECOMPUTE_FULL;
        struct pl_work w = block(&m, p, 1, 2048, PL_BLOCK_DENSE);
        struct pl_work head = block(&m, p, 1, 2048, PL_BLOCK_HEAD);
        double s = 2048, h = m.hidden, l = m.layers, V = m.vocab;
        double sum =
            l * (w.forward_flops + w.input_flops + w.weight_flops + w.recompute_flops);
        sum += head.forward_flops + head.input_flops + head.weight_flops;
        ck_assert_double_eq(head.recompute_flops, 0);
        double formula = 96 * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
        ck_assert_double_eq_tol(sum / formula, 1, 1e-12);
        p.tp = 8;
        struct pl_work part = block(&m, p, 1, 2048, PL_BLOCK_DENSE);
        ck_assert_double_eq_tol(8 * part.forward_flops / w.forward_flops, 1, 1e-12);
        ck_assert_double_eq_tol(8 * part.input_flops / w.input_flops, 1, 1e-12);
        p.flash = true;
        ck_assert_double_eq_tol(block(&m, p, 1, 2048, PL_BLOCK_DENSE).input_flops,
                                part.input_flops + part.attention_flops / 2, 1);
    }
}
END_TEST

/* 6 N + 12 L d T of the whole model is the sum over its blocks, for every family. */
START_TEST(flops_are_those_of_mfu)
{
    static const char *const names[] = {
        "llama-3-8b",  "qwen2-7b",    "qwen3-30b-a3b", "mixtral-8x7b",    "gpt-2-small",
        "deepseek-v3", "olmoe-1b-7b", "smollm-135m",   "deepseek-v2-lite"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct pl_model m = preset(names[i]);
        int dense = m.experts ? m.dense_layers : m.layers;
        double sum = 0, s = 1024;
        struct pl_work w[3] = {block(&m, alone, 1, 1024, PL_BLOCK_DENSE)};
        w[1] =
            m.experts ? block(&m, alone, 1, 1024, PL_BLOCK_MOE) : (struct pl_work){0};
        w[2] = block(&m, alone, 1, 1024, PL_BLOCK_HEAD);
        double count[] = {dense, m.layers - dense, 1};
        for (int k = 0; k < 3; k++)
            sum +=
                count[k] * (w[k].forward_flops + w[k].input_flops + w[k].weight_flops);
        /* N counts gains, biases and router biases, which are no matrix products */
        double whole = pl_model_flops(&m, 1024) * s;
        ck_assert_msg(sum <= whole && sum > whole * (1 - 2e-3), "%s: %.6g of %.6g",
                      names[i], sum, whole);
    }
}
END_TEST

static double gemm_flops(const struct pl_work *w, const char *name)
{
    for (int i = 0; i < w->n_gemms; i++) {
        const struct pl_gemm *g = &w->gemm[i];
        if (!strcmp(g->name, name)) return 2 * g->M * g->N * g->K * g->count;
    }
    ck_abort_msg("no product %s", name);
}

START_TEST(products)
{
    struct pl_model m = preset("mixtral-8x7b");
    struct pl_parallel p = {
        .tp = 2, .sp = true, .ep = 4, .cp = 2, .dp = 4, .flash = true};
    struct pl_work w = block(&m, p, 3, 4096, PL_BLOCK_MOE);
    const double tokens = 3 * 2048, h = 4096, f = 14336;
    ck_assert_int_eq(w.n_gemms, 7); /* qkv scores sum proj router up down */
    ck_assert_double_eq(gemm_flops(&w, "qkv"), 2 * tokens * h * (h + 2048) / 2);
    ck_assert_double_eq(gemm_flops(&w, "scores"), 2.0 * 3 * 2048 * 4096 * 128 * 16);
    ck_assert_double_eq(gemm_flops(&w, "router"), 2 * tokens / 2 * h * 8);
    ck_assert_double_eq(gemm_flops(&w, "expert_up"), 2 * tokens * 2 * h * f);
    ck_assert_double_eq(gemm_flops(&w, "expert_down"), tokens * 2 * h * f);
    double sum = 0, plain = 0;
    for (int i = 0; i < w.n_gemms; i++) {
        const struct pl_gemm *g = &w.gemm[i];
        sum += 2 * g->M * g->N * g->K * g->count;
        if (!g->attention) plain += 2 * g->M * g->N * g->K * g->count;
        if (strcmp(g->name, "expert_up")) continue;
        ck_assert_double_eq(g->count, 2);                         /* 8 experts on 4 */
        ck_assert_double_eq(g->M, tokens * 4 /* GPUs */ * 2 / 8); /* even load */
        ck_assert_double_eq(g->N, f);
    }
    ck_assert_double_eq_tol(sum / w.forward_flops, 1, 1e-12);
    ck_assert_double_eq_tol(plain / w.weight_flops, 1, 1e-12);
    ck_assert_double_eq(w.expert_params, 2 * 3 * h * f / 2);
}
END_TEST

/* Weights on all ranks together are the model's, once what is replicated is taken off.
 */
START_TEST(state)
{
    struct pl_model m = preset("llama-3-8b");
    struct pl_parallel p = alone;
    struct pl_work whole = block(&m, p, 1, 2048, PL_BLOCK_DENSE);
    ck_assert_double_eq(whole.params, (double)pl_model_count(&m).dense_block);
    ck_assert_double_eq(whole.weight_bytes, 2 * whole.params);
    ck_assert_double_eq(whole.gradient_bytes, 4 * whole.params);
    ck_assert_double_eq(whole.optimizer_bytes, 12 * whole.params);
    p.tp = 8;
    struct pl_work part = block(&m, p, 1, 2048, PL_BLOCK_DENSE);
    ck_assert_double_eq(8 * part.params, whole.params + 7 * 2 * 4096);
    p.tp = 1;
    p.zero = 1;
    p.dp = 16;
    p.cp = 2;
    ck_assert_double_eq(block(&m, p, 1, 2048, PL_BLOCK_DENSE).optimizer_bytes,
                        12 * whole.params / 32);
    m = preset("olmoe-1b-7b");
    p.ep = 8;
    part = block(&m, p, 1, 2048, PL_BLOCK_MOE);
    struct pl_model_count c = pl_model_count(&m);
    double experts = 64.0 * 3 * 2048 * 1024, rest = (double)c.moe_block - experts;
    ck_assert_double_eq(part.expert_params, experts / 8);
    ck_assert_double_eq(part.params, experts / 8 + rest);
    ck_assert_double_eq_tol(part.optimizer_bytes, 12 * (experts / 8 / 4 + rest / 32),
                            1);
    struct pl_work muon;
    struct pl_microbatch batch = {1, 2048};
    p = alone;
    ck_assert_int_eq(pl_work_block(&m, &p, &batch, PL_BLOCK_MOE, "muon", &muon), 0);
    double vectors = 2 * 2048 + 4096; /* norms, and norms of queries and keys */
    ck_assert_double_eq(muon.optimizer_bytes, 8 * muon.params + 4 * vectors);
    ck_assert_int_eq(pl_work_block(&m, &p, &batch, PL_BLOCK_MOE, "adagrad", &muon),
                     PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "optimizer.name is 'adagrad'"));
    double words;
    ck_assert_int_eq(pl_optimizer_words("soap", 576, 1536, true, &words), 0);
    ck_assert_double_eq_tol(words, 2 + 2.0 * (576 * 576 + 1536 * 1536) / (576 * 1536),
                            1e-12);
}
END_TEST

/* Sums of count * bytes of a kind in a phase. */
static double exchanged(const struct pl_work *w, enum pl_comm_kind kind,
                        enum pl_comm_group group, enum pl_phase phase, double *count)
{
    double bytes = 0;
    *count = 0;
    for (int i = 0; i < w->n_comms; i++) {
        const struct pl_comm *c = &w->comm[i];
        if (c->kind != kind || c->group != group || c->phase != phase) continue;
        bytes += c->count * c->bytes;
        *count += c->count;
    }
    return bytes;
}

START_TEST(exchanges)
{
    struct pl_model m = preset("megatron-22b");
    struct pl_parallel p = alone;
    double n, whole = 2.0 * 4 * 2048 * 6144;
    ck_assert_int_eq(block(&m, p, 4, 2048, PL_BLOCK_DENSE).n_comms, 0);
    p.tp = 8;
    struct pl_work w = block(&m, p, 4, 2048, PL_BLOCK_DENSE);
    ck_assert_double_eq(exchanged(&w, PL_COMM_ALL_REDUCE, PL_GROUP_TP, PL_PHASE_F, &n),
                        2 * whole);
    ck_assert_double_eq(n, 2);
    ck_assert_double_eq(exchanged(&w, PL_COMM_ALL_REDUCE, PL_GROUP_TP, PL_PHASE_B, &n),
                        2 * whole);
    ck_assert_double_eq(exchanged(&w, PL_COMM_ALL_GATHER, PL_GROUP_TP, PL_PHASE_F, &n),
                        0);
    p.sp = true;
    p.recompute = PL_RECOMPUTE_FULL;
    w = block(&m, p, 4, 2048, PL_BLOCK_DENSE);
    for (int phase = PL_PHASE_F; phase <= PL_PHASE_R; phase++) {
        exchanged(&w, PL_COMM_ALL_GATHER, PL_GROUP_TP, (enum pl_phase)phase, &n);
        ck_assert_double_eq(n, 2);
        exchanged(&w, PL_COMM_REDUCE_SCATTER, PL_GROUP_TP, (enum pl_phase)phase, &n);
        ck_assert_double_eq(n, phase == PL_PHASE_W ? 0 : 2);
    }
    m = preset("deepseek-v3");
    p = alone;
    p.ep = 64;
    p.dp = 64;
    w = block(&m, p, 1, 4096, PL_BLOCK_MOE);
    ck_assert_double_eq(exchanged(&w, PL_COMM_ALL_TO_ALL, PL_GROUP_EP, PL_PHASE_F, &n),
                        2 * 2.0 * 4096 * 8 * 7168);
    m = preset("llama-3-405b");
    p = alone;
    p.cp = 4;
    w = block(&m, p, 1, 131072, PL_BLOCK_DENSE);
    ck_assert_double_eq(exchanged(&w, PL_COMM_SEND, PL_GROUP_CP, PL_PHASE_F, &n),
                        3 * 2.0 * 32768 * 2 * 8 * 128);
}
END_TEST

/* Zero Bubble's 14.6B and 6.2B runs: 10.5 and 25.2 MB (10^6) between stages. */
START_TEST(boundary)
{
    struct pl_model m = {.hidden = 5120};
    struct pl_parallel p = alone;
    struct pl_microbatch batch = {1, 1024};
    ck_assert_double_eq(pl_work_boundary(&m, &p, &batch), 10485760);
    p.tp = 8;
    ck_assert_double_eq(pl_work_boundary(&m, &p, &batch), 10485760);
    p.scatter_gather = true;
    ck_assert_double_eq(pl_work_boundary(&m, &p, &batch), 10485760 / 8);
    p.scatter_gather = false;
    p.sp = true;
    p.cp = 2;
    ck_assert_double_eq(pl_work_boundary(&m, &p, &batch), 10485760 / 16);
    m.hidden = 4096;
    batch.b = 3;
    ck_assert_double_eq_tol(pl_work_boundary(&m, &alone, &batch), 25.2e6, .05e6);
}
END_TEST

/* Combinations that Megatron refuses too. */
static const struct {
    const char *model, *message;
    int64_t b, s;
    struct pl_parallel p;
} bad[] = {
    {"llama-3-8b", "parallel.tp is 3", 1, 8, {.tp = 3, .ep = 1, .cp = 1, .dp = 1}},
    {"llama-3-8b", "model.kv_heads", 1, 8, {.tp = 16, .ep = 1, .cp = 1, .dp = 1}},
    {"llama-3-8b", "model.experts is 0", 1, 8, {.tp = 1, .ep = 2, .cp = 1, .dp = 2}},
    {"llama-3-8b", "parallel.cp is 3", 1, 8, {.tp = 1, .ep = 1, .cp = 3, .dp = 1}},
    {"llama-3-8b",
     "parallel.tp is 8 with parallel.sp",
     1,
     12,
     {.tp = 8, .ep = 1, .cp = 1, .dp = 1, .sp = true}},
    {"llama-3-8b",
     "parallel.zero is 2",
     1,
     8,
     {.tp = 1, .ep = 1, .cp = 1, .dp = 1, .zero = 2}},
    {"llama-3-8b", "parallel.tp is 0", 1, 8, {.tp = 0, .ep = 1, .cp = 1, .dp = 1}},
    {"llama-3-8b",
     "parallel.micro_batch is 0",
     0,
     8,
     {.tp = 1, .ep = 1, .cp = 1, .dp = 1}},
    {"gpt-2-small",
     "model.positions (1024)",
     1,
     2048,
     {.tp = 1, .ep = 1, .cp = 1, .dp = 1}},
    {"mixtral-8x7b", "parallel.ep is 3", 1, 8, {.tp = 1, .ep = 3, .cp = 1, .dp = 3}},
    {"mixtral-8x7b",
     "parallel.cp * parallel.dp",
     1,
     8,
     {.tp = 1, .ep = 4, .cp = 1, .dp = 2}},
    {"mixtral-8x7b", "parallel.sp is no", 1, 8, {.tp = 2, .ep = 1, .cp = 1, .dp = 1}},
};

START_TEST(refusals)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pl_model m = preset(bad[i].model);
        struct pl_microbatch batch = {bad[i].b, bad[i].s};
        ck_assert_int_eq(pl_parallel_check(&bad[i].p, &m, &batch), PL_ECONFIG);
        ck_assert_msg(strstr(pl_error_text(), bad[i].message) != NULL,
                      "\"%s\" lacks \"%s\"", pl_error_text(), bad[i].message);
    }
    ck_assert(pl_parallel_gpus(&bad[4].p, 4) == 32);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, flops_of_gpt);
    tcase_add_test(t, flops_are_those_of_mfu);
    tcase_add_test(t, products);
    tcase_add_test(t, state);
    tcase_add_test(t, exchanges);
    tcase_add_test(t, boundary);
    tcase_add_test(t, refusals);
}

int main(void)
{
    return run_tests("work", fill);
}
