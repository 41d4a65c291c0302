/* Asynchronous schedules against the delay formulas of their sources, every microbatch,
 * start-up included; horizons of the predictors; which device has what. */
#include <math.h>
#include <string.h>

#include "tests/sim_case.h"

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t forward_of(const struct pl_simulation *sim, int s, int64_t i)
{
    return sim->versions.forward[s * sim->versions.n_micro + i];
}

static int64_t backward_of(const struct pl_simulation *sim, int s, int64_t i)
{
    return sim->versions.backward[s * sim->versions.n_micro + i];
}

/* Long enough for a steady window of every schedule here. */
static struct pl_simulation long_run(const char *name, int P, int m, pl_tick f,
                                     pl_tick bw)
{
    struct pl_cost cost = uniform(P, f, bw, 0, 0);
    struct pl_simulation sim =
        simulate(name, P, m, 6 * ceil_div(P, m) + 4, &cost, false);
    pl_cost_free(&cost);
    return sim;
}

/* PipeDream with vertical sync: P - 1 on every stage at K = 1, and stage 0's delays for
 * other K; without it the last stage has 0. */
START_TEST(vertical)
{
    for (int P = 2; P <= 12; P++)
        for (int K = 1; K <= P + 2; K++) {
            struct pl_simulation sim = long_run("pipedream-vertical", P, K, 1000, 2000);
            for (int s = 0; s < P; s++) {
                for (int64_t i = 0; i < sim.versions.n_micro; i++) {
                    int64_t tau = smaller(ceil_div(P - 1 - i % K, K), i / K);
                    ck_assert_int_eq(pl_versions_tau(&sim.versions, s, i), tau);
                    ck_assert_int_eq(backward_of(&sim, s, i), forward_of(&sim, s, i));
                    if (K == 1 && i >= P - 1) ck_assert_int_eq(tau, P - 1);
                }
                ck_assert_int_eq(sim.metrics.stage[s].weight_versions,
                                 ceil_div(P - 1, K) + 1);
            }
            struct pl_simulation plain = long_run("pipedream", P, K, 1000, 2000);
            ck_assert_double_eq(plain.metrics.stage[P - 1].tau_max, 0);
            ck_assert_double_gt(sim.metrics.stage[P - 1].tau_max, 0);
            ck_assert_double_eq(plain.metrics.makespan_s, sim.metrics.makespan_s);
            pl_simulation_free(&sim);
            pl_simulation_free(&plain);
        }
}
END_TEST

/* WPipe: delay 1 and two versions on the first P chunks, 0 and one on the others, with
 * any round; 1.5 copies a device, against 2 of 2bw in the same time. */
START_TEST(wpipe)
{
    const struct pl_schedule_type *type = pl_schedule_find("wpipe");
    for (int P = 2; P <= 9; P++)
        for (int rounds = 1; rounds <= 3; rounds++)
            for (int group = 0; group <= rounds * P; group += rounds * P) {
                struct pl_shape shape = {
                    .P = P, .m = rounds * P, .updates = 8, .group = group};
                struct pl_layout layout;
                ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_OK);
                pl_layout_new(type, &shape, &layout);
                struct pl_cost cost = even_costs(&layout, 2000, 2000, 2000, 0, 0);
                struct pl_simulation sim = simulate_shape(type, &shape, &cost, false);
                int64_t copies = 0;
                for (int c = 0; c < 2 * P; c++) {
                    ck_assert_int_eq(layout.device[c], c % P);
                    copies += sim.metrics.stage[c].weight_versions;
                    for (int64_t i = 0; i < sim.versions.n_micro; i++) {
                        int64_t g = i / shape.m;
                        ck_assert_int_eq(forward_of(&sim, c, i),
                                         c < P && g ? g - 1 : g);
                        ck_assert_int_eq(backward_of(&sim, c, i),
                                         forward_of(&sim, c, i));
                    }
                }
                ck_assert_int_eq(2 * copies, 3 * 2 * P); /* 1.5 of half a stage each */
                struct pl_cost same = uniform(P, 2000, 4000, 0, 0);
                struct pl_simulation bw = simulate("2bw", P, shape.m, 8, &same, false);
                ck_assert_double_eq_tol(sim.metrics.step_s, bw.metrics.step_s, 1e-20);
                ck_assert_double_lt(sim.metrics.makespan_s, bw.metrics.makespan_s);
                pl_simulation_free(&bw);
                pl_simulation_free(&sim);
                pl_cost_free(&cost);
                pl_cost_free(&same);
                pl_layout_free(&layout);
            }
    struct pl_shape few = {.P = 4, .m = 3, .updates = 1};
    ck_assert_int_eq(pl_shape_resolve(type, &few), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "at least P"));
    struct pl_shape odd = {.P = 4, .m = 6, .updates = 1, .group = 4};
    ck_assert_int_eq(pl_shape_resolve(type, &odd), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "such as 8"));
}
END_TEST

