/* Cuts of a model: the dynamic program against all partitions, layout strings, sums
 * over chunks. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "sim/split.h"
#include "tests/runner.h"

/* Largest sum and sum of squares of a cut. */
static void judge(const double *cost, const int *first, int C, double *largest,
                  double *squares)
{
    *largest = *squares = 0;
    for (int c = 0; c < C; c++) {
        double sum = 0;
        for (int i = first[c]; i < first[c + 1]; i++) sum += cost[i];
        *largest = fmax(*largest, sum);
        *squares += sum * sum;
    }
}

/* All cuts of n entries into C parts: the best by (largest, squares). */
static void search(const double *cost, int n, int C, int c, int *first, double *largest,
                   double *squares)
{
    if (c == C) {
        double a, b;
        first[C] = n;
        judge(cost, first, C, &a, &b);
        if (a < *largest || (a == *largest && b < *squares)) {
            *largest = a;
            *squares = b;
        }
        return;
    }
    for (first[c] = c ? first[c - 1] + 1 : 0; first[c] <= (c ? n - C + c : 0);
         first[c]++)
        search(cost, n, C, c + 1, first, largest, squares);
}

START_TEST(balance_is_optimal)
{
    uint32_t draws = 0;
    for (int trial = 0; trial < 400; trial++) {
        double cost[9], want = INFINITY, want2 = INFINITY, got, got2, largest;
        int first[10], scratch[10];
        int n = 1 + (int)pl_rng_below(7, PL_RNG_TEST, 1, draws++, 9);
        int C = 1 + (int)pl_rng_below(7, PL_RNG_TEST, 2, draws++, (uint64_t)n);
        for (int i = 0; i < n; i++) /* small integers: many ties, exact sums */
            cost[i] = (double)pl_rng_below(7, PL_RNG_TEST, 3, draws++, 6);
        pl_split_balance(cost, n, C, first, &largest);
        ck_assert_int_eq(first[0], 0);
        ck_assert_int_eq(first[C], n);
        for (int c = 0; c < C; c++) ck_assert_int_lt(first[c], first[c + 1]);
        judge(cost, first, C, &got, &got2);
        search(cost, n, C, 0, scratch, &want, &want2);
        ck_assert_double_eq(got, want);
        ck_assert_double_eq(got2, want2);
        ck_assert_double_eq(largest, want);
    }
    /* a cut that is not the best is seen */
    double cost[] = {1, 5, 1, 1}, got, got2, want = INFINITY, want2 = INFINITY;
    int first[] = {0, 2, 4}, scratch[3];
    judge(cost, first, 2, &got, &got2);
    search(cost, 4, 2, 0, scratch, &want, &want2);
    ck_assert(got == 6 && want == 6 && got2 == want2);
    first[1] = 3;
    judge(cost, first, 2, &got, &got2);
    ck_assert(got > want);
}
END_TEST

static const struct pl_model ten = {.layers = 10,
                                    .hidden = 64,
                                    .heads = 4,
                                    .kv_heads = 4,
                                    .head_dim = 16,
                                    .ffn = 128,
                                    .vocab = 1000,
                                    .rope_theta = 1};

static void expect(const struct pl_chunk *chunk, int C, const char *sizes)
{
    char text[200] = "";
    for (int c = 0, first = 0; c < C; first += chunk[c++].n) {
        ck_assert_int_eq(chunk[c].first, first);
        ck_assert(chunk[c].embedding == (c == 0) && chunk[c].head == (c == C - 1));
        sprintf(text + strlen(text), "%s%d", c ? " " : "", chunk[c].n);
    }
    ck_assert_str_eq(text, sizes);
}

START_TEST(uniform_and_balanced)
{
    struct pl_chunk chunk[12];
    double cost[12] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
    ck_assert_int_eq(pl_split_make("uniform", &ten, 4, NULL, chunk), 0);
    expect(chunk, 4, "3 3 2 2");
    ck_assert_int_eq(pl_split_make("balanced", &ten, 4, cost, chunk), 0);
    expect(chunk, 4, "3 3 2 2");
    cost[11] = 2; /* the head weighs two layers */
    ck_assert_int_eq(pl_split_make("balanced", &ten, 4, cost, chunk), 0);
    expect(chunk, 4, "3 3 3 1");
    cost[0] = 3; /* and the embedding three */
    ck_assert_int_eq(pl_split_make("balanced", &ten, 5, cost, chunk), 0);
    expect(chunk, 5, "0 3 3 3 1");
    ck_assert_int_eq(pl_split_make("balanced", &ten, 12, cost, chunk), 0);
    expect(chunk, 12, "0 1 1 1 1 1 1 1 1 1 1 0");
    ck_assert_int_eq(pl_split_make("balanced", &ten, 1, cost, chunk), 0);
    expect(chunk, 1, "10");
    ck_assert_int_eq(pl_split_make("balanced", &ten, 13, cost, chunk), PL_ECONFIG);
    ck_assert_int_eq(pl_split_make("uniform", &ten, 11, NULL, chunk), PL_ECONFIG);
}
END_TEST

