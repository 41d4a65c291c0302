/* Delays, weight versions and activations of executed runs against their closed forms.
 */
#include <math.h>
#include <string.h>

#include "sim/model.h"
#include "tests/sim_case.h"

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void compare_stage(const struct pl_schedule_type *type,
                          const struct pl_shape *shape, const struct pl_simulation *sim,
                          int q)
{
    int64_t tau_min = -1, tau_max = -1, versions = -1, peak = -1;
    type->closed_stage(shape, q, &tau_min, &tau_max, &versions, &peak);
    const struct pl_stage_metrics *got = &sim->metrics.stage[q];
    int64_t held = sim->metrics.device[got->device].peak_activations;
    ck_assert_msg((tau_min < 0 || got->tau_min == (double)tau_min) &&
                      (tau_max < 0 || got->tau_max == (double)tau_max) &&
                      (versions < 0 || got->weight_versions == versions) &&
                      (peak < 0 || held == peak),
                  "%s P=%d m=%d v=%d instance %d: tau %g..%g versions %lld peak %lld, "
                  "closed %lld..%lld %lld %lld",
                  type->name, shape->P, shape->m, shape->v, q, got->tau_min,
                  got->tau_max, (long long)got->weight_versions, (long long)held,
                  (long long)tau_min, (long long)tau_max, (long long)versions,
                  (long long)peak);
}

/* Every schedule: the executed map gives the closed forms, with random costs too. */
START_TEST(closed_stage)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (!type->closed_stage) return;
    int compared = 0;
    for (int P = 1; P <= 16; P++)
        for (int m = 1; m <= 2 * P + 3; m++) {
            struct pl_shape shape;
            int64_t updates = type->async ? pl_schedule_default_updates(type, P, m) : 2;
            if (!shape_of(type, P, m, updates, &shape)) continue;
            struct pl_layout layout;
            pl_layout_new(type, &shape, &layout);
            for (int k = 0; k < 2; k++) {
                struct pl_cost cost =
                    k ? random_layout_costs(&layout, (uint64_t)(P * 50 + m), 30)
                      : even_costs(&layout, 1000 * shape.v, 1000 * shape.v,
                                   1000 * shape.v, 0, 0);
                struct pl_simulation sim = simulate_shape(
                    type, &shape, &cost, type->global_version && !type->post_validated);
                for (int q = 0; q < layout.C * layout.R; q++, compared++)
                    compare_stage(type, &shape, &sim, q);
                pl_simulation_free(&sim);
                pl_cost_free(&cost);
            }
            pl_layout_free(&layout);
        }
    ck_assert_int_gt(compared, 100);
}
END_TEST

/* PipeDream, update every K: every microbatch's tau, start-up included; the mean over a
 * group is (P-1-s)/K; Ajanthan's integer is its floor. */
START_TEST(pipedream_oracle)
{
    for (int P = 2; P <= 16; P++)
        for (int K = 1; K <= P + 3; K++) {
            struct pl_cost cost = uniform(P, 1000, 2000, 0, 0);
            int64_t updates = 2 * ((P + K - 1) / K) + 3;
            struct pl_simulation sim =
                simulate("pipedream", P, K, updates, &cost, false);
            const struct pl_versions *v = &sim.versions;
            for (int s = 0; s < P; s++) {
                int64_t w = P - 1 - s;
                for (int64_t i = 0; i < v->n_micro; i++) {
                    int64_t steady = ceil_div(w - i % K, K);
                    ck_assert_int_eq(pl_versions_tau(v, s, i), smaller(steady, i / K));
                    ck_assert_int_eq(v->backward[s * v->n_micro + i],
                                     v->forward[s * v->n_micro + i]);
                }
                ck_assert_double_eq_tol(sim.metrics.stage[s].tau_mean, (double)w / K,
                                        1e-14);
                ck_assert_int_eq((2 * (P - s - 1) + 1) / (2 * K), w / K);
                ck_assert_double_eq(sim.metrics.stage[s].tau_min, (double)(w / K));
                ck_assert_int_eq(sim.metrics.stage[s].weight_versions,
                                 ceil_div(w, K) + 1);
                ck_assert_int_eq(pl_versions_max_tau(v, s), ceil_div(w, K));
            }
            pl_simulation_free(&sim);
            pl_cost_free(&cost);
        }
}
END_TEST

START_TEST(twobw_oracle)
{
    for (int P = 1; P <= 12; P++)
        for (int m = P; m <= P + 3; m++) {
            struct pl_cost cost = random_costs(P, (uint64_t)(P + 100 * m), 20);
            struct pl_simulation sim = simulate("2bw", P, m, 8, &cost, true);
            const struct pl_versions *v = &sim.versions;
            for (int s = 0; s < P; s++) {
                for (int64_t i = 0; i < v->n_micro; i++)
                    ck_assert_int_eq(v->forward[s * v->n_micro + i],
                                     i / m > 0 ? i / m - 1 : 0);
                ck_assert_double_eq(sim.metrics.stage[s].tau_mean, 1);
                ck_assert_double_eq(sim.metrics.stage[s].tau_startup, 0);
                ck_assert_int_eq(sim.metrics.stage[s].weight_versions, 2);
            }
            for (int64_t n = 0; n < v->updates; n++)
                ck_assert(pl_versions_fused(v, n) && pl_versions_global(v, n));
            pl_simulation_free(&sim);
            pl_cost_free(&cost);
        }
}
END_TEST

