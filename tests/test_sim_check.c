/* Checkers fed with wrong objects, guards fed with bad input: each must complain by
 * name. */
#include <string.h>

#include "sim/schedules/emit.h"
#include "tests/sim_case.h"

static void assert_says(int rc, int code, const char *text)
{
    ck_assert_msg(rc == code && strstr(pl_error_text(), text),
                  "code %d, message '%s'; expected %d, '%s'", rc, pl_error_text(), code,
                  text);
}

/* Row of an op of the timeline. */
static int64_t row(const struct pl_timeline *t, int kind, int stage, int64_t micro)
{
    for (int64_t i = 0; i < t->n_ops; i++)
        if (t->kind[i] == kind && t->device[i] == stage && t->micro[i] == micro)
            return i;
    ck_abort_msg("no such op");
    return -1;
}

static void shift(struct pl_timeline *t, int64_t i, pl_tick by)
{
    t->start[i] += by;
    t->end[i] += by;
}

static void missing_op(struct pl_timeline *t)
{
    t->n_ops--;
}
static void twice(struct pl_timeline *t)
{
    t->micro[row(t, PL_OP_F, 0, 1)] = 0;
}
static void no_such(struct pl_timeline *t)
{
    t->micro[row(t, PL_OP_U, 1, 2)] = 3;
}
static void wrong_device(struct pl_timeline *t)
{
    t->chunk[row(t, PL_OP_F, 2, 0)] = 1;
}
static void too_short(struct pl_timeline *t)
{
    t->end[row(t, PL_OP_BW, 1, 2)]--;
}
static void unsorted(struct pl_timeline *t)
{
    shift(t, 0, 1500);
}
static void bad_kind(struct pl_timeline *t)
{
    t->kind[0] = PL_N_OP;
}

static void exchange(struct pl_timeline *t, int64_t a, int64_t b)
{
    int64_t micro = t->micro[a];
    t->micro[a] = t->micro[b];
    t->micro[b] = micro;
}
static void reordered(struct pl_timeline *t)
{
    exchange(t, row(t, PL_OP_F, 0, 0), row(t, PL_OP_F, 0, 1));
}
static void updates_swapped(struct pl_timeline *t)
{
    exchange(t, row(t, PL_OP_U, 0, 0), row(t, PL_OP_U, 0, 1));
}
/* Lets an op start at another time, rows kept in order of start, before equal ones. */
static void swap_rows(struct pl_timeline *t, int64_t a, int64_t b)
{
    struct pl_op x = {t->micro[a], t->device[a], t->kind[a], 0};
    pl_tick start = t->start[a], end = t->end[a];
    t->micro[a] = t->micro[b];
    t->device[a] = t->chunk[a] = t->device[b];
    t->kind[a] = t->kind[b];
    t->start[a] = t->start[b];
    t->end[a] = t->end[b];
    t->micro[b] = x.micro;
    t->device[b] = t->chunk[b] = x.chunk;
    t->kind[b] = (int8_t)x.kind;
    t->start[b] = start;
    t->end[b] = end;
}
static void move(struct pl_timeline *t, int64_t i, pl_tick when)
{
    shift(t, i, when - t->start[i]);
    for (; i > 0 && t->start[i - 1] >= when; i--) swap_rows(t, i, i - 1);
    for (; i + 1 < t->n_ops && t->start[i + 1] < when; i++) swap_rows(t, i, i + 1);
}
/* U takes no time in this run, so that moving it overlaps nothing. */
static void update_early(struct pl_timeline *t)
{
    move(t, row(t, PL_OP_U, 0, 0), t->start[row(t, PL_OP_F, 0, 3)]);
}
static void update_late(struct pl_timeline *t)
{
    move(t, row(t, PL_OP_U, 0, 0), t->end[row(t, PL_OP_F, 0, 4)]);
}
static void overlap(struct pl_timeline *t)
{
    int64_t i = row(t, PL_OP_BW, 0, 1);
    move(t, i, t->start[i] - 1);
}
static void lost_message(struct pl_timeline *t)
{
    t->n_messages--;
}
static void doubled_message(struct pl_timeline *t)
{
    t->msg_micro[1] = t->msg_micro[0];
}
static void sent_early(struct pl_timeline *t)
{
    t->sent[0]--;
    t->arrived[0]--;
}
static void arrived_late(struct pl_timeline *t)
{
    t->sent[0] += 100000;
    t->arrived[0] += 100000;
}
static void fast_link(struct pl_timeline *t)
{
    t->arrived[0]--;
}
static void wrong_route(struct pl_timeline *t)
{
    t->dst[0] = 2;
}
static void odd_message(struct pl_timeline *t)
{
    t->msg_kind[0] = PL_OP_U;
}

