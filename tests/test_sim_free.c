/* Free-running asynchronous schedules: delays follow from times. */
#include <string.h>

#include "base/mem.h"
#include "sim/stream.h"
#include "tests/sim_case.h"

static void vary(struct pl_cost *cost, uint64_t seed, double cv)
{
    cost->jitter = PL_NEW(1, struct pl_jitter);
    cost->jitter->seed = seed;
    for (int k = 0; k < PL_N_JITTER; k++)
        cost->jitter->time[k] = (struct pl_random_time){.kind = PL_LOGNORMAL, .cv = cv};
}

static struct pl_simulation run(const char *name, int P, int m, int64_t updates,
                                bool free_order, const struct pl_cost *cost)
{
    struct pl_shape shape = {
        .P = P, .m = m, .updates = updates, .free_order = free_order};
    return simulate_shape(pl_schedule_find(name), &shape, cost, false);
}

static bool same_ops(const struct pl_timeline *a, const struct pl_timeline *b)
{
    size_t n = (size_t)a->n_ops;
    return a->n_ops == b->n_ops && !memcmp(a->kind, b->kind, n * sizeof *a->kind) &&
           !memcmp(a->device, b->device, n * sizeof *a->device) &&
           !memcmp(a->micro, b->micro, n * sizeof *a->micro) &&
           !memcmp(a->start, b->start, n * sizeof *a->start) &&
           !memcmp(a->end, b->end, n * sizeof *a->end);
}

/* One schedule a line; free of variation the issue order is what devices choose. */
static const char *const names[] = {"pipedream", "pipedream-vertical", "2bw", "paci",
                                    "xpipe"};
enum { N_NAMES = sizeof names / sizeof *names };

START_TEST(steady_times)
{
    struct pl_cost cost = uniform(4, 10 * US, 20 * US, 0, 0);
    struct pl_simulation a = run(names[_i], 4, 4, 12, false, &cost);
    struct pl_simulation b = run(names[_i], 4, 4, 12, true, &cost);
    ck_assert(same_ops(&a.timeline, &b.timeline));
    pl_simulation_free(&a);
    pl_simulation_free(&b);
    pl_cost_free(&cost);
}
END_TEST

/* Lognormal 20 %: several delays at a stage, none above P-1-s, no more activations than
 * P-s; the same seed gives the same run, another one another; the issue order keeps one
 * delay. */
START_TEST(distribution)
{
    enum { P = 8, UPDATES = 3000 };
    struct pl_cost cost = uniform(P, 10 * US, 20 * US, 0, US);
    vary(&cost, 1, 0.2);
    struct pl_simulation a = run("pipedream", P, 1, UPDATES, true, &cost);
    struct pl_simulation b = run("pipedream", P, 1, UPDATES, true, &cost);
    struct pl_simulation order = run("pipedream", P, 1, UPDATES, false, &cost);
    cost.jitter->seed = 2;
    struct pl_simulation c = run("pipedream", P, 1, UPDATES, true, &cost);
    ck_assert(same_ops(&a.timeline, &b.timeline));
    ck_assert(!same_ops(&a.timeline, &c.timeline));
    for (int s = 0; s < P; s++) {
        const struct pl_stage_metrics *x = &a.metrics.stage[s];
        int64_t kinds = 0, counted = 0;
        for (int64_t tau = 0; tau < a.metrics.tau_bins; tau++) {
            int64_t n = a.metrics.tau_count[s * a.metrics.tau_bins + tau];
            kinds += n > 0;
            counted += n;
        }
        ck_assert_int_eq(counted, a.metrics.steady_to - a.metrics.steady_from);
        ck_assert_int_ge(kinds, s < P - 1 ? 2 : 1);
        ck_assert_double_eq(x->tau_max, P - 1 - s);
        ck_assert_int_le(x->peak_activations, P - s);
        ck_assert_double_eq(order.metrics.stage[s].tau_min, P - 1 - s);
        ck_assert_double_eq(order.metrics.stage[s].tau_max, P - 1 - s);
    }
    pl_simulation_free(&a);
    pl_simulation_free(&b);
    pl_simulation_free(&c);
    pl_simulation_free(&order);
    pl_cost_free(&cost);
}
END_TEST

