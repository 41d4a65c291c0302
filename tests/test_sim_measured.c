/* Measured runs: 1F1B with slow links on H800 servers (PipeMorph, also called Adaptra,
 * NSDI'26; its repository at 7ff0dc6). Before each NCCL send over a slow link a kernel
 * sleeps D ms. Nothing is fitted but F + B, from the run without delay: 862.5 ms =
 * (24 + 7)(F + B), 419.5 ms = (12 + 3)(F + B). The injector takes NCCL peer 0 for the
 * stage before and 1 for the stage after; so stage 2's sends to stage 1 are delayed
 * when link 2 is slow, and not when link 1 is. */
#include <math.h>
#include <stdio.h>

#include "tests/sim_case.h"

struct run {
    int p, m;
    double plain; /* ms without delay */
    int links;    /* bits of the slow ones; link i joins stages i and i + 1 */
    int delay;    /* ms */
    double measured;
};

static const struct run runs[] = {
    {8, 24, 862.5, 1 << 6, 10, 1081.7},
    {8, 24, 862.5, 1 << 6, 20, 1330.6},
    {8, 24, 862.5, 1 << 6, 30, 1579.9},
    {8, 24, 862.5, 1 << 6, 40, 1831.8},
    {8, 24, 862.5, 1 << 6, 50, 2107.9},
    {8, 24, 862.5, 1 << 6, 60, 2334.4},
    {8, 24, 862.5, 1 << 0, 30, 1596.9},
    {8, 24, 862.5, 1 << 0, 60, 2531.5},
    {8, 24, 862.5, 1 << 0 | 1 << 1, 30, 2106.4},
    {8, 24, 862.5, 1 << 0 | 1 << 2, 30, 2186.3},
    {8, 24, 862.5, 1 << 0 | 1 << 6, 30, 1626.0},
    {8, 24, 862.5, 1 << 0 | 1 << 3 | 1 << 6, 30, 1687.2},
    {4, 12, 419.5, 1 << 0, 30, 801.4},
    {4, 12, 419.5, 1 << 0, 60, 1231.7},
    {4, 12, 419.5, 1 << 2, 30, 1102.4},
    {4, 12, 419.5, 1 << 2, 60, 1818.5},
    {4, 12, 419.5, 1 << 0 | 1 << 1, 30, 1079.2},
    {4, 12, 419.5, 1 << 0 | 1 << 2, 30, 1151.5},
};
enum { N_RUNS = sizeof runs / sizeof *runs };

/* Predicted over measured, less 1. */
static double error_of(const struct run *r, enum pl_link_semantics semantics,
                       double share)
{
    double sum = r->plain / (r->m + r->p - 1);
    pl_tick f = (pl_tick)(sum * share * 1e9), b = (pl_tick)(sum * (1 - share) * 1e9);
    struct pl_cost cost = uniform(r->p, f, b, 0, 0);
    cost.semantics = semantics;
    for (int s = 0; s < r->p; s++) {
        int behind = s == 2 ? 2 : s - 1; /* the injector */
        pl_tick delay = (pl_tick)r->delay * 1000 * US;
        if (r->links >> s & 1) cost.send_next[s] = delay;
        if (s && r->links >> behind & 1) cost.send_prev[s] = delay;
    }
    struct pl_simulation sim = simulate("1f1b", r->p, r->m, 1, &cost, false);
    double ms = (double)end_of(&sim) / 1e9;
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
    return ms / r->measured - 1;
}

static void print_link(int links)
{
    const char *separator = "link ";
    for (int i = 0; i < 8; i++)
        if (links >> i & 1) {
            printf("%s%d", separator, i);
            separator = "+";
        }
}

START_TEST(slow_links)
{
    double sum[2] = {0, 0}, most = 0;
    for (int i = 0; i < N_RUNS; i++) {
        double e = error_of(&runs[i], PL_RENDEZVOUS, 0.37);
        double other = error_of(&runs[i], PL_LATENCY, 0.37);
        printf("# %-3s ", runs[i].p == 8 ? "14B" : "7B");
        print_link(runs[i].links);
        printf(
            " @ %d ms: measured %.1f, predicted %.1f ms, %+.1f%% (latency %+.1f%%)\n",
            runs[i].delay, runs[i].measured, runs[i].measured * (1 + e), 100 * e,
            100 * other);
        sum[0] += fabs(e) / N_RUNS;
        sum[1] += fabs(other) / N_RUNS;
        if (fabs(e) > most) most = fabs(e);
    }
    printf("# MAPE %.2f%%, at most %.1f%%; with latency links %.1f%%\n", 100 * sum[0],
           100 * most, 100 * sum[1]);
    ck_assert_double_le(sum[0], 0.03);
    ck_assert_double_le(most, 0.05);
    ck_assert_double_ge(sum[1], 0.05); /* non-blocking links cannot explain it */
}
END_TEST

/* How F + B is divided does not matter. */
START_TEST(split_of_f_and_b)
{
    for (int i = 0; i < N_RUNS; i++)
        ck_assert_double_eq_tol(error_of(&runs[i], PL_RENDEZVOUS, 0.33),
                                error_of(&runs[i], PL_RENDEZVOUS, 0.40), 1e-6);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, slow_links);
    tcase_add_test(t, split_of_f_and_b);
}

int main(void)
{
    return run_tests("sim measured", fill);
}