static const struct {
    void (*damage)(struct pl_timeline *);
    const char *complaint;
} damages[] = {
    {missing_op, "the schedule has"},
    {twice, "executed twice"},
    {no_such, "out of range"},
    {wrong_device, "wrong device"},
    {too_short, "duration differs"},
    {unsorted, "out of order of start"},
    {bad_kind, "no such op kind"},
    {reordered, "issue order"},
    {overlap, "overlap"},
    {updates_swapped, "before the update before it"},
    {update_early, "before a gradient of its group"},
    {update_late, "not yet written"},
    {lost_message, "messages, expected"},
    {doubled_message, "sent twice"},
    {sent_early, "sent before its op ended"},
    {arrived_late, "used before it arrived"},
    {fast_link, "flight time"},
    {wrong_route, "not between neighbouring"},
    {odd_message, "no such message"},
};
enum { N_DAMAGES = sizeof damages / sizeof *damages };

START_TEST(damaged_timeline)
{
    struct pl_cost cost = uniform(3, 1000, 2000, 0, 10);
    struct pl_simulation sim = simulate("1f1b", 3, 4, 3, &cost, false);
    damages[_i].damage(&sim.timeline);
    assert_says(pl_timeline_check(&sim.timeline, &sim.schedule, &cost), PL_ECHECK,
                damages[_i].complaint);
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

/* Ops of P = 2, m = 2, 1f1b: F0 F1 BW0 BW1 on stage 0, F0 BW0 F1 BW1 on stage 1. */
START_TEST(damaged_schedule)
{
    static const struct {
        int at;
        struct pl_op op;
        const char *complaint;
    } rows[] = {{1, {0, 0, PL_OP_F, 0}, "F 0 issued twice"},
                {1, {9, 0, PL_OP_F, 0}, "out of range"},
                {1, {1, 1, PL_OP_F, 0}, "another stage"},
                {0, {0, 0, PL_OP_BW, 0}, "before its F"},
                {2, {0, 0, PL_OP_W, 0}, "before its B"},
                {3, {1, 0, PL_OP_B, 0}, "W 1 missing"},
                {4, {2, 0, PL_OP_F, 1}, "no BW follows it"},
                {0, {0, 0, PL_OP_U, 0}, "unknown op kind"},
                {0, {0, 0, PL_N_OP, 0}, "unknown op kind"}};
    struct pl_shape shape = {.P = 2, .m = 2, .updates = 2};
    struct pl_schedule sched;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_int_eq(
            pl_schedule_new(pl_schedule_find("1f1b"), &shape, NULL, &sched), PL_OK);
        ck_assert_int_eq(pl_schedule_check(&sched), PL_OK);
        sched.ops[rows[i].at] = rows[i].op;
        assert_says(pl_schedule_check(&sched), PL_ECHECK, rows[i].complaint);
        pl_schedule_free(&sched);
    }
    ck_assert_int_eq(pl_schedule_new(pl_schedule_find("gpipe"), &shape, NULL, &sched),
                     PL_OK);
    sched.first[2]--; /* the last op of the last stage is lost: BW 3 */
    assert_says(pl_schedule_check(&sched), PL_ECHECK, "stage 1: B 3 missing");
    pl_schedule_free(&sched);
}
END_TEST

