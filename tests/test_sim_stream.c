/* Streams against whole runs: the same ops, rows and metrics, and memory that does not
 * grow with the number of updates. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim/stream.h"
#include "tests/sim_case.h"

static uint64_t draw(uint64_t seed, uint32_t which, uint64_t n)
{
    return pl_rng_below(seed, PL_RNG_TEST, 10, which, n);
}

static struct pl_shape shape_for(const struct pl_schedule_type *type, uint64_t seed)
{
    for (uint32_t k = 0;; k += 4) {
        ck_assert_msg(k < 40000, "%s takes no shape", type->name);
        struct pl_shape shape = {.P = 1 + (int)draw(seed, k, 9),
                                 .m = 1 + (int)draw(seed, k + 1, 12),
                                 .updates = 1 + (int64_t)draw(seed, k + 2, 200)};
        if (!pl_shape_resolve(type, &shape)) return shape;
    }
}

/* Rows compared as they come with those of the whole run. */
struct reader {
    const struct pl_timeline *whole;
    int64_t ops, messages, calls;
};

#define SAME(column, at, n)                                    \
    ck_assert_msg(!memcmp(rows->column, whole->column + (at),  \
                          (size_t)(n) * sizeof *rows->column), \
                  "%s differs", #column)

static int compare_rows(void *context, const struct pl_timeline *rows)
{
    struct reader *r = context;
    const struct pl_timeline *whole = r->whole;
    ck_assert_int_le(r->ops + rows->n_ops, whole->n_ops);
    ck_assert_int_le(r->messages + rows->n_messages, whole->n_messages);
    SAME(start, r->ops, rows->n_ops);
    SAME(end, r->ops, rows->n_ops);
    SAME(kind, r->ops, rows->n_ops);
    SAME(device, r->ops, rows->n_ops);
    SAME(chunk, r->ops, rows->n_ops);
    SAME(micro, r->ops, rows->n_ops);
    SAME(src, r->messages, rows->n_messages);
    SAME(dst, r->messages, rows->n_messages);
    SAME(msg_chunk, r->messages, rows->n_messages);
    SAME(msg_micro, r->messages, rows->n_messages);
    SAME(msg_kind, r->messages, rows->n_messages);
    SAME(sent, r->messages, rows->n_messages);
    SAME(arrived, r->messages, rows->n_messages);
    r->ops += rows->n_ops;
    r->messages += rows->n_messages;
    r->calls++;
    return 0;
}

/* Equal bits; all NaN are equal. */
static void assert_real(double a, double b, const char *what, const char *about)
{
    ck_assert_msg((isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0,
                  "%s: %.17g and %.17g: %s", what, a, b, about);
}
#define REAL(a, b, member) assert_real((a)->member, (b)->member, #member, about)
#define INT(a, b, member) \
    ck_assert_msg((a)->member == (b)->member, "%s: %s", #member, about)

static void assert_metrics(const struct pl_metrics *a, const struct pl_metrics *b,
                           const char *about)
{
    REAL(a, b, makespan_s);
    REAL(a, b, ideal_s);
    REAL(a, b, step_s);
    REAL(a, b, bubble);
    REAL(a, b, bubble_over_ideal);
    REAL(a, b, bubble_parallelogram);
    REAL(a, b, bubble_steady);
    INT(a, b, steady_from);
    INT(a, b, steady_to);
    INT(a, b, stages);
    INT(a, b, devices);
    INT(a, b, chunks);
    INT(a, b, tau_bins);
    for (int q = 0; q < a->stages; q++) {
        REAL(&a->stage[q], &b->stage[q], busy_s);
        REAL(&a->stage[q], &b->stage[q], tau_min);
        REAL(&a->stage[q], &b->stage[q], tau_mean);
        REAL(&a->stage[q], &b->stage[q], tau_max);
        REAL(&a->stage[q], &b->stage[q], tau_startup);
        INT(&a->stage[q], &b->stage[q], weight_versions);
        INT(&a->stage[q], &b->stage[q], peak_activations);
    }
    for (int d = 0; d < a->devices; d++) {
        REAL(&a->device[d], &b->device[d], busy_s);
        INT(&a->device[d], &b->device[d], peak_activations);
    }
    for (int64_t i = 0; i < a->chunks * a->tau_bins; i++) INT(a, b, tau_count[i]);
}

static void check_shape(const struct pl_schedule_type *type,
                        const struct pl_shape *shape, uint64_t seed)
{
    struct pl_layout layout;
    struct pl_metrics metrics;
    char about[120];
    snprintf(about, sizeof about, "%s P=%d m=%d updates=%d seed %d", type->name,
             shape->P, shape->m, (int)shape->updates, (int)seed);
    pl_layout_new(type, shape, &layout);
    struct pl_cost cost = random_layout_costs(&layout, seed, seed % 3 ? 1000 : 3);
    bool barrier = (seed & 1) && type->global_version;
    struct pl_simulation sim = simulate_shape(type, shape, &cost, barrier);
    struct reader reader = {.whole = &sim.timeline};
    struct pl_stream_sink sink = {compare_rows, &reader};
    int rc = pl_stream_run(type, shape, &cost, barrier, &sink, &metrics);
    ck_assert_msg(rc == PL_OK, "%s: %s", about, pl_error_text());
    ck_assert_int_eq(reader.ops, sim.timeline.n_ops);
    ck_assert_int_eq(reader.messages, sim.timeline.n_messages);
    assert_metrics(&metrics, &sim.metrics, about);
    pl_metrics_free(&metrics);
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
}

START_TEST(equals_whole_run)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (!pl_stream_can(type)) return;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct pl_shape shape = shape_for(type, seed);
        check_shape(type, &shape, seed);
    }
    struct pl_shape shape = shape_for(type, 1000);
    shape.updates = 3000; /* rows in many parts */
    check_shape(type, &shape, 1);
}
END_TEST

/* op_at and emit are one schedule. */
START_TEST(same_ops)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (!pl_stream_can(type)) return;
    for (uint64_t seed = 100; seed < 140; seed++) {
        struct pl_shape shape = shape_for(type, seed);
        struct pl_schedule sched;
        struct pl_op op;
        ck_assert_int_eq(pl_schedule_new(type, &shape, NULL, &sched), PL_OK);
        for (int d = 0; d < shape.P; d++) {
            int64_t n = sched.first[d + 1] - sched.first[d];
            for (int64_t k = 0; k < n; k++) {
                const struct pl_op *want = &sched.ops[sched.first[d] + k];
                ck_assert(type->op_at(&shape, d, k, &op));
                ck_assert(!memcmp(&op, want, sizeof op));
            }
            ck_assert(!type->op_at(&shape, d, n, &op));
        }
        pl_schedule_free(&sched);
    }
}
END_TEST

