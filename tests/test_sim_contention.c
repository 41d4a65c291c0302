/* Messages that share bandwidth: cases by hand, no sharing and no limit give `latency`
 * exactly. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim/cluster.h"
#include "sim/schedules/emit.h"
#include "tests/sim_case.h"

/* P copies of the model, each beginning on another device of the ring: all devices send
 * to the next one at the same time. */
static int emit_rotated(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    struct pl_emit emit;
    int P = out->shape.P;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < P; d++) {
        for (int k = 0; k < 2 * P; k++) {
            int c = k < P ? k : 2 * P - 1 - k, replica = (d - c + P) % P;
            pl_emit_put(&emit, k < P ? PL_OP_F : PL_OP_BW, replica * P + c, replica);
        }
        pl_emit_device(&emit);
    }
    return PL_OK;
}

static int place_rotated(const struct pl_shape *shape, int chunk, int replica)
{
    return (replica + chunk) % shape->P;
}

enum { COPIES = 3 };
static const struct pl_schedule_type rotated = {.name = "rotated",
                                                .replicas = COPIES,
                                                .place = place_rotated,
                                                .emit = emit_rotated,
                                                .reads = pl_reads_newest};

static void share(struct pl_cost *cost, int hop, double bytes, int n,
                  const struct pl_use *use)
{
    struct pl_hop *h = &cost->hop[hop];
    double rate = INFINITY;
    h->bytes = bytes;
    h->n = n;
    h->use = PL_NEW(n, struct pl_use);
    for (int k = 0; k < n; k++) {
        h->use[k] = use[k];
        rate = fmin(rate, use[k].capacity);
    }
    *(hop < cost->devices ? &cost->next[hop] : &cost->prev[hop - cost->devices]) +=
        (pl_tick)llround(bytes / rate * 1e12);
}

/* Three flows over two resources: link 0 uses A, link 1 A and B, link 2 B. Ends in us
 * after they start, each of 3e-6 bytes, so that capacity 1 takes 3 us. */
static const struct three {
    double a, b, end[3];
} threes[] = {
    {1, 2, {6, 6, 2}},          /* A full: 1/2 1/2; link 2 the rest, 3/2 */
    {4, 2, {1, 3, 3}},          /* B full: 1 1; link 0 gets 3 */
    {1, 1, {6, 6, 6}},          /* both full */
    {2, 100, {3, 3, 3 / 99.0}}, /* link 2 almost alone */
    {1, 1.5, {6, 6, 3}},        /* 1/2 1/2 1 */
    {3, 2, {1.5, 3, 3}},        /* 2 1 1 */
    {2, 1.2, {3 / 1.4, 5, 5}},  /* B: 0.6 0.6; link 0: 1.4 */
};
enum { N_THREES = sizeof threes / sizeof *threes };

START_TEST(three_flows)
{
    const struct three *x = &threes[_i];
    struct pl_shape shape = {.P = COPIES, .m = COPIES, .updates = 1};
    struct pl_layout layout;
    ck_assert_int_eq(pl_shape_resolve(&rotated, &shape), PL_OK);
    pl_layout_new(&rotated, &shape, &layout);
    struct pl_cost cost = even_costs(&layout, 100 * US, 100 * US, 0, 0, 7);
    cost.semantics = PL_CONTENTION;
    cost.hop = PL_NEW(2 * COPIES, struct pl_hop);
    struct pl_use a = {40, x->a}, b = {7, x->b}, both[] = {a, b};
    share(&cost, 0, 3e-6, 1, &a);
    share(&cost, 1, 3e-6, 2, both);
    share(&cost, 2, 3e-6, 1, &b);
    struct pl_simulation sim = simulate_shape(&rotated, &shape, &cost, false);
    const struct pl_timeline *t = &sim.timeline;
    int seen = 0;
    for (int64_t i = 0; i < t->n_messages; i++) {
        if (t->msg_kind[i] != PL_OP_F || t->msg_chunk[i] % COPIES) continue;
        int link = t->src[i];
        ck_assert_int_eq(t->sent[i], 100 * US);
        double took = (double)(t->arrived[i] - t->sent[i] - 7);
        ck_assert_double_eq_tol(took, x->end[link] * US, 1);
        seen++;
    }
    ck_assert_int_eq(seen, COPIES);
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
}
END_TEST

/* Stage 0 sends at 1, 2 and 3 us what takes 4 us alone: alone until 2, halves until 3,
 * thirds until the first is through at 10.5, halves until 12.5, alone until 13. */
START_TEST(one_link)
{
    struct pl_cost cost = uniform(2, US, US, 0, 0);
    double rate = 1e6;
    ck_assert_int_eq(pl_cost_bandwidth(&cost, &rate, 1, 4), PL_OK);
    ck_assert_int_eq(cost.next[0], 4 * US);
    cost.semantics = PL_CONTENTION;
    struct pl_simulation sim = simulate("gpipe", 2, 3, 1, &cost, false);
    static const pl_tick want[] = {10500000, 12500000, 13 * US};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(sim.timeline.msg_micro[i], i);
        ck_assert_int_eq(sim.timeline.sent[i], (i + 1) * US);
        ck_assert_int_eq(sim.timeline.arrived[i], want[i]);
    }
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

