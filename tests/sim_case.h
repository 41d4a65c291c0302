/* One simulated case, shared by the tests of sim/. */
#ifndef TESTS_SIM_CASE_H
#define TESTS_SIM_CASE_H

#include <check.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/rng.h"
#include "sim/simulate.h"
#include "tests/runner.h"

enum { US = 1000000 }; /* ticks in a microsecond */

static inline int n_types(void)
{
    int n = 0;
    while (pl_schedule_types[n]) n++;
    return n;
}

/* One value for all of each cost, for a device. */
static inline struct pl_cost even_costs(const struct pl_layout *layout, pl_tick f,
                                        pl_tick b, pl_tick w, pl_tick u, pl_tick c)
{
    struct pl_cost cost;
    struct pl_cost_spec spec = {.forward = {&f, 1},
                                .backward = {&b, 1},
                                .weight = {&w, 1},
                                .update = {&u, 1},
                                .link = {&c, 1}};
    ck_assert_int_eq(pl_cost_new(layout, &spec, &cost), PL_OK);
    return cost;
}

/* Uniform costs in ticks of one chunk a device; bw is the fused backward. */
static inline struct pl_cost uniform(int P, pl_tick f, pl_tick bw, pl_tick u, pl_tick c)
{
    struct pl_layout plain = {P, P, 1, NULL};
    return even_costs(&plain, f, bw, 0, u, c);
}

/* Every cost of every chunk random in 0..most-1, links too, equal both ways. */
static inline struct pl_cost random_layout_costs(const struct pl_layout *layout,
                                                 uint64_t seed, uint64_t most)
{
    struct pl_cost cost = even_costs(layout, 0, 0, 0, 0, 0);
    pl_tick *columns[] = {cost.forward, cost.backward, cost.weight, cost.update,
                          cost.next};
    for (int k = 0; k < 5; k++)
        for (int s = 0; s < (k < 4 ? cost.chunks : cost.devices); s++)
            columns[k][s] = (pl_tick)pl_rng_below(seed, PL_RNG_TEST, (uint64_t)k,
                                                  (uint32_t)s, most);
    for (int d = 0; d < cost.devices; d++)
        cost.prev[(d + 1) % cost.devices] = cost.next[d];
    pl_cost_refresh(&cost);
    return cost;
}

static inline struct pl_cost random_costs(int P, uint64_t seed, uint64_t most)
{
    struct pl_layout plain = {P, P, 1, NULL};
    return random_layout_costs(&plain, seed, most);
}

/* The type's own shape for P and m; false when it refuses. */
static inline bool shape_of(const struct pl_schedule_type *type, int P, int m,
                            int64_t updates, struct pl_shape *shape)
{
    *shape = (struct pl_shape){.P = P, .m = m, .updates = updates};
    return pl_shape_resolve(type, shape) == PL_OK;
}

/* The same for P and m, or the first that the type takes of (4, 8) and (4, 1). */
static inline void any_shape(const struct pl_schedule_type *type, int P, int m,
                             int64_t updates, struct pl_shape *shape)
{
    if (!shape_of(type, P, m, updates, shape) && !shape_of(type, 4, 8, updates, shape))
        ck_assert_msg(shape_of(type, 4, 1, updates, shape), "%s", pl_error_text());
}

/* A random shape of the type: P, m, v (where it takes any) and layout from the seed. */
static inline struct pl_layout random_shape(const struct pl_schedule_type *type,
                                            uint64_t seed, struct pl_shape *shape)
{
    struct pl_layout layout;
    for (uint32_t k = 0;; k++) {
        *shape = (struct pl_shape){.updates = 5};
        shape->P = 1 + (int)pl_rng_below(seed, PL_RNG_TEST, 90, k, 9);
        shape->m = 1 + (int)pl_rng_below(seed, PL_RNG_TEST, 91, k, 20);
        if (type->any_v) shape->v = 1 + (int)pl_rng_below(seed, PL_RNG_TEST, 92, k, 4);
        if (pl_shape_resolve(type, shape) == PL_OK) break;
        ck_assert_msg(k < 10000, "%s takes no shape", type->name);
    }
    pl_layout_new(type, shape, &layout);
    return layout;
}

static inline struct pl_simulation simulate_shape(const struct pl_schedule_type *type,
                                                  const struct pl_shape *shape,
                                                  const struct pl_cost *cost,
                                                  bool barrier)
{
    struct pl_simulation sim;
    int rc = pl_simulate(type, shape, cost, barrier, &sim);
    ck_assert_msg(rc == PL_OK, "%s P=%d m=%d v=%d: %s", type->name, shape->P, shape->m,
                  shape->v, pl_error_text());
    return sim;
}

static inline struct pl_simulation simulate(const char *name, int P, int m,
                                            int64_t updates, const struct pl_cost *cost,
                                            bool barrier)
{
    struct pl_shape shape = {.P = P, .m = m, .updates = updates};
    return simulate_shape(pl_schedule_find(name), &shape, cost, barrier);
}

/* End of the run in ticks. */
static inline pl_tick end_of(const struct pl_simulation *sim)
{
    pl_tick end = 0;
    for (int64_t i = 0; i < sim->timeline.n_ops; i++)
        if (sim->timeline.end[i] > end) end = sim->timeline.end[i];
    return end;
}

#endif
