/* DualPipe, DualPipeV, Chimera and Hanayo: published bubbles and memory, and what is
 * refused. That they execute at all over random shapes and costs is test_sim_time.c. */
#include <math.h>
#include <string.h>

#include "tests/sim_case.h"

enum { MS = 1000 * US };

static const struct pl_schedule_type *type_of(const char *name)
{
    const struct pl_schedule_type *type = pl_schedule_find(name);
    ck_assert_ptr_nonnull(type);
    return type;
}

/* Times in ms of a whole device. */
static struct pl_simulation run_ms(const char *name, int P, int m, int v, double f,
                                   double b, double w, double overlap,
                                   struct pl_closed *closed)
{
    struct pl_shape shape = {.P = P, .m = m, .updates = 1, .v = v};
    struct pl_layout layout;
    ck_assert_int_eq(pl_shape_resolve(type_of(name), &shape), PL_OK);
    pl_layout_new(type_of(name), &shape, &layout);
    struct pl_cost cost = even_costs(&layout, (pl_tick)(f * MS), (pl_tick)(b * MS),
                                     (pl_tick)(w * MS), 0, 0);
    cost.overlap = overlap;
    struct pl_simulation sim = simulate_shape(type_of(name), &shape, &cost, true);
    if (closed) type_of(name)->closed(&shape, &cost, closed);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
    return sim;
}

static double idle_ms(const struct pl_simulation *sim, int device)
{
    return 1e3 * (sim->metrics.makespan_s - sim->metrics.device[device].busy_s);
}

/* DeepSeek-V3 (arXiv 2412.19437) Table 2: bubble (PP/2-1)(F&B + B_full - 3W),
 * activations PP + 1, parameters twice. Holds for F = B >= W, without overlap on every
 * device, with it on the two in the middle (the others have fewer pairs and more work).
 */
START_TEST(dualpipe_table)
{
    static const double cost[][3] = {{1, 1, 1}, {2, 2, 1}, {3, 3, 1}, {4, 4, 3}};
    for (int P = 2; P <= 12; P += 2)
        for (int m = 2 * P; m <= 4 * P; m += P)
            for (int k = 0; k < 4; k++)
                for (int h = 0; h <= 2; h++) {
                    double f = cost[k][0], b = cost[k][1], w = cost[k][2], full = b + w,
                           pair = f + full - h * fmin(f, full) / 2;
                    struct pl_simulation sim =
                        run_ms("dualpipe", P, m, 0, f, b, w, h / 2.0, NULL);
                    double printed = (P / 2 - 1) * (pair + full - 3 * w);
                    for (int d = h ? P / 2 - 1 : 0; d <= (h ? P / 2 : P - 1); d++)
                        ck_assert_double_eq_tol(idle_ms(&sim, d), printed, 1e-9);
                    for (int d = 0; d < P; d++)
                        ck_assert_int_eq(sim.metrics.device[d].peak_activations, P + 1);
                    ck_assert_int_eq(sim.metrics.stages, 2 * P);
                    pl_simulation_free(&sim);
                }
}
END_TEST

/* Where F and B differ the printed form fails and ours, (P/2-1)(F&B + F - 2W), holds.
 */
START_TEST(dualpipe_unequal)
{
    struct pl_simulation sim = run_ms("dualpipe", 8, 20, 0, 10, 9, 4, 0, NULL);
    double printed = 3 * (23 + 13 - 12), ours = 3 * (23 + 10 - 8);
    ck_assert_double_eq_tol(idle_ms(&sim, 0), ours, 1e-9);
    ck_assert_double_gt(fabs(ours - printed), 1);
    pl_simulation_free(&sim);
}
END_TEST

/* The closed makespan with overlap and with costs far from equal. */
START_TEST(dual_closed_overlap)
{
    for (uint32_t k = 0; k < 300; k++) {
        const char *name = k % 2 ? "dualpipe" : "dualpipev";
        int P = 2 + 2 * (int)pl_rng_below(1, PL_RNG_TEST, 5, k, 4);
        int m = 2 * P + 2 * (int)pl_rng_below(2, PL_RNG_TEST, 5, k, 5);
        double x[3];
        for (uint64_t j = 0; j < 3; j++)
            x[j] = 4 * (1 + (double)pl_rng_below(3 + j, PL_RNG_TEST, 5, k, 12));
        struct pl_closed closed;
        struct pl_simulation sim =
            run_ms(name, P, m, 0, x[0], x[1], x[2], (k % 5) / 4.0, &closed);
        ck_assert_double_eq_tol(sim.metrics.makespan_s, closed.makespan_s, 1e-12);
        ck_assert_double_eq_tol(sim.metrics.bubble_over_ideal, closed.bubble_over_ideal,
                                1e-12);
        pl_simulation_free(&sim);
    }
}
END_TEST

/* Chimera (arXiv 2107.06925) Table 2: (D-2)/(2N+D-2) for F = B, N a multiple of D;
 * (D-2)/(3N/2+D-2) for B = 2F at N = D; critical path of D = N = 6: 6 F and 10 B;
 * activations D/2+1 .. D. */