/* Stage 1 wants microbatch 1's backward before its forward: nothing can go on. */
START_TEST(deadlock)
{
    struct pl_shape shape = {.P = 2, .m = 2, .updates = 1};
    struct pl_schedule sched;
    struct pl_timeline none = {0};
    struct pl_cost cost = uniform(2, 10, 20, 0, 0);
    ck_assert_int_eq(pl_schedule_new(pl_schedule_find("1f1b"), &shape, NULL, &sched),
                     PL_OK);
    struct pl_op *last = &sched.ops[sched.first[1]], keep = last[0];
    last[0] = last[3]; /* BW 1 first */
    last[3] = keep;
    assert_says(pl_engine_run(&sched, &cost, true, &none), PL_EDEADLOCK,
                "stage 0 waits forever to start BW 0");
    ck_assert_ptr_null(none.kind);
    pl_schedule_free(&sched);
    pl_cost_free(&cost);
}
END_TEST

/* Without a flush a forward that insists on the newest version waits for an update that
 * is issued after it: the wait itself, which the shipped schedules never need for long.
 */
START_TEST(waits_for_version)
{
    struct pl_schedule_type type = *pl_schedule_find("pipedream");
    struct pl_shape shape = {.P = 3, .m = 2, .updates = 3};
    struct pl_cost cost = uniform(3, 10, 20, 0, 0);
    struct pl_simulation none;
    type.reads = pl_reads_newest;
    assert_says(pl_simulate(&type, &shape, &cost, false, &none), PL_EDEADLOCK,
                "stage 0 waits forever to start F 2");
    pl_cost_free(&cost);
}
END_TEST