/* done_s is the end of the last stage's U, increasing; its last one ends the run. */
START_TEST(update_times)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return; /* test_sim_custom.c */
    struct pl_shape shape;
    struct pl_layout layout;
    any_shape(type, 5, 10, 6, &shape);
    pl_layout_new(type, &shape, &layout);
    struct pl_cost cost = even_costs(&layout, 1000, 1000, 1000, 300, 70);
    struct pl_simulation sim = simulate_shape(type, &shape, &cost, false);
    const struct pl_versions *v = &sim.versions;
    for (int64_t n = 1; n < v->updates; n++)
        ck_assert_double_gt(v->done_s[n], v->done_s[n - 1]);
    ck_assert_double_eq(v->done_s[v->updates - 1], sim.metrics.makespan_s);
    pl_layout_free(&layout);
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

START_TEST(constant_and_append)
{
    int64_t tau[] = {0, 3};
    struct pl_versions a, b, other, run = {0};
    pl_versions_constant(2, 5, 2, tau, 0.5, &a);
    ck_assert_int_eq(pl_versions_append(&run, &a), PL_OK); /* to nothing: a copy */
    ck_assert_int_eq(run.stages, 2);
    ck_assert_int_eq(run.n_micro, a.n_micro);
    ck_assert_mem_eq(run.forward, a.forward, 2 * sizeof *a.forward * (size_t)a.n_micro);
    ck_assert_double_eq(run.done_s[4], a.done_s[4]);
    pl_versions_free(&run);
    pl_versions_constant(2, 4, 2, tau, 0.25, &b);
    pl_versions_constant(2, 4, 3, tau, 1, &other);
    ck_assert_int_eq(a.forward[a.n_micro + 2 * 4], 1);
    ck_assert_int_eq(a.forward[a.n_micro + 2 * 2], 0);
    ck_assert_double_eq(a.done_s[4], 2.5);
    ck_assert(pl_versions_fused(&a, 4) && !pl_versions_global(&a, 4));
    ck_assert(pl_versions_global(&a, 0));
    ck_assert_int_eq(pl_versions_append(&a, &other), PL_ECONFIG);
    ck_assert_int_eq(pl_versions_append(&a, &b), PL_OK);
    ck_assert_int_eq(a.updates, 9);
    ck_assert_int_eq(a.n_micro, 18);
    for (int s = 0; s < 2; s++)
        for (int64_t i = 10; i < 18;
             i++) /* first group after the drain: newest version */
            ck_assert_int_eq(pl_versions_tau(&a, s, i), smaller(tau[s], i / 2 - 5));
    ck_assert_int_eq(pl_versions_tau(&a, 1, 9), 3);
    ck_assert_double_eq(a.done_s[5], 2.75);
    pl_versions_free(&a);
    pl_versions_free(&b);
    pl_versions_free(&other);
    int64_t mixed[] = {1};
    pl_versions_constant(1, 3, 2, mixed, 1, &a);
    a.forward[5] = 2;
    ck_assert(!pl_versions_fused(&a, 2) && !pl_versions_global(&a, 2));
    pl_versions_free(&a);
}
END_TEST

/* Llama 3 8B: 8,030,261,248 parameters (its published checkpoint). */
START_TEST(model_counts)
{
    struct pl_model llama = {.layers = 32,
                             .hidden = 4096,
                             .heads = 32,
                             .kv_heads = 8,
                             .head_dim = 128,
                             .ffn = 14336,
                             .vocab = 128256,
                             .rope_theta = 500000,
                             .norm_eps = 1e-5};
    ck_assert_int_eq(pl_model_check(&llama), PL_OK);
    ck_assert_uint_eq(pl_model_params(&llama), 8030261248u);
    double n = 8030261248.0 - 4096.0 * 128256;
    ck_assert_double_eq(pl_model_flops(&llama, 8192), 6 * n + 12.0 * 32 * 4096 * 8192);
    llama.tied = true;
    ck_assert_uint_eq(pl_model_params(&llama), 8030261248u - 4096u * 128256u);
    ck_assert_double_eq(pl_model_flops(&llama, 0), 6 * n);
    int first[8];
    llama.layers = 11;
    ck_assert_int_eq(pl_model_split(&llama, 4, first), PL_OK);
    int want[] = {0, 3, 6, 9, 11};
    ck_assert_mem_eq(first, want, sizeof want);
    ck_assert_int_eq(pl_model_split(&llama, 12, first), PL_ECONFIG);
    ck_assert_int_eq(pl_model_split(&llama, 0, first), PL_ECONFIG);
    llama.kv_heads = 5;
    ck_assert_int_eq(pl_model_check(&llama), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.kv_heads"));
    llama.kv_heads = 8;
    llama.head_dim = 127;
    ck_assert_int_eq(pl_model_check(&llama), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.head_dim"));
    struct pl_model huge = {.layers = 10000,
                            .hidden = 1048576,
                            .heads = 65536,
                            .kv_heads = 65536,
                            .head_dim = 65536,
                            .ffn = 1,
                            .vocab = 2,
                            .rope_theta = 1};
    ck_assert_int_eq(pl_model_check(&huge), PL_ECONFIG);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, closed_stage, 0, n_types());
    tcase_add_test(t, pipedream_oracle);
    tcase_add_test(t, twobw_oracle);
    tcase_add_loop_test(t, update_times, 0, n_types());
    tcase_add_test(t, constant_and_append);
    tcase_add_test(t, model_counts);
}

int main(void)
{
    return run_tests("sim delay", fill);
}