/* Most bytes in use while a stream hands over its rows. */
static int note_memory(void *context, const struct pl_timeline *rows)
{
    (void)rows;
    size_t *most = context;
    struct mallinfo2 now = mallinfo2();
    if (now.uordblks + now.hblkhd > *most) *most = now.uordblks + now.hblkhd;
    return 0;
}

static size_t memory_of(const char *name, int64_t updates)
{
    size_t most = 0;
    struct pl_metrics metrics;
    struct pl_shape shape = {.P = 3, .m = 3, .updates = updates};
    struct pl_cost cost = uniform(3, 10, 20, 1, 2);
    struct pl_stream_sink sink = {note_memory, &most};
    ck_assert_int_eq(
        pl_stream_run(pl_schedule_find(name), &shape, &cost, false, &sink, &metrics),
        PL_OK);
    pl_metrics_free(&metrics);
    pl_cost_free(&cost);
    return most;
}

START_TEST(memory_is_flat)
{
    static const char *const names[] = {"pipedream", "2bw", "pipemare"};
    for (int i = 0; i < 3; i++) {
        memory_of(names[i], 10000); /* the allocator's own */
        size_t short_run = memory_of(names[i], 2000),
               long_run = memory_of(names[i], 100000);
        ck_assert_uint_gt(short_run, 0);
        /* one byte an update would be 98000 */
        ck_assert_uint_le(long_run, short_run + 16384);
    }
}
END_TEST

static int stop_at_once(void *context, const struct pl_timeline *rows)
{
    (void)context;
    (void)rows;
    return PL_ECHECK;
}

START_TEST(refuses)
{
    struct pl_cost cost = uniform(2, 10, 20, 0, 0);
    struct pl_shape shape = {.P = 2, .m = 2, .updates = 3};
    struct pl_metrics none;
    ck_assert_int_eq(
        pl_stream_run(pl_schedule_find("1f1b"), &shape, &cost, true, NULL, &none),
        PL_EUNSUP);
    struct pl_stream_sink sink = {stop_at_once, NULL};
    ck_assert_int_eq(
        pl_stream_run(pl_schedule_find("2bw"), &shape, &cost, true, &sink, NULL),
        PL_ECHECK);
    struct pl_schedule_type type = *pl_schedule_find("pipedream");
    type.reads = pl_schedule_find("1f1b")->reads; /* F 2 waits for an update after it */
    ck_assert_int_eq(pl_stream_run(&type, &shape, &cost, false, NULL, &none),
                     PL_EDEADLOCK);
    shape.P = 0;
    ck_assert_int_eq(
        pl_stream_run(pl_schedule_find("2bw"), &shape, &cost, true, NULL, &none),
        PL_ECONFIG);
    pl_cost_free(&cost);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, same_ops, 0, n_types());
    tcase_add_loop_test(t, equals_whole_run, 0, n_types());
#ifndef __SANITIZE_ADDRESS__ /* its malloc does not count */
    tcase_add_test(t, memory_is_flat);
#else
    (void)memory_is_flat;
#endif
    tcase_add_test(t, refuses);
}

int main(void)
{
    return run_tests("sim stream", fill);
}
