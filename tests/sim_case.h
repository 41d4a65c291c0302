/* One simulated case, shared by the tests of sim/. */
#ifndef TESTS_SIM_CASE_H
#define TESTS_SIM_CASE_H

#include <check.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/rng.h"
#include "sim/simulate.h"

enum { US = 1000000 }; /* ticks in a microsecond */

/* Uniform costs in ticks; bw is the fused backward. */
static inline struct pl_cost uniform(int P, pl_tick f, pl_tick bw, pl_tick u, pl_tick c)
{
    struct pl_cost cost;
    pl_tick none = 0;
    ck_assert_int_eq(pl_cost_new(P, &f, 1, &bw, 1, &none, 1, &u, 1, &c, 1, &cost),
                     PL_OK);
    return cost;
}

/* Every cost random in 0..most-1. */
static inline struct pl_cost random_costs(int P, uint64_t seed, uint64_t most)
{
    struct pl_cost cost = uniform(P, 0, 0, 0, 0);
    pl_tick *columns[] = {cost.forward, cost.backward, cost.weight, cost.update,
                          cost.link};
    for (int k = 0; k < 5; k++)
        for (int s = 0; s < P - (k == 4); s++)
            columns[k][s] = (pl_tick)pl_rng_below(seed, PL_RNG_TEST, (uint64_t)k,
                                                  (uint32_t)s, most);
    return cost;
}

static inline struct pl_simulation simulate(const char *name, int P, int m,
                                            int64_t updates, const struct pl_cost *cost,
                                            bool barrier)
{
    struct pl_simulation sim;
    struct pl_shape shape = {P, m, updates};
    int rc = pl_simulate(pl_schedule_find(name), &shape, cost, barrier, &sim);
    ck_assert_msg(rc == PL_OK, "%s P=%d m=%d: %s", name, P, m, pl_error_text());
    return sim;
}

/* End of the run in ticks. */
static inline pl_tick end_of(const struct pl_simulation *sim)
{
    pl_tick end = 0;
    for (int64_t i = 0; i < sim->timeline.n_ops; i++)
        if (sim->timeline.end[i] > end) end = sim->timeline.end[i];
    return end;
}

static inline int run_tests(const char *name, void (*fill)(TCase *))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 120);
    fill(tests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int bad = srunner_ntests_failed(runner);
    srunner_free(runner);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