START_TEST(chimera_table)
{
    for (int D = 2; D <= 12; D += 2)
        for (int N = D; N <= 4 * D; N += D) {
            struct pl_simulation equal = run_ms("chimera", D, N, 0, 2, 1, 1, 0, NULL);
            struct pl_simulation twice = run_ms("chimera", D, N, 0, 1, 1, 1, 0, NULL);
            /* beyond the first unit each adds D-2 slots in the middle, of one F */
            double idle = 2.0 * (D - 2) + (N / D - 1.0) * (D - 2);
            ck_assert_double_eq_tol(equal.metrics.bubble, (D - 2.0) / (2.0 * N + D - 2),
                                    1e-12);
            ck_assert_double_eq_tol(twice.metrics.bubble, idle / (3 * N + idle), 1e-12);
            if (N == D)
                ck_assert_double_eq_tol(twice.metrics.bubble,
                                        (D - 2.0) / (1.5 * N + D - 2), 1e-12);
            for (int d = 0; d < D; d++) {
                int64_t held = equal.metrics.device[d].peak_activations;
                ck_assert(held >= D / 2 + 1 && held <= D);
            }
            pl_simulation_free(&equal);
            pl_simulation_free(&twice);
        }
    struct pl_simulation six = run_ms("chimera", 6, 6, 0, 7, 8, 3, 0, NULL);
    ck_assert_double_eq_tol(six.metrics.makespan_s, 1e-3 * (6 * 7 + 10 * 11), 1e-12);
    pl_simulation_free(&six);
}
END_TEST

/* Any number of microbatches, split between the two directions as evenly as it goes. */
START_TEST(chimera_split)
{
    for (int D = 2; D <= 8; D += 2)
        for (int N = 1; N <= 2 * D + 1; N++) {
            struct pl_shape shape = {.P = D, .m = N, .updates = 2};
            struct pl_schedule schedule;
            ck_assert_int_eq(
                pl_schedule_new(type_of("chimera"), &shape, NULL, &schedule), PL_OK);
            ck_assert_int_eq(pl_schedule_check(&schedule), PL_OK);
            int down = 0, up = 0;
            for (int64_t i = schedule.first[0]; i < schedule.first[1]; i++) {
                down += schedule.ops[i].kind == PL_OP_F && schedule.ops[i].chunk == 0;
                up += schedule.ops[i].kind == PL_OP_F && schedule.ops[i].chunk != 0;
            }
            ck_assert_int_eq(down + up, 2 * N);
            ck_assert_int_ge(down, up);
            ck_assert_int_le(down - up, 2 * (N / D + 1));
            pl_schedule_free(&schedule);
        }
}
END_TEST

/* One wave at N = P idles 4(P-1) slots of half an F, as Chimera does; more waves less
 * of the time, and never more than the activations of P microbatches at N = P. */
START_TEST(hanayo_waves)
{
    for (int P = 2; P <= 8; P++) {
        double last = 1;
        for (int W = 1; W <= 4; W *= 2) {
            struct pl_simulation sim = run_ms("hanayo", P, P, 2 * W, 8, 8, 8, 0, NULL);
            if (W == 1)
                ck_assert_double_eq_tol(idle_ms(&sim, 0), 4 * (P - 1) * 4, 1e-9);
            ck_assert_double_lt(sim.metrics.bubble, last);
            last = sim.metrics.bubble;
            for (int d = 0; d < P; d++)
                ck_assert_int_le(sim.metrics.device[d].peak_activations, 2 * W * P);
            pl_simulation_free(&sim);
        }
    }
}
END_TEST

static void assert_refused(const char *name, int P, int m, int v, const char *text)
{
    struct pl_shape shape = {.P = P, .m = m, .updates = 1, .v = v};
    int rc = pl_shape_resolve(type_of(name), &shape);
    ck_assert_msg(rc == PL_EUNSUP && strstr(pl_error_text(), text), "%s: %d '%s'", name,
                  rc, pl_error_text());
}

START_TEST(refused)
{
    assert_refused("dualpipe", 5, 20, 0, "such as 6");
    assert_refused("dualpipe", 4, 7, 0, "such as 8");
    assert_refused("dualpipe", 4, 9, 0, "such as 10");
    assert_refused("dualpipe", 4, 8, 2, "1 model chunk a device");
    assert_refused("dualpipev", 4, 7, 0, "2 P = 8");
    assert_refused("dualpipev", 4, 8, 4, "2 model chunks a device");
    assert_refused("chimera", 3, 6, 0, "such as 4");
    assert_refused("hanayo", 4, 8, 3, "such as 4");
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, dualpipe_table);
    tcase_add_test(t, dualpipe_unequal);
    tcase_add_test(t, dual_closed_overlap);
    tcase_add_test(t, chimera_table);
    tcase_add_test(t, chimera_split);
    tcase_add_test(t, hanayo_waves);
    tcase_add_test(t, refused);
}

int main(void)
{
    return run_tests("sim bidir", fill);
}
