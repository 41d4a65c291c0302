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

/* More devices than one word of the engine's set; links that never fill while a
 * transfer is shorter than F and B. */
START_TEST(many_devices)
{
    struct pl_cost cost = uniform(100, 10 * US, 20 * US, 0, US / 100);
    pl_tick ideal = (pl_tick)(128 + 99) * 30 * US;
    ck_assert_int_eq(makespan(&cost, PL_RENDEZVOUS, 100, 128),
                     ideal + (2 * 128 + 2 * 100 - 5) * (US / 100));
    ck_assert_int_eq(makespan(&cost, PL_OCCUPANCY, 100, 128),
                     makespan(&cost, PL_LATENCY, 100, 128));
    pl_cost_free(&cost);
}
END_TEST

START_TEST(occupancy_of_short_transfers)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        int P = 2 + (int)pl_rng_below(seed, PL_RNG_TEST, 82, 0, 9);
        int m = P + (int)pl_rng_below(seed, PL_RNG_TEST, 82, 1, 20);
        pl_tick c = (pl_tick)pl_rng_below(seed, PL_RNG_TEST, 82, 2, 10 * US);
        struct pl_cost cost = uniform(P, 10 * US, 20 * US, 0, c);
        ck_assert_int_eq(makespan(&cost, PL_OCCUPANCY, P, m),
                         makespan(&cost, PL_LATENCY, P, m));
        pl_cost_free(&cost);
    }
}
END_TEST

/* A link that is longer than F: the second message waits for the first. By hand: F at
 * 0..10 and 10..20, c = 25: sent at 10 and 35, not 20. */
START_TEST(occupancy_by_hand)
{
    struct pl_cost cost = uniform(2, 10, 20, 0, 25);
    cost.semantics = PL_OCCUPANCY;
    cost.send_next[0] = 3;
    struct pl_simulation sim = simulate("gpipe", 2, 2, 1, &cost, false);
    static const pl_tick sent[] = {13, 38}, arrived[] = {38, 63};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(sim.timeline.msg_kind[i], PL_OP_F);
        ck_assert_int_eq(sim.timeline.sent[i], sent[i]);
        ck_assert_int_eq(sim.timeline.arrived[i], arrived[i]);
    }
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

/* The checker says what is wrong with an activation of stage 0. */
static int64_t activation(const struct pl_timeline *t, int64_t micro)
{
    int64_t i = 0;
    while (t->msg_kind[i] != PL_OP_F || t->msg_micro[i] != micro) i++;
    return i;
}
static void move(struct pl_timeline *t, int64_t micro, pl_tick by)
{
    t->sent[activation(t, micro)] += by;
    t->arrived[activation(t, micro)] += by;
}
static void early(struct pl_timeline *t)
{
    move(t, 0, -1);
}
static void late(struct pl_timeline *t) /* F 1 is not used at once */
{
    move(t, 1, 1);
}
static void beside(struct pl_timeline *t) /* F 1 leaves while F 0 is on the link */
{
    move(t, 1, -10);
}
static void fast(struct pl_timeline *t)
{
    t->arrived[activation(t, 0)]--;
}
static void slow(struct pl_timeline *t)
{
    t->arrived[activation(t, 1)]++;
}
static void goes_on(struct pl_timeline *t) /* the sender, with F 1 */
{
    int64_t i = 0;
    while (t->device[i] || t->micro[i] != 1 || t->kind[i] != PL_OP_F) i++;
    t->start[i]--;
    t->end[i]--;
}
static void busy(struct pl_timeline *t) /* F 1 goes over while the receiver runs F 0 */
{
    move(t, 1, -5);
}

static const struct {
    enum pl_link_semantics semantics;
    void (*damage)(struct pl_timeline *);
    const char *says;
} damages[] = {
    {PL_LATENCY, early, "before the sender's part"},
    {PL_LATENCY, late, "later than it could be"},
    {PL_LATENCY, slow, "flight time differs"},
    {PL_OCCUPANCY, early, "before the sender's part"},
    {PL_OCCUPANCY, beside, "on a link that another one is on"},
    {PL_OCCUPANCY, late, "later than it could be"},
    {PL_OCCUPANCY, fast, "flight time differs"},
    {PL_RENDEZVOUS, early, "before the sender's part"},
    {PL_RENDEZVOUS, fast, "flight time differs"},
    {PL_RENDEZVOUS, goes_on, "the sender went on"},
    {PL_RENDEZVOUS, busy, "the receiver was busy"},
    {PL_CONTENTION, early, "before the sender's part"},
    {PL_CONTENTION, late, "later than it could be"},
    {PL_CONTENTION, fast, "flight time differs"},
};
enum { N_DAMAGES = sizeof damages / sizeof *damages };

START_TEST(damaged_messages)
{
    struct pl_cost cost = uniform(2, 10, 20, 0, 25);
    cost.send_next[0] = cost.send_prev[1] = 3;
    cost.forward[1] = 40; /* activations wait there */
    cost.semantics = damages[_i].semantics;
    struct pl_simulation sim = simulate("gpipe", 2, 3, 1, &cost, false);
    damages[_i].damage(&sim.timeline);
    int rc = pl_timeline_check(&sim.timeline, &sim.schedule, &cost);
    ck_assert_msg(rc == PL_ECHECK && strstr(pl_error_text(), damages[_i].says),
                  "damage %d: %s", _i, rc ? pl_error_text() : "accepted");
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
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
    tcase_add_test(t, many_devices);
    tcase_add_test(t, occupancy_of_short_transfers);
    tcase_add_test(t, occupancy_by_hand);
    tcase_add_loop_test(t, damaged_messages, 0, N_DAMAGES);
    tcase_add_loop_test(t, oracle_rows, 0, N_ORACLES);
    tcase_add_test(t, blocking_closed_form);
}

int main(void)
{
    return run_tests("sim links", fill);
}