/* Random costs and shapes: every op once, in a run that the checker accepts. */
START_TEST(random_runs)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        int P = 1 + (int)pl_rng_below(seed, PL_RNG_TEST, 60, 0, 9);
        int m = P + (int)pl_rng_below(seed, PL_RNG_TEST, 61, 0, 5);
        struct pl_cost cost = random_costs(P, seed, seed % 3 ? 50 : 3);
        if (seed % 2) vary(&cost, seed, 0.5);
        cost.semantics = seed % 5 ? PL_LATENCY : PL_OCCUPANCY;
        struct pl_simulation sim = run(names[_i], P, m, 6, true, &cost);
        ck_assert_int_eq(pl_schedule_check(&sim.schedule), PL_OK);
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
}
END_TEST

/* In order as issued, a run of any length has the same numbers streamed, whatever the
 * links and however times vary. */
START_TEST(streamed)
{
    struct pl_shape shape = {.P = 5, .m = 2, .updates = 800};
    const struct pl_schedule_type *type = pl_schedule_find("pipedream");
    struct pl_cost cost = uniform(5, 10 * US, 20 * US, US, 3 * US);
    double rate = 1e6;
    struct pl_metrics metrics;
    vary(&cost, 3, 0.2);
    ck_assert_int_eq(pl_cost_bandwidth(&cost, &rate, 1, 9), PL_OK);
    cost.send_next[1] = US;
    cost.semantics = (enum pl_link_semantics)_i;
    struct pl_simulation whole = simulate_shape(type, &shape, &cost, false);
    int rc = pl_stream_run(type, &shape, &cost, false, NULL, &metrics);
    ck_assert_msg(!rc, "%s", pl_error_text());
    ck_assert_double_eq(metrics.makespan_s, whole.metrics.makespan_s);
    ck_assert_double_eq(metrics.step_s, whole.metrics.step_s);
    for (int s = 0; s < shape.P; s++) {
        const struct pl_stage_metrics *a = &metrics.stage[s],
                                      *b = &whole.metrics.stage[s];
        ck_assert_double_eq_tol(a->busy_s, b->busy_s, 1e-12);
        ck_assert_double_eq(a->tau_mean, b->tau_mean);
        ck_assert_int_eq(a->peak_activations, b->peak_activations);
    }
    pl_metrics_free(&metrics);
    pl_simulation_free(&whole);
    pl_cost_free(&cost);
}
END_TEST

START_TEST(refused)
{
    static const struct {
        const char *name;
        enum pl_link_semantics semantics;
        const char *says;
    } rows[] = {{"1f1b", PL_LATENCY, "expected an asynchronous schedule"},
                {"amdp", PL_LATENCY, "with one chunk a device"},
                {"wpipe", PL_LATENCY, "with one chunk a device"},
                {"pipedream", PL_RENDEZVOUS, "a blocking exchange needs an order"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pl_schedule_type *type = pl_schedule_find(rows[i].name);
        struct pl_shape shape = {.P = 4, .m = 4, .updates = 6, .free_order = true};
        struct pl_layout layout;
        struct pl_simulation sim;
        ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_OK);
        pl_layout_new(type, &shape, &layout);
        struct pl_cost cost = even_costs(&layout, 10, 20, 0, 0, 0);
        cost.semantics = rows[i].semantics;
        ck_assert_int_eq(pl_simulate(type, &shape, &cost, false, &sim), PL_EUNSUP);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), rows[i].says));
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, steady_times, 0, N_NAMES);
    tcase_add_test(t, distribution);
    tcase_add_loop_test(t, random_runs, 0, N_NAMES);
    tcase_add_loop_test(t, streamed, 0, PL_N_SEMANTICS);
    tcase_add_test(t, refused);
}

int main(void)
{
    return run_tests("sim free", fill);
}
