/* Mixed runs: each segment is its schedule alone, shifted; the whole is their sum. */
#include <string.h>

#include "base/mem.h"
#include "sim/segments.h"
#include "tests/sim_case.h"

/* Rows first .. of the whole against a part that begins at `begin`. */
static void compare_part(const struct pl_simulation *all,
                         const struct pl_simulation *part, int64_t first_op,
                         int64_t first_message, int64_t updates, pl_tick begin)
{
    const struct pl_timeline *a = &all->timeline, *p = &part->timeline;
    int64_t micros = updates * a->shape.m;
    for (int64_t i = 0; i < p->n_ops; i++) {
        int64_t k = first_op + i;
        ck_assert_int_eq(a->kind[k], p->kind[i]);
        ck_assert_int_eq(a->device[k], p->device[i]);
        ck_assert_int_eq(a->chunk[k], p->chunk[i]);
        ck_assert_int_eq(a->start[k], begin + p->start[i]);
        ck_assert_int_eq(a->end[k], begin + p->end[i]);
        ck_assert_int_eq(a->micro[k],
                         p->micro[i] + (p->kind[i] == PL_OP_U ? updates : micros));
    }
    for (int64_t i = 0; i < p->n_messages; i++) {
        ck_assert_int_eq(a->sent[first_message + i], begin + p->sent[i]);
        ck_assert_int_eq(a->msg_micro[first_message + i], micros + p->msg_micro[i]);
    }
    const struct pl_versions *v = &all->versions, *w = &part->versions;
    for (int s = 0; s < v->stages; s++)
        for (int64_t i = 0; i < w->n_micro; i++) {
            ck_assert_int_eq(v->forward[s * v->n_micro + micros + i],
                             updates + w->forward[s * w->n_micro + i]);
            ck_assert_int_eq(v->backward[s * v->n_micro + micros + i],
                             updates + w->backward[s * w->n_micro + i]);
        }
}

static void check_mixed(int n, const char *const *names, const int64_t *updates, int P,
                        int m, uint64_t seed)
{
    const struct pl_schedule_type *types[4];
    struct pl_shape shapes[4];
    struct pl_simulation parts[4], all;
    struct pl_layout layout;
    for (int i = 0; i < n; i++) {
        types[i] = pl_schedule_find(names[i]);
        ck_assert(shape_of(types[i], P, m, updates[i], &shapes[i]));
    }
    pl_layout_new(types[0], &shapes[0], &layout);
    struct pl_cost cost = random_layout_costs(&layout, seed, 40);
    int rc = pl_simulate_segments(n, types, shapes, &cost, false, parts, &all);
    ck_assert_msg(rc == PL_OK, "%s", pl_error_text());
    int64_t op = 0, message = 0, done = 0;
    pl_tick begin = 0;
    double busy = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        struct pl_simulation alone = simulate_shape(types[i], &shapes[i], &cost, false);
        compare_part(&all, &alone, op, message, done, begin);
        for (int s = 0; s < layout.C && i; s++) /* the newest version after a drain */
            ck_assert_int_eq(pl_versions_tau(&all.versions, s, done * (int64_t)m), 0);
        op += alone.timeline.n_ops;
        message += alone.timeline.n_messages;
        done += updates[i];
        begin += end_of(&alone);
        busy += alone.metrics.device[0].busy_s;
        sum += alone.metrics.makespan_s;
        pl_simulation_free(&alone);
        pl_simulation_free(&parts[i]);
    }
    ck_assert_int_eq(op, all.timeline.n_ops);
    ck_assert_int_eq(message, all.timeline.n_messages);
    ck_assert_int_eq(begin, end_of(&all));
    ck_assert_double_eq_tol(all.metrics.makespan_s, sum, 1e-12 * sum);
    ck_assert_double_eq_tol(all.metrics.device[0].busy_s, busy, 1e-12 * busy);
    ck_assert_double_eq(all.metrics.step_s, all.metrics.makespan_s / (double)done);
    ck_assert_int_eq(all.schedule.shape.updates, done);
    for (int64_t u = 1; u < done; u++)
        ck_assert_double_ge(all.versions.done_s[u], all.versions.done_s[u - 1]);
    pl_simulation_free(&all);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
}

