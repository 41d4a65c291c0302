/* Delay units against the definitions of the literature; histograms of delays. */
#include <math.h>

#include "sim/delay_unit.h"
#include "tests/sim_case.h"

static double convert(const char *unit, const struct pl_simulation *sim, int s)
{
    return pl_delay_convert(pl_delay_unit_find(unit), sim->schedule.type,
                            sim->schedule.shape.m, sim->metrics.stage[s].tau_mean);
}

static struct pl_simulation run(const char *name, int P, int m)
{
    struct pl_cost cost = uniform(P, 1000, 2000, 0, 0);
    struct pl_simulation sim =
        simulate(name, P, m, 6 * ((P + m - 1) / m) + 4, &cost, false);
    pl_cost_free(&cost);
    return sim;
}

/* i = s + 1 counts stages from 1, as the sources do. */
START_TEST(units)
{
    for (int P = 2; P <= 12; P++)
        for (int K = 1; K <= P + 1; K++) {
            struct pl_simulation sim = run("pipedream", P, K);
            struct pl_simulation slots = run("pipemare", P, K);
            for (int s = 0; s < P; s++) {
                int i = s + 1;
                double pipemare = (2.0 * (P - i) + 1) / K;
                ck_assert_double_eq_tol(convert("updates", &sim, s),
                                        (double)(P - i) / K, 1e-12);
                ck_assert_double_eq(convert("microbatches", &sim, s), P - i);
                ck_assert_double_eq(convert("ajanthan", &sim, s),
                                    (2 * (P - i) + 1) / (2 * K)); /* whole numbers */
                ck_assert_double_eq_tol(convert("pipemare", &sim, s), pipemare, 1e-12);
                ck_assert_double_eq(convert("ticks", &sim, s), 2 * (P - 1 - s));
                /* the schedule in slots has PipeMare's delay as its own */
                ck_assert_double_eq_tol(slots.metrics.stage[s].tau_mean, pipemare,
                                        1e-12);
                ck_assert_double_eq_tol(convert("pipemare", &slots, s), pipemare,
                                        1e-12);
                ck_assert_double_eq(convert("ticks", &slots, s), 2 * (P - 1 - s));
                ck_assert_double_eq(convert("microbatches", &slots, s),
                                    2 * (P - i) + 1);
            }
            pl_simulation_free(&sim);
            pl_simulation_free(&slots);
        }
    struct pl_simulation sync = run("1f1b", 4, 8);
    for (const struct pl_delay_unit *u = pl_delay_units; u->name; u++)
        ck_assert_double_eq(convert(u->name, &sync, 0), 0);
    pl_simulation_free(&sync);
    ck_assert_ptr_null(pl_delay_unit_find("seconds"));
    ck_assert(isnan(pl_delay_convert(pl_delay_unit_find("ticks"),
                                     pl_schedule_find("2bw"), 4, NAN)));
}
END_TEST

/* P = 8: K = 2 mixes {3, 4} at stage 0, K = 4 {1, 2}, K = 8 {0, 1}; counts by hand. */
START_TEST(histogram)
{
    static const struct {
        int K;
        int64_t low, low_share, high_share; /* of K microbatches */
    } rows[] = {{2, 3, 1, 1}, {4, 1, 1, 3}, {8, 0, 1, 7}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct pl_simulation sim = run("pipedream", 8, rows[r].K);
        const struct pl_metrics *m = &sim.metrics;
        int64_t groups = m->steady_to - m->steady_from;
        ck_assert_int_gt(groups, 0);
        ck_assert_int_eq(m->chunks, 8);
        ck_assert_int_eq(m->tau_bins, rows[r].low + 2);
        for (int64_t tau = 0; tau < m->tau_bins; tau++) {
            int64_t want = tau == rows[r].low       ? rows[r].low_share
                           : tau == rows[r].low + 1 ? rows[r].high_share
                                                    : 0;
            ck_assert_int_eq(m->tau_count[tau], groups * want);
        }
        ck_assert_int_eq(m->tau_count[7 * m->tau_bins], groups * rows[r].K);
        pl_simulation_free(&sim);
    }
    struct pl_cost cost = uniform(4, 1000, 2000, 0, 0);
    struct pl_simulation sim = simulate("pipedream", 4, 1, 3, &cost, false);
    ck_assert_int_eq(sim.metrics.tau_bins, 0); /* no steady window */
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, units);
    tcase_add_test(t, histogram);
}

int main(void)
{
    return run_tests("sim unit", fill);
}
