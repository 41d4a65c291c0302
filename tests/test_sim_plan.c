/* The automatic schedules keep to their memory and end, whatever the costs. */
#include "tests/sim_case.h"

static double span_ms(const struct pl_simulation *sim)
{
    return 1e3 * sim->metrics.ideal_s / (1 - sim->metrics.bubble_parallelogram);
}

static int64_t peak_of(const struct pl_simulation *sim)
{
    int64_t peak = 0;
    for (int d = 0; d < sim->metrics.devices; d++)
        if (sim->metrics.device[d].peak_activations > peak)
            peak = sim->metrics.device[d].peak_activations;
    return peak;
}

static const char *const automatic[] = {"zb-1p", "zb-2p", "zb-v", "v-half", "v-min"};
enum { AUTOMATIC = sizeof automatic / sizeof *automatic };

static pl_tick draw(uint64_t seed, uint32_t what, uint64_t most)
{
    return (pl_tick)pl_rng_below(seed, PL_RNG_TEST, 300, what, most);
}

/* Costs of everything alike, or each its own; zeros; a few a thousand times longer. */
static struct pl_cost odd_costs(const struct pl_layout *layout, uint64_t seed)
{
    struct pl_cost cost = random_layout_costs(layout, seed, seed % 4 ? 60 : 3);
    for (int c = 0; c < cost.chunks && seed % 3 == 0; c++)
        if (draw(seed, 1000 + (uint32_t)c, 4) == 0) cost.forward[c] *= 1000;
    for (int c = 0; c < cost.chunks && seed % 5 == 0; c++) {
        cost.forward[c] = cost.forward[0];
        cost.backward[c] = cost.backward[0];
        cost.weight[c] = cost.weight[0];
    }
    pl_cost_refresh(&cost);
    return cost;
}

/* In issue order: F takes 1, B gives `released` back, W the rest. */
static void assert_limit(const struct pl_simulation *sim, double limit)
{
    const struct pl_schedule *sched = &sim->schedule;
    double freed = sched->shape.released;
    for (int d = 0; d < sched->shape.P; d++) {
        double held = 0;
        for (int64_t i = sched->first[d]; i < sched->first[d + 1]; i++) {
            int kind = sched->ops[i].kind;
            held += kind == PL_OP_F ? 1 : kind == PL_OP_B ? -freed : freed - 1;
            ck_assert_double_le(held, limit + 1e-6);
        }
    }
}

/* Any costs, any limit: the run completes (the checkers accept), within the limit. */
START_TEST(any_limit)
{
    const char *name = automatic[_i % AUTOMATIC];
    const struct pl_schedule_type *type = pl_schedule_find(name);
    for (uint64_t seed = 0; seed < 80; seed++) {
        struct pl_shape shape = {.P = 1 + (int)draw(seed, 0, 9),
                                 .m = 1 + (int)draw(seed, 1, 20),
                                 .updates = 1 + draw(seed, 2, 3)};
        shape.limit = 1 + (int)draw(seed, 3, 2 * (uint64_t)shape.P);
        if (seed & 1) shape.released = 0.1 * (double)draw(seed, 4, 11);
        struct pl_layout layout;
        ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_OK);
        pl_layout_new(type, &shape, &layout);
        struct pl_cost cost = odd_costs(&layout, seed);
        struct pl_simulation sim = simulate_shape(type, &shape, &cost, false);
        assert_limit(&sim, shape.limit * shape.v);
        if (shape.released == 0) ck_assert_int_le(peak_of(&sim), shape.limit * shape.v);
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
}
END_TEST

/* One update is never longer than that of the hand-made schedule of the same memory;
 * more memory than needed changes nothing for the worse. */
START_TEST(no_worse_than_by_hand)
{
    static const char *const pairs[][2] = {{"zb-1p", "zb-h1"}, {"zb-2p", "zb-h2"}};
    for (int k = 0; k < 2; k++)
        for (uint64_t seed = 0; seed < 100; seed++) {
            int P = 1 + (int)draw(seed, 0, 9), m = 1 + (int)draw(seed, 1, 24);
            struct pl_layout plain = {P, P, 1, NULL};
            struct pl_cost cost = odd_costs(&plain, seed);
            for (int s = 0; s < P; s++) cost.update[s] = 0;
            struct pl_simulation own = simulate(pairs[k][0], P, m, 1, &cost, false);
            struct pl_simulation hand = simulate(pairs[k][1], P, m, 1, &cost, false);
            if (own.metrics.ideal_s > 0)
                ck_assert_double_le(span_ms(&own), span_ms(&hand) * (1 + 1e-12));
            pl_simulation_free(&own);
            pl_simulation_free(&hand);
            pl_cost_free(&cost);
        }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, any_limit, 0, AUTOMATIC);
    tcase_add_test(t, no_worse_than_by_hand);
}

int main(void)
{
    return run_tests("sim plan", fill);
}