START_TEST(shifted)
{
    static const char *const flat[] = {"1f1b", "2bw", "gpipe", "pipedream"};
    static const char *const chunked[] = {"interleaved", "wpipe", "interleaved"};
    static const int64_t updates[] = {2, 7, 1, 5};
    for (int P = 1; P <= 6; P++) {
        for (int n = 1; n <= 4; n++)
            check_mixed(n, flat, updates, P, P + 1, (uint64_t)(P * 10 + n));
        if (P > 1) check_mixed(3, chunked, updates, P, 2 * P, (uint64_t)P);
    }
}
END_TEST

/* What must be equal in all segments; nothing is changed when it is not. */
START_TEST(unequal)
{
    struct pl_cost cost = uniform(4, 1000, 2000, 0, 0);
    struct pl_cost wide = uniform(2, 1000, 2000, 0, 0);
    struct pl_layout half = {4, 8, 1, (int[]){0, 1, 2, 3, 0, 1, 2, 3}};
    struct pl_cost small = even_costs(&half, 1000, 1000, 1000, 0, 0);
    struct pl_simulation a = simulate("1f1b", 4, 4, 2, &cost, false);
    struct pl_simulation others[] = {simulate("1f1b", 2, 4, 2, &wide, false),
                                     simulate("1f1b", 4, 8, 2, &cost, false),
                                     simulate("wpipe", 4, 4, 2, &small, false),
                                     simulate("amdp", 4, 4, 2, &cost, false)};
    static const char *const why[] = {"equal P and m", "equal P and m",
                                      "equally many model chunks", "on each device"};
    struct pl_simulation all = {.recorded = 0};
    ck_assert_int_eq(pl_simulation_append(&all, &a), PL_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pl_simulation_append(&all, &others[i]), PL_ECONFIG);
        ck_assert_msg(strstr(pl_error_text(), why[i]), "%s", pl_error_text());
        ck_assert_int_eq(all.timeline.n_ops, a.timeline.n_ops);
        ck_assert_int_eq(all.schedule.shape.updates, 2);
        pl_simulation_free(&others[i]);
    }
    ck_assert_int_eq(pl_simulation_append(&all, &a), PL_OK);
    ck_assert_int_eq(all.schedule.shape.updates, 4);
    pl_simulation_free(&all);
    pl_simulation_free(&a);
    pl_cost_free(&cost);
    pl_cost_free(&wide);
    pl_cost_free(&small);
}
END_TEST

/* The checker of timelines sees a segment that begins too soon. */
START_TEST(caught)
{
    struct pl_cost cost = uniform(4, 1000, 2000, 0, 0);
    struct pl_simulation a = simulate("1f1b", 4, 4, 2, &cost, false);
    struct pl_simulation all = {.recorded = 0};
    ck_assert_int_eq(pl_simulation_append(&all, &a), PL_OK);
    int64_t n = all.timeline.n_ops;
    ck_assert_int_eq(pl_simulation_append(&all, &a), PL_OK);
    ck_assert_int_eq(pl_timeline_check(&all.timeline, &all.schedule, &cost), PL_OK);
    all.timeline.start[n] -= 1;
    all.timeline.end[n] -= 1;
    ck_assert_int_eq(pl_timeline_check(&all.timeline, &all.schedule, &cost), PL_ECHECK);
    pl_simulation_free(&all);
    pl_simulation_free(&a);
    pl_cost_free(&cost);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, shifted);
    tcase_add_test(t, unequal);
    tcase_add_test(t, caught);
}

int main(void)
{
    return run_tests("sim segments", fill);
}
