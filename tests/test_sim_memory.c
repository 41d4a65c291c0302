/* Memory over time against closed forms and a naive recount. */
#include <string.h>

#include "base/mem.h"
#include "sim/memory.h"
#include "tests/sim_case.h"

static const struct pl_chunk_bytes sample = {1000, 20, 300, 4, 70000, 50000, 0};

static struct pl_memory memory_of(const struct pl_simulation *sim,
                                  const struct pl_chunk_bytes *one)
{
    int C = sim->schedule.layout.C;
    struct pl_chunk_bytes *bytes = PL_NEW(C, struct pl_chunk_bytes);
    struct pl_memory memory;
    for (int c = 0; c < C; c++) bytes[c] = *one;
    ck_assert_msg(pl_memory_compute(&sim->schedule, &sim->timeline, &sim->versions,
                                    bytes, &memory) == PL_OK,
                  "%s", pl_error_text());
    free(bytes);
    return memory;
}

static void assert_parts(const struct pl_device_memory *d, uint64_t versions,
                         uint64_t activations, const char *what)
{
    uint64_t sum = 0;
    for (int k = 0; k < PL_N_MEMORY; k++) sum += d->part[k];
    ck_assert_uint_eq(sum, d->peak);
    ck_assert_uint_eq(d->part[PL_MEMORY_WEIGHTS], 1000);
    ck_assert_uint_eq(d->part[PL_MEMORY_GRADIENTS], 20);
    ck_assert_uint_eq(d->part[PL_MEMORY_OPTIMIZER], 300);
    ck_assert_uint_eq(d->part[PL_MEMORY_CORRECTOR], 4);
    ck_assert_msg(d->part[PL_MEMORY_VERSIONS] == 1000 * versions &&
                      d->part[PL_MEMORY_ACTIVATIONS] == 70000 * activations,
                  "%s: %llu bytes of versions, %llu of activations, expected %llu and "
                  "%llu times",
                  what, (unsigned long long)d->part[PL_MEMORY_VERSIONS],
                  (unsigned long long)d->part[PL_MEMORY_ACTIVATIONS],
                  (unsigned long long)versions, (unsigned long long)activations);
}

/* 1F1B holds min(m, P-s) microbatches and one version; 2BW P-s and two versions;
 * PipeDream at one microbatch an update P-s and P-s versions. */
START_TEST(closed)
{
    for (int P = 1; P <= 8; P++)
        for (int m = P; m <= P + 3; m++) {
            struct pl_cost cost = uniform(P, 1000, 2000, 50, 10);
            struct pl_simulation flush = simulate("1f1b", P, m, 2, &cost, true);
            struct pl_simulation twobw = simulate("2bw", P, m, 9, &cost, true);
            struct pl_simulation dream =
                simulate("pipedream", P, 1, 4 * P, &cost, false);
            struct pl_memory a = memory_of(&flush, &sample);
            struct pl_memory b = memory_of(&twobw, &sample);
            struct pl_memory c = memory_of(&dream, &sample);
            for (int s = 0; s < P; s++) {
                uint64_t ahead = (uint64_t)(P - s);
                assert_parts(&a.device[s], 0, ahead, "1f1b");
                assert_parts(&b.device[s], 1, ahead, "2bw");
                assert_parts(&c.device[s], ahead - 1, ahead, "pipedream");
            }
            pl_memory_free(&a);
            pl_memory_free(&b);
            pl_memory_free(&c);
            pl_simulation_free(&flush);
            pl_simulation_free(&twobw);
            pl_simulation_free(&dream);
            pl_cost_free(&cost);
        }
}
END_TEST

/* Bytes of activations on a device just after time t, counted op by op. */
enum { WORKING = 900 };

static uint64_t recount(const struct pl_timeline *t, int device, pl_tick when)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < t->n_ops; i++) {
        if (t->device[i] != device) continue;
        if (t->kind[i] == PL_OP_F && t->start[i] <= when) sum += sample.activation;
        if (t->end[i] > when) {
            bool runs = t->kind[i] == PL_OP_B || t->kind[i] == PL_OP_BW;
            if (runs && t->start[i] <= when) sum += WORKING;
            continue;
        }
        if (t->kind[i] == PL_OP_B) sum -= sample.activation - sample.kept;
        if (t->kind[i] == PL_OP_W) sum -= sample.kept;
        if (t->kind[i] == PL_OP_BW) sum -= sample.activation;
    }
    return sum;
}

/* Every schedule: the series is the recount at each change, never below the static
 * part, back to it at the end; the peak is its maximum. */
START_TEST(series)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    for (int P = 2; P <= 4; P++) {
        struct pl_shape shape;
        struct pl_layout layout;
        if (!shape_of(type, P, 2 * P, 3, &shape)) continue;
        pl_layout_new(type, &shape, &layout);
        struct pl_cost cost = random_layout_costs(&layout, (uint64_t)P, 40);
        for (int c = 0; c < layout.C; c++) { /* no op of zero length: see memory.h */
            cost.forward[c]++;
            cost.backward[c]++;
            cost.weight[c]++;
        }
        pl_cost_refresh(&cost);
        struct pl_simulation sim = simulate_shape(type, &shape, &cost, false);
        struct pl_chunk_bytes only = {
            .activation = sample.activation, .kept = sample.kept, .working = WORKING};
        struct pl_memory x = memory_of(&sim, &only);
        pl_tick *now = PL_NEW(P, pl_tick);
        uint64_t *most = PL_NEW(P, uint64_t), *last = PL_NEW(P, uint64_t);
        for (int64_t i = 0; i < x.n; i++) {
            int d = x.on[i];
            ck_assert_int_ge(x.time[i], now[d]);
            now[d] = x.time[i];
            last[d] = x.bytes[i];
            if (last[d] > most[d]) most[d] = last[d];
            ck_assert_uint_eq(x.bytes[i], recount(&sim.timeline, d, x.time[i]));
        }
        for (int d = 0; d < P; d++) {
            ck_assert_uint_eq(last[d], 0);
            ck_assert_uint_eq(most[d], x.device[d].peak);
            ck_assert_uint_eq(recount(&sim.timeline, d, x.device[d].when), most[d]);
        }
        free(now);
        free(most);
        free(last);
        pl_memory_free(&x);
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
}
END_TEST

START_TEST(limits)
{
    struct pl_cost cost = uniform(3, 1000, 2000, 0, 0);
    struct pl_simulation sim = simulate("1f1b", 3, 4, 1, &cost, true);
    struct pl_memory x = memory_of(&sim, &sample), none = {0};
    ck_assert_int_eq(pl_memory_fullest(&x), 0);
    x.device[2].peak = x.device[0].peak;
    ck_assert_int_eq(pl_memory_fullest(&x), 0);
    x.device[2].peak++;
    ck_assert_int_eq(pl_memory_fullest(&x), 2);
    pl_memory_free(&x);
    struct pl_chunk_bytes huge[3] = {
        {.weight = UINT64_MAX / 4, .optimizer = UINT64_MAX / 4}};
    int rc =
        pl_memory_compute(&sim.schedule, &sim.timeline, &sim.versions, huge, &none);
    ck_assert_int_eq(rc, PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "2^63"));
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, closed);
    tcase_add_loop_test(t, series, 0, n_types());
    tcase_add_test(t, limits);
}

int main(void)
{
    return run_tests("sim memory", fill);
}
