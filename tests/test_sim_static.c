/* The static sweep against the event engine: equal to the tick and to the row, over all
 * schedules and over two of our own that hold what the table may lack. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim/schedules/emit.h"
#include "sim/program.h"
#include "sim/static.h"
#include "tests/sim_case.h"

/* All forwards, then all backwards, of microbatches that run down and up in turn. */
static int emit_opposing(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    struct pl_emit emit;
    int P = out->shape.P, m = out->shape.m;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < P; d++) {
        for (int64_t g = 0; g < out->shape.updates; g++)
            for (int k = 0; k < 2 * m; k++) {
                int64_t i = g * m + k % m;
                int instance = i % 2 ? P + P - 1 - d : d;
                pl_emit_put(&emit, k < m ? PL_OP_F : PL_OP_BW, instance, i);
            }
        pl_emit_device(&emit);
    }
    return PL_OK;
}

static const struct pl_schedule_type opposing = {
    .name = "opposing",
    .replicas = 2,
    .place = pl_place_zigzag,
    .emit = emit_opposing,
    .reads = pl_reads_newest,
};

/* No flush; a forward and a backward always at once. */
static int emit_paired(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    struct pl_emit emit;
    int64_t n = out->shape.m * out->shape.updates;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < out->shape.P; d++) {
        int64_t warm = out->shape.P - d;
        for (int64_t i = 0; i < warm && i < n; i++) pl_emit_put(&emit, PL_OP_F, d, i);
        for (int64_t i = 0; i < n; i++)
            if (i + warm < n)
                pl_emit_pair(&emit, d, i + warm, d, i);
            else
                pl_emit_put(&emit, PL_OP_BW, d, i);
        pl_emit_device(&emit);
    }
    return PL_OK;
}

static const struct pl_schedule_type paired = {
    .name = "paired", .async = true, .emit = emit_paired, .reads = pl_reads_live};

static const struct pl_schedule_type *type_of(int i)
{
    int n = n_types();
    return i < n ? pl_schedule_types[i] : i == n ? &opposing : &paired;
}

static uint64_t draw(uint64_t seed, uint32_t which, uint64_t n)
{
    return pl_rng_below(seed, PL_RNG_TEST, 9, which, n);
}

/* Times of 1..most, so that the sweep applies; U and links may take none. */
static struct pl_cost costs_of(const struct pl_layout *layout, uint64_t seed)
{
    static const uint64_t ranges[] = {1, 3, 50, 1000000};
    struct pl_cost cost = random_layout_costs(layout, seed, ranges[seed % 4]);
    for (int k = 0; k < PL_OP_U; k++)
        for (int c = 0; c < cost.chunks; c++) cost.time[k * cost.chunks + c]++;
    pl_cost_refresh(&cost);
    cost.overlap = 0.25 * (double)(seed % 5);
    return cost;
}