/* A forward that ran before its version is refused by the map as well. */
START_TEST(version_not_written)
{
    struct pl_cost cost = uniform(3, 1000, 2000, 0, 10);
    struct pl_simulation sim = simulate("1f1b", 3, 4, 3, &cost, false);
    struct pl_versions none;
    update_late(&sim.timeline);
    assert_says(pl_versions_from_timeline(&sim.timeline, &sim.schedule, &none),
                PL_ECHECK, "only 0 is written");
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

START_TEST(guards)
{
    const struct pl_schedule_type *type = pl_schedule_find("1f1b");
    static const struct {
        const char *name;
        struct pl_shape shape;
        int code;
        const char *complaint;
    } rows[] = {
        {"1f1b", {.P = 0, .m = 1, .updates = 1}, PL_ECONFIG, "schedule.stages is 0"},
        {"1f1b", {.P = 1, .m = 0, .updates = 1}, PL_ECONFIG, "microbatches is 0"},
        {"1f1b", {.P = 1, .m = 1, .updates = 0}, PL_ECONFIG, "updates is 0"},
        {"1f1b", {.P = 4096, .m = 1048576, .updates = 1}, PL_ECONFIG, "8589938688 ops"},
        {"1f1b", {.P = 2, .m = 2, .updates = 1, .v = 2}, PL_EUNSUP, "1 model chunk "},
        {"2bw", {.P = 8, .m = 7, .updates = 4}, PL_EUNSUP, "expected m >= P"}};
    struct pl_schedule none;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_says(pl_schedule_new(pl_schedule_find(rows[i].name), &rows[i].shape,
                                    NULL, &none),
                    rows[i].code, rows[i].complaint);
    ck_assert_ptr_null(pl_schedule_find("1F1B-typo"));
    for (int i = 0; pl_schedule_types[i]; i++)
        ck_assert_str_eq(pl_schedule_names()[i], pl_schedule_types[i]->name);
    ck_assert_int_eq(pl_schedule_default_updates(type, 16, 1), 1);
    type = pl_schedule_find("pipedream");
    ck_assert_int_eq(pl_schedule_default_updates(type, 4, 1), 16);  /* 2 P + 8 */
    ck_assert_int_eq(pl_schedule_default_updates(type, 16, 1), 48); /* 3 P */
}
END_TEST

START_TEST(costs)
{
    pl_tick list[] = {1, 2, 3}, one = 5, loop[] = {10, 20, 31, 40, 50, 60};
    int device[] = {0, 1, 2, 0, 1, 2};
    struct pl_layout plain = {3, 3, 1, NULL}, twice = {3, 6, 1, device};
    struct pl_times single = {&one, 1}, each = {list, 3};
    struct pl_cost_spec spec = {.forward = each,
                                .backward = single,
                                .weight = single,
                                .update = single,
                                .link = {list, 2}};
    struct pl_cost cost = {0};
    ck_assert_int_eq(pl_cost_new(&plain, &spec, &cost), PL_OK);
    ck_assert_int_eq(cost.forward[2], 3);
    ck_assert_int_eq(cost.backward[2], 5);
    ck_assert_int_eq(cost.both[1], 10);
    ck_assert_int_eq(pl_cost_flight(&cost, 1, 2), 2);
    ck_assert_int_eq(pl_cost_flight(&cost, 2, 1), 2);
    ck_assert_int_eq(pl_cost_flight(&cost, 2, 0), 2); /* the wrap: the slowest */
    pl_tick before = cost.forward[2];
    cost.weight[2] = INT64_MAX / 2;
    assert_says(pl_cost_scale(&cost, 3), PL_ECONFIG, "cost.weight of stage 2");
    ck_assert_int_eq(cost.forward[2], before);
    pl_cost_free(&cost);
    /* two chunks a device: half each, rounded up at .5; or given one by one */
    spec.backward = (struct pl_times){loop, 6};
    spec.link = (struct pl_times){loop, 3};
    ck_assert_int_eq(pl_cost_new(&twice, &spec, &cost), PL_OK);
    ck_assert_int_eq(cost.forward[0], 1); /* 1 / 2 */
    ck_assert_int_eq(cost.forward[4], 1); /* 2 / 2 */
    ck_assert_int_eq(cost.forward[5], 2); /* 3 / 2 */
    ck_assert_int_eq(cost.backward[4], 50);
    ck_assert_int_eq(pl_cost_flight(&cost, 0, 2), 31);
    ck_assert_int_eq(pl_cost_flight(&cost, 2, 0), 31);
    pl_cost_free(&cost);
    spec.backward = single;
    spec.forward = (struct pl_times){loop, 4};
    assert_says(pl_cost_new(&twice, &spec, &cost), PL_ECONFIG,
                "cost.forward has 4 values, expected 1, 3 (one a device) or 6");
    assert_says(pl_cost_new(&plain, &spec, &cost), PL_ECONFIG,
                "cost.forward has 4 values, expected 1 or 3");
    spec.forward = single;
    spec.link = (struct pl_times){loop, 5};
    assert_says(pl_cost_new(&plain, &spec, &cost), PL_ECONFIG,
                "link.time has 5 values, expected 1, 2 (a line) or 3 (a ring)");
    one = -1;
    assert_says(pl_cost_new(&plain, &spec, &cost), PL_ECONFIG,
                "cost.forward is negative");
}
END_TEST

/* int64 picoseconds: ends of ops, sums of costs and arrivals are all checked. */
START_TEST(overflow)
{
    pl_tick half = INT64_MAX / 2, zero = 0, most = INT64_MAX;
    struct pl_shape shape = {.P = 2, .m = 2, .updates = 1};
    struct pl_layout plain = {2, 2, 1, NULL};
    struct pl_simulation none;
    const struct pl_schedule_type *type = pl_schedule_find("gpipe");
    struct pl_cost cost = uniform(2, half, half, 0, 0);
    assert_says(pl_simulate(type, &shape, &cost, true, &none), PL_ECONFIG, "106 days");
    pl_cost_free(&cost);
    cost = uniform(2, 1, 1, 0, most);
    assert_says(pl_simulate(type, &shape, &cost, true, &none), PL_ECONFIG, "106 days");
    pl_cost_free(&cost);
    struct pl_times all = {&most, 1}, nothing = {&zero, 1};
    struct pl_cost_spec spec = {.forward = nothing,
                                .backward = all,
                                .weight = all,
                                .update = nothing,
                                .link = nothing};
    assert_says(pl_cost_new(&plain, &spec, &cost), PL_ECONFIG, "106 days");
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, damaged_timeline, 0, N_DAMAGES);
    tcase_add_test(t, damaged_schedule);
    tcase_add_test(t, deadlock);
    tcase_add_test(t, waits_for_version);
    tcase_add_test(t, version_not_written);
    tcase_add_test(t, guards);
    tcase_add_test(t, costs);
    tcase_add_test(t, overflow);
}

int main(void)
{
    return run_tests("sim check", fill);
}
