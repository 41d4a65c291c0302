/* Link semantics: the oracle rows and the closed form of simulators.md 3, all schedules
 * under all semantics. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim_case.h"

static pl_tick makespan(struct pl_cost *cost, enum pl_link_semantics semantics, int P,
                        int m)
{
    cost->semantics = semantics;
    struct pl_simulation sim = simulate("1f1b", P, m, 1, cost, false);
    pl_tick end = end_of(&sim);
    pl_simulation_free(&sim);
    return end;
}

/* 1F1B, F = 10, B = 20, c = 1, one link slower by 15 or none (-1). */
static const struct oracle {
    int P, m, slow, end[3];
} oracles[] = {
    {2, 4, -1, {154, 154, 155}},      {2, 4, 0, {214, 214, 230}},
    {4, 8, -1, {346, 346, 349}},      {4, 8, 0, {436, 436, 465}},
    {4, 8, 2, {464, 464, 484}},       {8, 24, -1, {984, 984, 989}},
    {8, 24, 0, {1244, 1244, 1305}},   {8, 24, 6, {1328, 1328, 1364}},
    {16, 64, -1, {2518, 2518, 2525}}, {16, 64, 0, {3228, 3228, 3361}},
    {16, 64, 14, {3424, 3424, 3500}},
};
enum { N_ORACLES = sizeof oracles / sizeof *oracles };

START_TEST(oracle_rows)
{
    const struct oracle *o = &oracles[_i];
    struct pl_cost cost = uniform(o->P, 10 * US, 20 * US, 0, US);
    if (o->slow >= 0) {
        cost.next[o->slow] += 15 * US;
        cost.prev[o->slow + 1] += 15 * US;
    }
    for (int k = PL_LATENCY; k <= PL_RENDEZVOUS; k++)
        ck_assert_msg(makespan(&cost, (enum pl_link_semantics)k, o->P, o->m) ==
                          (pl_tick)o->end[k] * US,
                      "P=%d m=%d link %d, %s", o->P, o->m, o->slow,
                      pl_semantics_names[k]);
    pl_cost_free(&cost);
}
END_TEST

/* (m + p - 1)(F + B) + (2m + 2p - 5)c, c small; p = 2: (m + 1)c. Several updates that
 * all wait for the global norm take as many times that. */
START_TEST(blocking_closed_form)
{
    for (int p = 2; p <= 16; p++)
        for (int m = p; m <= 40; m++) {
            struct pl_cost cost = uniform(p, 10 * US, 20 * US, 0, US / 100);
            pl_tick c = (p == 2 ? m + 1 : 2 * m + 2 * p - 5) * (US / 100);
            pl_tick want = (m + p - 1) * 30 * US + c;
            ck_assert_int_eq(makespan(&cost, PL_RENDEZVOUS, p, m), want);
            if (m == p) {
                struct pl_simulation three = simulate("1f1b", p, m, 3, &cost, true);
                ck_assert_int_eq(end_of(&three), 3 * want);
                pl_simulation_free(&three);
            }
            pl_cost_free(&cost);
        }
}
END_TEST

/* Random costs, links, senders' parts, variation. */
static struct pl_cost random_links(const struct pl_layout *layout, uint64_t seed)
{
    struct pl_cost cost = random_layout_costs(layout, seed, seed % 3 ? 50 : 3);
    for (int d = 0; d < cost.devices && seed % 4 < 2; d++) {
        cost.send_next[d] =
            (pl_tick)pl_rng_below(seed, PL_RNG_TEST, 80, (uint32_t)d, 9);
        cost.send_prev[d] =
            (pl_tick)pl_rng_below(seed, PL_RNG_TEST, 81, (uint32_t)d, 9);
    }
    if (seed % 2) {
        cost.jitter = PL_NEW(1, struct pl_jitter);
        cost.jitter->seed = seed;
        for (int k = 0; k < PL_N_JITTER; k++)
            cost.jitter->time[k] =
                (struct pl_random_time){.kind = PL_LOGNORMAL, .cv = 0.3};
        cost.slow = PL_NEW(cost.devices, double);
        for (int d = 0; d < cost.devices; d++) cost.slow[d] = 1 + (d == 1);
        cost.jitter->outage = PL_NEW(1, struct pl_outage);
        cost.jitter->outage[0] = (struct pl_outage){cost.devices / 2, 40, 100};
        cost.jitter->n_outages = 1;
    }
    return cost;
}

/* The checker accepts what the engine makes (inside pl_simulate). Schedules whose
 * blocking exchange cannot go on say so. */
START_TEST(all_schedules)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return; /* test_sim_custom.c */
    int stuck = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct pl_shape shape;
        struct pl_layout layout = random_shape(type, seed + 2000, &shape);
        struct pl_cost cost = random_links(&layout, seed);
        bool barrier = (seed & 4) && type->global_version;
        for (int k = 0; k < PL_CONTENTION; k++) {
            struct pl_simulation sim;
            cost.semantics = (enum pl_link_semantics)k;
            int rc = pl_simulate(type, &shape, &cost, barrier, &sim);
            ck_assert_msg(!rc || (rc == PL_EDEADLOCK && k == PL_RENDEZVOUS),
                          "%s P=%d m=%d v=%d seed %d %s: %s", type->name, shape.P,
                          shape.m, shape.v, (int)seed, pl_semantics_names[k],
                          pl_error_text());
            if (rc) {
                ck_assert_ptr_nonnull(strstr(pl_error_text(), "waits forever to"));
                if (!stuck++) printf("# %s\n", pl_error_text());
            } else {
                pl_simulation_free(&sim);
            }
        }
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
    if (stuck) printf("# %s: %d of 40 shapes cannot execute\n", type->name, stuck);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, all_schedules, 0, n_types());
    tcase_add_loop_test(t, oracle_rows, 0, N_ORACLES);
    tcase_add_test(t, blocking_closed_form);
}

int main(void)
{
    return run_tests("sim links", fill);
}
