/* Times against closed forms and published tables. All times in the tables are in ms.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim_case.h"

static pl_tick ms(double value)
{
    return (pl_tick)llround(value * 1e9);
}

/* 1F1B with F = 10, B + W = 20, c = 1 and one link slower by 15: five independent
 * engines agree on these (latency links). */
static const struct {
    int P, m, slow;
    double makespan;
} slow_links[] = {{2, 4, -1, 154},   {2, 4, 0, 214},    {4, 8, -1, 346},
                  {4, 8, 0, 436},    {4, 8, 2, 464},    {8, 24, -1, 984},
                  {8, 24, 0, 1244},  {8, 24, 6, 1328},  {16, 64, -1, 2518},
                  {16, 64, 0, 3228}, {16, 64, 14, 3424}};

START_TEST(latency_rows)
{
    for (size_t i = 0; i < sizeof slow_links / sizeof *slow_links; i++) {
        int P = slow_links[i].P, slow = slow_links[i].slow;
        struct pl_cost cost = uniform(P, ms(10), ms(20), 0, ms(1));
        if (slow >= 0) {
            cost.next[slow] += ms(15);
            cost.prev[slow + 1] += ms(15);
        }
        struct pl_simulation sim = simulate("1f1b", P, slow_links[i].m, 1, &cost, true);
        ck_assert_int_eq(end_of(&sim), ms(slow_links[i].makespan));
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
}
END_TEST

START_TEST(verified_values)
{
    static const struct {
        int P, m;
        double c, makespan;
    } rows[] = {{16, 256, .378, 8523.106},
                {64, 512, .378, 18104.546},
                {16, 256, 0, 8331.082},
                {64, 512, 0, 17676.650}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pl_cost cost =
            uniform(rows[i].P, ms(11.325), ms(19.417), 0, ms(rows[i].c));
        struct pl_simulation sim =
            simulate("1f1b", rows[i].P, rows[i].m, 1, &cost, false);
        ck_assert_int_eq(end_of(&sim), ms(rows[i].makespan));
        ck_assert_double_eq(sim.metrics.makespan_s, pl_seconds(ms(rows[i].makespan)));
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
}
END_TEST

/* Zero Bubble (arXiv 2401.10241), bubble rates of 1F1B printed to 4 digits. */
START_TEST(zero_bubble_table)
{
    static const struct {
        int P, m;
        double F, B, W, c;
        const char *bubble;
    } rows[] = {{8, 24, 18.522, 18.086, 9.337, .601, "0.2431"},
                {8, 32, 18.513, 18.086, 9.331, .626, "0.1985"},
                {8, 64, 18.546, 18.097, 9.321, .762, "0.1240"},
                {8, 24, 29.718, 29.444, 19.927, .527, "0.2347"},
                {8, 32, 29.802, 29.428, 19.530, .577, "0.1898"},
                {8, 64, 29.935, 29.621, 19.388, .535, "0.1091"},
                {16, 48, 11.347, 11.248, 8.132, .377, "0.2552"},
                {16, 64, 11.307, 11.254, 8.101, .379, "0.2082"},
                {16, 128, 11.325, 11.308, 8.109, .378, "0.1251"},
                {32, 96, 10.419, 10.207, 7.715, .408, "0.2646"},
                {32, 128, 10.408, 10.204, 7.703, .408, "0.2168"},
                {32, 256, 10.402, 10.248, 7.698, .460, "0.1352"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pl_layout plain = {rows[i].P, rows[i].P, 1, NULL};
        struct pl_cost cost = even_costs(&plain, ms(rows[i].F), ms(rows[i].B),
                                         ms(rows[i].W), 0, ms(rows[i].c));
        struct pl_simulation sim =
            simulate("1f1b", rows[i].P, rows[i].m, 1, &cost, true);
        char text[32];
        snprintf(text, sizeof text, "%.4f", sim.metrics.bubble);
        ck_assert_str_eq(text, rows[i].bubble);
        ck_assert_double_eq_tol(sim.metrics.bubble, sim.metrics.bubble_steady, 1e-15);
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
}
END_TEST

/* Relative error of a sum of a few doubles, each rounded once. */
static void assert_close(double got, double want, const char *what)
{
    ck_assert_msg(fabs(got - want) <= 16 * 2.3e-16 * fabs(want),
                  "%s: %.17g, closed %.17g", what, got, want);
}

static void compare_closed(const struct pl_schedule_type *type,
                           const struct pl_shape *shape, const struct pl_cost *cost,
                           int *compared)
{
    struct pl_closed closed = {NAN, NAN, NAN, NAN};
    type->closed(shape, cost, &closed);
    struct pl_simulation sim = simulate_shape(type, shape, cost, false);
    char what[160];
    snprintf(what, sizeof what,
             "%s P=%d m=%d v=%d updates=%d F=%lld B=%lld W=%lld U=%lld c=%lld",
             type->name, shape->P, shape->m, shape->v, (int)shape->updates,
             (long long)cost->forward[0], (long long)cost->backward[0],
             (long long)cost->weight[0], (long long)cost->update[0],
             (long long)(shape->P > 1 ? cost->next[0] : 0));
    if (!isnan(closed.makespan_s)) {
        assert_close(sim.metrics.makespan_s, closed.makespan_s, what);
        ck_assert_double_eq_tol(sim.metrics.bubble_over_ideal, closed.bubble_over_ideal,
                                1e-12 * (1 + closed.bubble_over_ideal));
        ++*compared;
    }
    if (!isnan(closed.span_s)) {
        double span = sim.metrics.ideal_s / (1 - sim.metrics.bubble_parallelogram);
        assert_close(span, closed.span_s, what);
        ++*compared;
    }
    if (!isnan(closed.step_s) && !isnan(sim.metrics.step_s)) {
        assert_close(sim.metrics.step_s, closed.step_s, what);
        ++*compared;
    }
    pl_simulation_free(&sim);
}

/* Every schedule's closed makespan and step, over shapes and random uniform costs;
 * those of a device are multiples of the number of chunks, so that they divide exactly.
 */
START_TEST(closed_forms)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    int compared = 0;
    if (!type->closed) return;
    for (int P = 1; P <= 9; P++)
        for (int m = 1; m <= 27; m += m < 10 ? 1 : P) {
            struct pl_shape shape;
            int64_t updates = type->async ? pl_schedule_default_updates(type, P, m) : 1;
            if (!shape_of(type, P, m, updates, &shape)) continue;
            struct pl_layout layout;
            pl_layout_new(type, &shape, &layout);
            for (uint32_t k = 0; k < 9; k++) {
                uint64_t key = (uint64_t)(P * 100 + m);
                pl_tick x[5];
                for (uint64_t j = 0; j < 5; j++)
                    x[j] =
                        shape.v * (pl_tick)pl_rng_below(j, PL_RNG_TEST, key, k, 1000);
                pl_tick u = k & 1 ? x[2] : 0, c = k & 2 ? x[3] / 10 : 0;
                pl_tick w = k & 4 ? x[4] : 0;
                if (k == 8) w = x[1] = x[0]; /* many forms are of F = B = W only */
                if (k == 8) w += shape.v;
                struct pl_cost cost =
                    even_costs(&layout, x[0] + shape.v, x[1] + shape.v, w, u, c);
                if (!type->async) shape.updates = 1 + k % 8 % 3;
                compare_closed(type, &shape, &cost, &compared);
                pl_cost_free(&cost);
            }
            pl_layout_free(&layout);
        }
    ck_assert_int_gt(compared, 40);
}
END_TEST

/* A global gradient norm costs 2bw nothing and the flush something; it is one point in
 * time for all stages. */
START_TEST(barrier)
{
    for (int P = 2; P <= 8; P++)
        for (int m = P; m <= 2 * P; m++) {
            struct pl_cost cost = uniform(P, 1000, 2000, 0, 0);
            struct pl_simulation free_run = simulate("2bw", P, m, 10, &cost, false);
            struct pl_simulation waits = simulate("2bw", P, m, 10, &cost, true);
            ck_assert_int_eq(end_of(&free_run), end_of(&waits));
            const struct pl_timeline *t = &waits.timeline;
            for (int64_t g = 0; g < 10; g++) {
                pl_tick last = 0, first = INT64_MAX;
                for (int64_t i = 0; i < t->n_ops; i++) {
                    if (t->kind[i] == PL_OP_BW && t->micro[i] / m == g &&
                        t->end[i] > last)
                        last = t->end[i];
                    if (t->kind[i] == PL_OP_U && t->micro[i] == g &&
                        t->start[i] < first)
                        first = t->start[i];
                }
                ck_assert_int_ge(first, last);
            }
            pl_simulation_free(&free_run);
            pl_simulation_free(&waits);
            pl_cost_free(&cost);
        }
    struct pl_cost cost = uniform(4, 1000, 2000, 0, 0);
    cost.update[3] = 100000; /* hidden in the drain of stage 3 unless it must wait */
    struct pl_simulation own = simulate("1f1b", 4, 8, 1, &cost, false);
    struct pl_simulation all = simulate("1f1b", 4, 8, 1, &cost, true);
    ck_assert_int_eq(end_of(&all) - end_of(&own), 3 * 2000);
    pl_simulation_free(&own);
    pl_simulation_free(&all);
    pl_cost_free(&cost);
}
END_TEST

/* A trimmed run is the full run up to the end of the window's last update. */
START_TEST(trimmed)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return; /* test_sim_custom.c */
    struct pl_shape shape;
    struct pl_layout layout;
    any_shape(type, 4, 5, 9, &shape);
    pl_layout_new(type, &shape, &layout);
    struct pl_cost cost = random_layout_costs(&layout, 7, 900);
    struct pl_simulation full =
        simulate_shape(type, &shape, &cost, type->global_version);
    struct pl_simulation cut =
        simulate_shape(type, &shape, &cost, type->global_version);
    pl_simulation_trim(&cut, 3);
    ck_assert(cut.timeline.n_ops < full.timeline.n_ops);
    ck_assert(cut.timeline.n_messages < full.timeline.n_messages);
    int seen = 0;
    pl_tick until = 0;
    for (int64_t i = 0; i < cut.timeline.n_ops; i++) {
        ck_assert_int_eq(cut.timeline.start[i], full.timeline.start[i]);
        ck_assert_int_eq(cut.timeline.micro[i], full.timeline.micro[i]);
        if (cut.timeline.kind[i] != PL_OP_U || cut.timeline.micro[i] != 2) continue;
        seen++;
        if (cut.timeline.end[i] > until) until = cut.timeline.end[i];
    }
    ck_assert_int_eq(seen, layout.C * layout.R);
    ck_assert(full.timeline.start[cut.timeline.n_ops] >= until);
    ck_assert_int_eq(cut.recorded, 3);
    ck_assert_int_eq(cut.versions.n_micro, full.versions.n_micro);
    pl_simulation_free(&full);
    pl_simulation_free(&cut);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
}
END_TEST

/* Bubbles by hand: P = 2, m = 2, F = BW = 1: T = 6, work 4, each stage spans 6 and 4.
 */
START_TEST(bubbles)
{
    struct pl_cost cost = uniform(2, ms(1), ms(1), 0, 0);
    struct pl_simulation sim = simulate("1f1b", 2, 2, 1, &cost, true);
    ck_assert_double_eq(sim.metrics.bubble, 1.0 / 3);
    ck_assert_double_eq(sim.metrics.bubble_over_ideal, 0.5);
    ck_assert_double_eq(sim.metrics.bubble_parallelogram, 1.0 / 3);
    ck_assert_double_eq(sim.metrics.step_s, 6e-3);
    ck_assert_int_eq(sim.metrics.steady_from, 0);
    ck_assert_int_eq(sim.metrics.steady_to, 1);
    pl_simulation_free(&sim);
    sim = simulate("2bw", 2, 2, 10, &cost, true);
    ck_assert_double_eq_tol(sim.metrics.bubble_steady, 0, 1e-15);
    ck_assert_int_eq(sim.metrics.steady_from, 1);
    ck_assert_int_eq(sim.metrics.steady_to, 9);
    pl_simulation_free(&sim);
    /* the busiest stage first: a drain inside the window would give a negative bubble
     */
    cost.forward[0] = ms(3);
    sim = simulate("pipedream", 2, 1, 12, &cost, false);
    ck_assert_double_eq_tol(sim.metrics.bubble_steady, 0, 1e-15);
    pl_simulation_free(&sim);
    /* too short for a steady state: no number instead of a wrong one */
    sim = simulate("pipedream", 2, 1, 3, &cost, false);
    ck_assert(isnan(sim.metrics.step_s) && isnan(sim.metrics.bubble_steady));
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, latency_rows);
    tcase_add_test(t, verified_values);
    tcase_add_test(t, zero_bubble_table);
    tcase_add_loop_test(t, closed_forms, 0, n_types());
    tcase_add_test(t, barrier);
    tcase_add_loop_test(t, trimmed, 0, n_types());
    tcase_add_test(t, bubbles);
}

int main(void)
{
    return run_tests("sim time", fill);
}