START_TEST(layouts)
{
    struct pl_chunk chunk[40];
    struct pl_model m = ten;
    ck_assert_int_eq(pl_split_make("Et*3|t*3|tttt|L", &m, 4, NULL, chunk), 0);
    expect(chunk, 4, "3 3 4 0");
    ck_assert_int_eq(pl_split_make("E|(t|)*10L", &m, 12, NULL, chunk), 0);
    expect(chunk, 12, "0 1 1 1 1 1 1 1 1 1 1 0");
    ck_assert_int_eq(pl_split_make("E ((t)*2,|)*5 L", &m, 6, NULL, chunk), 0);
    expect(chunk, 6, "2 2 2 2 2 0");
    m.layers = 61; /* DeepSeek-V3, an example of Megatron's documentation */
    ck_assert_int_eq(pl_split_make("Et*3|(tt|)*29,m|L", &m, 32, NULL, chunk), 0);
    ck_assert_int_eq(chunk[0].n, 3);
    ck_assert_int_eq(chunk[29].n, 2);
    ck_assert_int_eq(chunk[29].first, 59);
    ck_assert(chunk[30].mtp == 1 && chunk[30].n == 0 && !chunk[30].head);
    ck_assert(chunk[31].head && chunk[31].mtp == 0 && chunk[31].n == 0);
}
END_TEST

static const struct {
    const char *text;
    int C;
    const char *message;
} bad[] = {
    {"blanced", 4, "character 1: expected one of E t m L"},
    {"", 4, "expected a layout"},
    {"E(t|L", 4, "expected )"},
    {"Et)L", 4, "expected no )"},
    {"Et*|L", 4, "expected a number after *"},
    {"Et*0|L", 4, "1 or more"},
    {"Et*99999999999|L", 4, "at most 65536 repetitions"},
    {"E((t*65000)*65000)|L", 4, "at most 65536 letters"},
    {"((((((((((((((((((t", 4, "at most 16 brackets"},
    {"tE|L", 2, "t out of order"},
    {"Et*10EL", 1, "E out of order"},
    {"Et*10LL", 1, "L out of order"},
    {"Et*9mtL", 1, "t out of order"},
    {"Et*10", 1, "expected L at the end"},
    {"Et*10|L", 3, "has 2 stages, expected 3"},
    {"Et*9|L", 2, "has 9 layers t, expected model.layers (10)"},
    {"Et*10||L", 3, "stage 1 is empty"},
};

START_TEST(bad_layouts)
{
    struct pl_chunk chunk[8];
    int rc = pl_split_make(bad[_i].text, &ten, bad[_i].C, NULL, chunk);
    ck_assert_msg(rc == PL_ECONFIG, "%s: %d", bad[_i].text, rc);
    ck_assert_msg(strstr(pl_error_text(), bad[_i].message) != NULL,
                  "\"%s\" lacks \"%s\"", pl_error_text(), bad[_i].message);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.split"));
}
END_TEST

/* Whatever the cut: the chunks together are the model. */
START_TEST(chunks_add_up)
{
    struct pl_parallel p = {.tp = 1, .ep = 1, .cp = 1, .dp = 1, .flash = true};
    struct pl_microbatch batch = {1, 128};
    struct pl_model m = ten;
    double cost[12], flops = 0;
    m.experts = 4;
    m.experts_per_token = 2;
    m.expert_ffn = 32;
    m.dense_layers = 3;
    ck_assert_int_eq(pl_split_flops(&m, &p, &batch, cost), 0);
    for (int i = 0; i < 12; i++) flops += cost[i];
    for (int tied = 0; tied < 2; tied++)
        for (int C = 1; C <= 10; C++) {
            struct pl_chunk chunk[10];
            struct pl_work sum = {0}, w;
            m.tied = tied;
            ck_assert_int_eq(pl_split_make("balanced", &m, C, cost, chunk), 0);
            for (int c = 0; c < C; c++) {
                ck_assert_int_eq(
                    pl_work_chunk(&m, &p, &batch, "adamw", &chunk[c], 0, &w), 0);
                pl_work_add(&sum, &w, 1);
            }
            double extra = tied && C > 1 ? 64000 : 0; /* two copies of the table */
            ck_assert_double_eq(sum.params, (double)pl_model_params(&m) + extra);
            ck_assert_double_eq(sum.optimizer_bytes, 12 * sum.params);
            ck_assert_double_eq_tol(
                (sum.forward_flops + sum.input_flops + sum.weight_flops) / flops, 1,
                1e-12);
        }
}
END_TEST

/* A module is a layer like the last, the projection and three norms, and a head pass.
 */
START_TEST(prediction_modules)
{
    struct pl_parallel p = {.tp = 1, .ep = 1, .cp = 1, .dp = 1, .flash = true};
    struct pl_microbatch batch = {1, 128};
    struct pl_chunk module = {10, 0, false, false, 1}, layer = {9, 1, false, false, 0},
                    head = {10, 0, false, true, 0};
    struct pl_work a, b, c;
    ck_assert_int_eq(pl_work_chunk(&ten, &p, &batch, "adamw", &module, 1, &a), 0);
    ck_assert_int_eq(pl_work_chunk(&ten, &p, &batch, "adamw", &layer, 1, &b), 0);
    ck_assert_double_eq(a.params, b.params + 3 * 64 + 2 * 64 * 64);
    ck_assert_double_eq(a.forward_flops, b.forward_flops + 128.0 * 2 * 2 * 64 * 64);
    ck_assert_int_eq(pl_work_chunk(&ten, &p, &batch, "adamw", &head, 1, &b), 0);
    ck_assert_int_eq(pl_work_chunk(&ten, &p, &batch, "adamw", &head, 0, &c), 0);
    ck_assert_double_eq(b.forward_flops, 2 * c.forward_flops);
    ck_assert_double_eq(b.params, c.params);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, balance_is_optimal);
    tcase_add_test(t, uniform_and_balanced);
    tcase_add_test(t, layouts);
    tcase_add_loop_test(t, bad_layouts, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(t, chunks_add_up);
    tcase_add_test(t, prediction_modules);
}

int main(void)
{
    return run_tests("split", fill);
}