/* Two links over one port take twice as long as over two. */
START_TEST(shared_port)
{
    struct pl_shape shape = {.P = COPIES, .m = COPIES, .updates = 1};
    struct pl_layout layout;
    ck_assert_int_eq(pl_shape_resolve(&rotated, &shape), PL_OK);
    pl_layout_new(&rotated, &shape, &layout);
    for (int port = 0; port < 2; port++) {
        struct pl_cost cost = even_costs(&layout, 100 * US, 100 * US, 0, 0, 0);
        cost.semantics = PL_CONTENTION;
        cost.hop = PL_NEW(2 * COPIES, struct pl_hop);
        struct pl_use one = {1, 1}, other = {2 - port, 1};
        share(&cost, 0, 5e-6, 1, &one);
        share(&cost, 1, 5e-6, 1, &other);
        struct pl_simulation sim = simulate_shape(&rotated, &shape, &cost, false);
        const struct pl_timeline *t = &sim.timeline;
        for (int64_t i = 0; i < t->n_messages; i++)
            if (t->msg_kind[i] == PL_OP_F && !(t->msg_chunk[i] % COPIES))
                ck_assert_int_eq(t->arrived[i] - t->sent[i],
                                 t->src[i] == 2 ? 0 : 5 * US * (1 + port));
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
    pl_layout_free(&layout);
}
END_TEST

#define SAME(column, n) !memcmp(a->column, b->column, (size_t)(n) * sizeof *a->column)
static bool same_ops(const struct pl_timeline *a, const struct pl_timeline *b)
{
    return SAME(kind, a->n_ops) && SAME(device, a->n_ops) && SAME(chunk, a->n_ops) &&
           SAME(micro, a->n_ops) && SAME(start, a->n_ops) && SAME(end, a->n_ops);
}

static bool same_messages(const struct pl_timeline *a, const struct pl_timeline *b)
{
    int64_t n = a->n_messages;
    return SAME(src, n) && SAME(dst, n) && SAME(msg_chunk, n) && SAME(msg_micro, n) &&
           SAME(msg_kind, n) && SAME(sent, n) && SAME(arrived, n);
}

static struct pl_simulation run(const struct pl_schedule_type *type,
                                const struct pl_shape *shape, struct pl_cost *cost,
                                enum pl_link_semantics semantics)
{
    cost->semantics = semantics;
    return simulate_shape(type, shape, cost, false);
}

/* No limit: latency, bit for bit. A limit that no two messages meet: the same. Else the
 * run takes no less time. */
START_TEST(against_latency)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return;
    int alike = 0;
    for (uint64_t seed = 0; seed < 16; seed++) {
        struct pl_shape shape;
        struct pl_layout layout = random_shape(type, seed + 3000, &shape);
        for (int limited = 0; limited < 2; limited++) {
            struct pl_cost cost = random_layout_costs(&layout, seed, 5000);
            for (int c = 0; c < cost.chunks; c++) cost.update[c] = 0;
            double rate = limited ? 1e12 / (double)(1 + seed * seed) : INFINITY;
            ck_assert_int_eq(pl_cost_bandwidth(&cost, &rate, 1, 10), PL_OK);
            struct pl_simulation a = run(type, &shape, &cost, PL_LATENCY);
            struct pl_simulation b = run(type, &shape, &cost, PL_CONTENTION);
            struct pl_simulation c = run(type, &shape, &cost, PL_OCCUPANCY);
            bool free_links = same_messages(&a.timeline, &c.timeline);
            if (!limited || free_links) {
                ck_assert(same_ops(&a.timeline, &b.timeline));
                ck_assert(same_messages(&a.timeline, &b.timeline));
                alike += limited;
            }
            ck_assert_int_ge(end_of(&b), end_of(&a));
            pl_simulation_free(&a);
            pl_simulation_free(&b);
            pl_simulation_free(&c);
            pl_cost_free(&cost);
        }
        pl_layout_free(&layout);
    }
    ck_assert_int_gt(alike, 0);
}
END_TEST

/* Random resources, senders' parts and variation: the checker accepts, and the same
 * seed gives the same run. */
START_TEST(random_sharing)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct pl_shape shape;
        struct pl_layout layout = random_shape(type, seed + 4000, &shape);
        struct pl_cost cost = random_layout_costs(&layout, seed, 5000);
        int P = layout.P;
        cost.hop = PL_NEW(2 * P, struct pl_hop);
        for (int h = 0; h < 2 * P; h++) {
            struct pl_use use[3];
            int n = (int)pl_rng_below(seed, PL_RNG_TEST, 70, (uint32_t)h, 4);
            for (int k = 0; k < n; k++)
                use[k] = (struct pl_use){
                    3 * k + (int)pl_rng_below(seed, PL_RNG_TEST, 71,
                                              (uint32_t)(3 * h + k), 3),
                    1e9 * (double)(1 + pl_rng_below(seed, PL_RNG_TEST, 72,
                                                    (uint32_t)(3 * h + k), 5))};
            share(&cost, h, n ? 7 : 0, n, use);
        }
        cost.send_next[0] = (pl_tick)(seed % 3) * 100;
        if (seed % 2) {
            cost.jitter = PL_NEW(1, struct pl_jitter);
            for (int k = 0; k < PL_N_JITTER; k++)
                cost.jitter->time[k] =
                    (struct pl_random_time){.kind = PL_GAMMA, .cv = 0.5};
        }
        struct pl_simulation a = run(type, &shape, &cost, PL_CONTENTION);
        struct pl_simulation b = run(type, &shape, &cost, PL_CONTENTION);
        ck_assert(same_ops(&a.timeline, &b.timeline));
        ck_assert(same_messages(&a.timeline, &b.timeline));
        pl_simulation_free(&a);
        pl_simulation_free(&b);
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, three_flows, 0, N_THREES);
    tcase_add_test(t, one_link);
    tcase_add_test(t, shared_port);
    tcase_add_loop_test(t, against_latency, 0, n_types());
    tcase_add_loop_test(t, random_sharing, 0, n_types());
}

int main(void)
{
    return run_tests("sim contention", fill);
}