/* PipeMare: 2 (P - i) + 1 microbatches, i from 1, in slots; backward reads the live
 * weights. Alternating F and BW instead (paci) gives P - i. */
START_TEST(pipemare)
{
    for (int P = 1; P <= 9; P++)
        for (int N = 1; N <= P + 2; N++) {
            struct pl_simulation sim = long_run("pipemare", P, N, 1000, 2000);
            struct pl_simulation alternating = long_run("paci", P, N, 1000, 2000);
            for (int s = 0; s < P; s++) {
                int64_t L = 2 * (P - (s + 1)) + 1;
                for (int64_t k = 0; k < sim.versions.n_micro; k++) {
                    int64_t seen = k < L ? 0 : (k - L) / N;
                    ck_assert_int_eq(forward_of(&sim, s, k), seen);
                    ck_assert_int_eq(backward_of(&sim, s, k), k / N);
                }
                ck_assert_double_eq_tol(sim.metrics.stage[s].tau_mean, (double)L / N,
                                        1e-12);
                ck_assert_double_eq_tol(alternating.metrics.stage[s].tau_mean,
                                        (double)(P - (s + 1)) / N, 1e-12);
                ck_assert_int_eq(sim.metrics.stage[s].weight_versions, 1);
            }
            ck_assert_double_eq_tol(sim.metrics.step_s, alternating.metrics.step_s,
                                    1e-20);
            pl_simulation_free(&sim);
            pl_simulation_free(&alternating);
        }
}
END_TEST

/* PACI: at most ceil((P-1) / a) updates between F and B; its 8 stages with a = 8: .875
 * on the first stage, .4375 on average, 0 on the last. */
/* A step is never shorter than a device's work of 4 (F + BW) = 12: below 3 c = 6
 * updates, whose window has the drain in it, there is none. */
START_TEST(short_runs)
{
    struct pl_cost cost = uniform(4, 1000, 2000, 0, 0);
    for (int updates = 2; updates <= 12; updates++) {
        struct pl_simulation sim = simulate("pipemare", 4, 4, updates, &cost, false);
        ck_assert_int_eq(!isnan(sim.metrics.step_s), updates >= 6);
        ck_assert_int_eq(!isnan(sim.metrics.bubble_steady), updates >= 6);
        if (updates >= 6)
            ck_assert_double_eq_tol(sim.metrics.step_s, 12 * pl_seconds(1000), 1e-18);
        pl_simulation_free(&sim);
    }
    pl_cost_free(&cost);
}
END_TEST

START_TEST(paci)
{
    for (int P = 1; P <= 12; P++)
        for (int a = 1; a <= P + 2; a++) {
            struct pl_simulation sim = long_run("paci", P, a, 1000, 2000);
            int64_t most = 0;
            for (int s = 0; s < P; s++)
                for (int64_t i = 0; i < sim.versions.n_micro; i++) {
                    int64_t lag = backward_of(&sim, s, i) - forward_of(&sim, s, i);
                    ck_assert_int_eq(lag,
                                     smaller(ceil_div(P - 1 - s - i % a, a), i / a));
                    ck_assert_int_eq(backward_of(&sim, s, i), i / a);
                    if (lag > most) most = lag;
                }
            ck_assert_int_eq(most, ceil_div(P - 1, a)); /* the bound is reached */
            pl_simulation_free(&sim);
        }
    struct pl_simulation sim = long_run("paci", 8, 8, 1000, 2000);
    double sum = 0;
    for (int s = 0; s < 8; s++) sum += sim.metrics.stage[s].tau_mean;
    ck_assert_double_eq(sim.metrics.stage[0].tau_mean, 0.875);
    ck_assert_double_eq(sum / 8, 0.4375);
    ck_assert_double_eq(sim.metrics.stage[7].tau_max, 0);
    pl_simulation_free(&sim);
}
END_TEST

/* End of an op in the timeline. */
static pl_tick end_of_op(const struct pl_simulation *sim, int kind, int chunk,
                         int64_t micro)
{
    const struct pl_timeline *t = &sim->timeline;
    for (int64_t i = 0; i < t->n_ops; i++)
        if (t->kind[i] == kind && t->chunk[i] == chunk && t->micro[i] == micro)
            return t->end[i];
    ck_abort_msg("no such op");
    return 0;
}

/* SpecTrain: s_fwd and s_bwd are the updates of the other microbatches that a stage
 * does until the microbatch has left stage 0 backwards, when F = BW. */