#define SAME(a, b, column, n)                                                 \
    ck_assert_msg(                                                            \
        !memcmp((a)->column, (b)->column, (size_t)(n) * sizeof *(a)->column), \
        "%s differs: %s", #column, about)

static void assert_same(const struct pl_timeline *a, const struct pl_timeline *b,
                        const char *about)
{
    ck_assert_int_eq(a->n_ops, b->n_ops);
    ck_assert_int_eq(a->n_messages, b->n_messages);
    SAME(a, b, start, a->n_ops);
    SAME(a, b, end, a->n_ops);
    SAME(a, b, kind, a->n_ops);
    SAME(a, b, device, a->n_ops);
    SAME(a, b, chunk, a->n_ops);
    SAME(a, b, micro, a->n_ops);
    SAME(a, b, src, a->n_messages);
    SAME(a, b, dst, a->n_messages);
    SAME(a, b, msg_chunk, a->n_messages);
    SAME(a, b, msg_micro, a->n_messages);
    SAME(a, b, msg_kind, a->n_messages);
    SAME(a, b, sent, a->n_messages);
    SAME(a, b, arrived, a->n_messages);
}

/* A shape that the type takes, from the seed. */
static struct pl_shape shape_for(const struct pl_schedule_type *type, uint64_t seed)
{
    for (uint32_t k = 0;; k += 4) {
        ck_assert_msg(k < 40000, "%s takes no shape", type->name);
        struct pl_shape shape = {.P = 1 + (int)draw(seed, k, seed % 10 ? 9 : 70),
                                 .m = 1 + (int)draw(seed, k + 1, 20),
                                 .updates = 1 + (int64_t)draw(seed, k + 2, 6)};
        if (type->any_v) shape.v = 1 + (int)draw(seed, k + 3, 3);
        if (!pl_shape_resolve(type, &shape)) return shape;
    }
}

/* Rows of a timeline by instance, kind and number. */
static pl_tick end_in(const struct pl_timeline *t, int kind, int instance,
                      int64_t micro)
{
    for (int64_t i = 0; i < t->n_ops; i++)
        if (t->kind[i] == kind && t->chunk[i] == instance && t->micro[i] == micro)
            return t->end[i];
    return -1;
}

/* The compiled order gives every op and every U the engine's end, for these costs and
 * for others without compiling again; 1 when there is one. */
static int check_program(const struct pl_schedule *sched, const struct pl_cost *cost,
                         bool barrier, const struct pl_timeline *engine,
                         const char *about)
{
    struct pl_program program;
    int rc = pl_program_new(sched, barrier, &program);
    if (rc == PL_EUNSUP) return 0;
    ck_assert_msg(rc == PL_OK, "%s: %s", about, pl_error_text());
    pl_tick *end = PL_NEW(program.n, pl_tick), makespan, last = 0;
    ck_assert_int_eq(program.n, engine->n_ops);
    ck_assert_int_eq(pl_program_run(&program, cost, end, &makespan), PL_OK);
    int64_t *updated = PL_NEW(sched->layout.C * sched->layout.R, int64_t);
    for (int64_t i = 0; i < program.n; i++) {
        int64_t k = program.op[i];
        const struct pl_op *op = k < 0 ? NULL : &sched->ops[k];
        int instance = op ? op->chunk : (int)(-1 - k);
        int64_t number = op ? op->micro : updated[instance]++;
        pl_tick want = end_in(engine, op ? op->kind : PL_OP_U, instance, number);
        ck_assert_msg(end[i] == want, "%s: step %lld ends at %lld, engine %lld", about,
                      (long long)i, (long long)end[i], (long long)want);
        if (want > last) last = want;
    }
    ck_assert_int_eq(makespan, last);
    free(updated);
    free(end);
    pl_program_free(&program);
    return 1;
}

START_TEST(same_rows)
{
    const struct pl_schedule_type *type = type_of(_i);
    if (type->from_file) return; /* test_sim_custom.c */
    int ran = 0, compiled = 0;
    bool pairs = false, copies = false;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct pl_shape shape = shape_for(type, seed);
        struct pl_layout layout;
        struct pl_schedule sched;
        struct pl_timeline engine, swept;
        pl_layout_new(type, &shape, &layout);
        struct pl_cost cost = costs_of(&layout, seed);
        bool barrier = seed & 1;
        char about[120];
        snprintf(about, sizeof about, "%s P=%d m=%d v=%d updates=%d seed %d",
                 type->name, shape.P, shape.m, shape.v, (int)shape.updates, (int)seed);
        ck_assert_msg(!pl_schedule_new(type, &shape, &cost, &sched), "%s", about);
        ck_assert_int_eq(pl_schedule_check(&sched), PL_OK);
        ck_assert(pl_static_can(&sched, &cost));
        for (int64_t i = 0; i < sched.n_ops; i++) pairs |= sched.ops[i].pair;
        copies |= layout.R > 1;
        int rc = pl_engine_run(&sched, &cost, barrier, &engine);
        ck_assert_int_eq(pl_static_run(&sched, &cost, barrier, &swept), rc);
        if (!rc) { /* delays may differ by stage: then a barrier can deadlock */
            ran++;
            assert_same(&engine, &swept, about);
            if (engine.n_ops < 3000)
                compiled += check_program(&sched, &cost, barrier, &engine, about);
            pl_timeline_free(&engine);
            pl_timeline_free(&swept);
        }
        pl_schedule_free(&sched);
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
    ck_assert_int_ge(ran, 100);
    /* pairs, and replicas without a barrier, have no fixed order */
    ck_assert_msg(pairs || copies || compiled >= 40, "%s: %d compiled", type->name,
                  compiled);
}
END_TEST

/* One room for runs of many shapes: what one leaves must not disturb the next. */
START_TEST(room_is_reused)
{
    struct pl_ends ends = {0};
    for (int i = 0; i < 40; i++) {
        struct pl_cost cost = uniform(1 + i % 7, 10 + i, 20, i % 3, i % 5);
        struct pl_simulation sim = simulate(i % 2 ? "2bw" : "1f1b", 1 + i % 7,
                                            7 + i % 4, 1 + i % 3, &cost, i % 4 < 2);
        ck_assert_int_eq(pl_static_ends(&sim.schedule, &cost, i % 4 < 2, &ends), PL_OK);
        ck_assert_int_eq(ends.makespan, end_of(&sim));
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
    pl_ends_free(&ends);
}
END_TEST

/* Compiled once, run for many costs. */
START_TEST(program_is_reused)
{
    struct pl_cost cost = uniform(6, 10, 20, 0, 0);
    struct pl_shape shape = {.P = 6, .m = 9, .updates = 3};
    struct pl_schedule sched;
    struct pl_program program;
    ck_assert_int_eq(pl_schedule_new(pl_schedule_find("1f1b"), &shape, NULL, &sched),
                     PL_OK);
    ck_assert_int_eq(pl_program_new(&sched, true, &program), PL_OK);
    pl_tick *end = PL_NEW(program.n, pl_tick), makespan;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct pl_cost other = random_costs(6, seed, 900);
        struct pl_simulation sim = simulate("1f1b", 6, 9, 3, &other, true);
        ck_assert_int_eq(pl_program_run(&program, &other, end, &makespan), PL_OK);
        ck_assert_int_eq(makespan, end_of(&sim));
        pl_simulation_free(&sim);
        pl_cost_free(&other);
    }
    cost.forward[2] = INT64_MAX / 8;
    ck_assert_int_eq(pl_program_run(&program, &cost, end, &makespan), PL_ECONFIG);
    free(end);
    pl_program_free(&program);
    pl_schedule_free(&sched);
    pl_cost_free(&cost);
}
END_TEST

/* What the sweep cannot do it says, and a schedule that hangs is named. */
START_TEST(refuses)
{
    struct pl_cost cost = uniform(2, 10, 20, 0, 0);
    struct pl_shape shape = {.P = 2, .m = 2, .updates = 1};
    struct pl_schedule sched;
    struct pl_timeline none;
    ck_assert_int_eq(pl_schedule_new(pl_schedule_find("1f1b"), &shape, NULL, &sched),
                     PL_OK);
    ck_assert(pl_static_can(&sched, &cost));
    cost.forward[1] = 0;
    ck_assert(!pl_static_can(&sched, &cost));
    cost.forward[1] = INT64_MAX / 8;
    ck_assert(!pl_static_can(&sched, &cost));
    cost.forward[1] = 10;
    cost.semantics = PL_OCCUPANCY;
    ck_assert(!pl_static_can(&sched, &cost));
    cost.semantics = PL_LATENCY;
    struct pl_op *last = &sched.ops[sched.first[1]], keep = last[0];
    last[0] = last[3]; /* BW 1 first */
    last[3] = keep;
    ck_assert_int_eq(pl_static_run(&sched, &cost, true, &none), PL_EDEADLOCK);
    pl_schedule_free(&sched);
    pl_cost_free(&cost);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, same_rows, 0, n_types() + 2);
    tcase_add_test(t, room_is_reused);
    tcase_add_test(t, program_is_reused);
    tcase_add_test(t, refuses);
}

int main(void)
{
    return run_tests("sim static", fill);
}