START_TEST(spectrain)
{
    const struct pl_schedule_type *type = pl_schedule_find("spectrain");
    for (int P = 1; P <= 9; P++) {
        struct pl_simulation sim = long_run("spectrain", P, 1, 1000, 1000);
        int64_t i = 3 * P, n = sim.versions.n_micro;
        pl_tick gone = end_of_op(&sim, PL_OP_BW, 0, i);
        for (int k = 0; k < P; k++) {
            int64_t forward, backward, done = 0;
            type->horizon(&sim.schedule.shape, k, &forward, &backward);
            for (int64_t u = 0; u < n; u++)
                done += end_of_op(&sim, PL_OP_U, k, u) <= gone;
            ck_assert_int_eq(forward, done - 1 - forward_of(&sim, k, i));
            ck_assert_int_eq(backward, done - 1 - backward_of(&sim, k, i));
            ck_assert_int_eq(forward, k / 2 + P - k - 1);
            ck_assert_int_eq(forward - backward, pl_versions_tau(&sim.versions, k, i));
            ck_assert_int_eq(backward_of(&sim, k, i), i);
        }
        pl_simulation_free(&sim);
    }
    struct pl_shape shape = {.P = 4, .m = 2, .updates = 4};
    ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_EUNSUP);
}
END_TEST

/* XPipe: a group reads what is live at its first microbatch; horizons of the published
 * code by hand. */
START_TEST(xpipe)
{
    const struct pl_schedule_type *type = pl_schedule_find("xpipe");
    for (int P = 1; P <= 9; P++)
        for (int T = 1; T <= P + 2; T++) {
            struct pl_simulation sim = long_run("xpipe", P, T, 1000, 2000);
            struct pl_simulation live = long_run("paci", P, T, 1000, 2000);
            int64_t mixed = 0;
            for (int s = 0; s < P; s++)
                for (int64_t i = 0; i < sim.versions.n_micro; i++) {
                    int64_t g = i / T, tau = smaller(ceil_div(P - 1 - s, T), g);
                    ck_assert_int_eq(forward_of(&sim, s, i), g - tau);
                    ck_assert_int_eq(forward_of(&live, s, g * T), g - tau);
                    ck_assert_int_eq(backward_of(&sim, s, i), g);
                    mixed += forward_of(&live, s, i) != g - tau;
                }
            if (P > 2 && T == P) ck_assert_int_gt(mixed, 0);
            pl_simulation_free(&sim);
            pl_simulation_free(&live);
        }
    static const struct {
        int P, T, k;
        int64_t forward, backward;
    } rows[] = {{4, 4, 0, 2, 1}, {4, 4, 1, 1, 1}, {4, 4, 3, 1, 1}, {8, 1, 0, 7, 0},
                {8, 1, 1, 6, 0}, {8, 1, 2, 6, 1}, {8, 1, 7, 4, 3}, {8, 2, 3, 3, 1}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct pl_shape shape = {.P = rows[r].P, .m = rows[r].T};
        int64_t forward, backward;
        type->horizon(&shape, rows[r].k, &forward, &backward);
        ck_assert_int_eq(forward, rows[r].forward);
        ck_assert_int_eq(backward, rows[r].backward);
    }
}
END_TEST

/* AMDP: stage i of the four pipelines of 8 devices on i, 3 - i, i + 4, 7 - i; at most
 * min(2, P - i) microbatches between F and B, so one update, on the last stage none. */
START_TEST(amdp)
{
    const struct pl_schedule_type *type = pl_schedule_find("amdp");
    for (int P = 4; P <= 16; P *= 2)
        for (int m = P; m <= 3 * P; m += P)
            for (int bw = 1; bw <= 2; bw++) {
                struct pl_cost cost = uniform(P, 1000, 1000 * bw, 0, 0);
                struct pl_simulation sim = simulate("amdp", P, m, 12, &cost, false);
                const struct pl_metrics *x = &sim.metrics;
                ck_assert_int_eq(x->stages, P * P / 2);
                for (int q = 0; q < x->stages; q++) {
                    int i = q % P, r = q / P, base = r / 2 * 4;
                    int device = (r % 2 ? base + 3 - i + P : base + i) % P;
                    ck_assert_int_eq(x->stage[q].device, device);
                    ck_assert_int_eq(x->stage[q].peak_activations, smaller(2, P - i));
                    ck_assert_double_le(x->stage[q].tau_max, i < P - 1);
                    if (i == 0) ck_assert_double_eq(x->stage[q].tau_max, 1);
                    ck_assert_int_eq(x->stage[q].weight_versions, 1);
                }
                double bubble = bw == 1 ? 0 : P == 16 ? 1.0 / 13 : 1.0 / 7;
                ck_assert_double_eq_tol(x->bubble_steady, bubble, 1e-12);
                pl_simulation_free(&sim);
                pl_cost_free(&cost);
            }
    struct pl_shape shape = {.P = 6, .m = 6, .updates = 1};
    ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "such as 8"));
    shape.P = 4;
    ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_EUNSUP);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, vertical);
    tcase_add_test(t, wpipe);
    tcase_add_test(t, pipemare);
    tcase_add_test(t, short_runs);
    tcase_add_test(t, paci);
    tcase_add_test(t, spectrain);
    tcase_add_test(t, xpipe);
    tcase_add_test(t, amdp);
}

int main(void)
{
    return run_tests("sim async", fill);
}
