/* Properties of every schedule of the table, over random shapes, costs and links; the
 * checkers of schedules and timelines run inside pl_simulate. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim_case.h"

enum { SEEDS = 40 };

/* One random run. */
struct sample {
    struct pl_shape shape;
    struct pl_layout layout;
    struct pl_cost cost;
    bool barrier;
    struct pl_simulation sim;
};

static struct sample sample_new(const struct pl_schedule_type *type, uint64_t seed)
{
    struct sample x;
    x.layout = random_shape(type, seed, &x.shape);
    x.cost = random_layout_costs(&x.layout, seed, seed % 3 ? 50 : 3);
    x.barrier = (seed & 1) && type->global_version;
    x.sim = simulate_shape(type, &x.shape, &x.cost, x.barrier);
    return x;
}

static void sample_free(struct sample *x)
{
    pl_simulation_free(&x->sim);
    pl_cost_free(&x->cost);
    pl_layout_free(&x->layout);
}

/* Integer times scale exactly; equal inputs give equal outputs (factor 1). */
START_TEST(scaling)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return; /* test_sim_custom.c */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sample x = sample_new(type, seed);
        int64_t factor = 1 + (int64_t)(seed % 8);
        struct pl_cost scaled = random_layout_costs(&x.layout, seed, seed % 3 ? 50 : 3);
        ck_assert_int_eq(pl_cost_scale(&scaled, factor), PL_OK);
        for (int c = 0; c < x.layout.C; c++) scaled.update[c] *= factor;
        struct pl_simulation big = simulate_shape(type, &x.shape, &scaled, x.barrier);
        const struct pl_timeline *a = &x.sim.timeline, *b = &big.timeline;
        ck_assert_int_eq(a->n_ops, b->n_ops);
        for (int64_t i = 0; i < a->n_ops; i++) {
            ck_assert_int_eq(b->start[i], factor * a->start[i]);
            ck_assert_int_eq(b->end[i], factor * a->end[i]);
            ck_assert_int_eq(b->micro[i], a->micro[i]);
            ck_assert_int_eq(b->chunk[i], a->chunk[i]);
        }
        pl_simulation_free(&big);
        pl_cost_free(&scaled);
        sample_free(&x);
    }
}
END_TEST

/* What a device did is what its ops cost (pairs do not overlap here); the chain of one
 * microbatch and the busiest device bound the makespan. */
START_TEST(work)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sample x = sample_new(type, seed);
        const struct pl_layout *l = &x.layout;
        pl_tick *sum = PL_NEW(l->P, pl_tick), chain = 0, most = 0;
        for (int q = 0; q < l->C * l->R; q++)
            sum[l->device[q]] += x.shape.updates * x.cost.update[q % l->C];
        for (int d = 0; d < l->P; d++)
            for (int64_t i = x.sim.schedule.first[d]; i < x.sim.schedule.first[d + 1];
                 i++) {
                const struct pl_op *op = &x.sim.schedule.ops[i];
                sum[d] += pl_cost_time(&x.cost, op->kind, op->chunk % l->C);
            }
        for (int d = 0; d < l->P; d++) {
            ck_assert_double_eq(x.sim.metrics.device[d].busy_s, pl_seconds(sum[d]));
            if (sum[d] > most) most = sum[d];
        }
        for (int c = 0; c < l->C; c++) { /* of the first copy; W may be off the chain */
            chain += x.cost.forward[c] + x.cost.backward[c];
            if (c < l->C - 1 && l->device[c] != l->device[c + 1])
                chain += 2 * pl_cost_flight(&x.cost, l->device[c], l->device[c + 1]);
        }
        ck_assert_double_eq(x.sim.metrics.ideal_s, pl_seconds(most));
        ck_assert_int_ge(end_of(&x.sim), most);
        if (l->R == 1) ck_assert_int_ge(end_of(&x.sim), chain + x.cost.update[0]);
        free(sum);
        sample_free(&x);
    }
}
END_TEST

/* Delays are not negative, and 0 where every update flushes; a backward reads no older
 * version than its forward and none that its own update makes; along the microbatches
 * of one copy of a chunk versions do not fall. */
START_TEST(versions)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sample x = sample_new(type, seed);
        const struct pl_versions *v = &x.sim.versions;
        int C = x.layout.C, n = C * x.layout.R;
        int64_t *owner = PL_NEW(v->n_micro, int64_t), *last = PL_NEW(n, int64_t);
        for (int64_t i = 0; i < x.sim.schedule.n_ops; i++)
            owner[x.sim.schedule.ops[i].micro] = x.sim.schedule.ops[i].chunk / C;
        for (int64_t i = 0; i < v->n_micro; i++)
            for (int c = 0; c < C; c++) {
                int64_t forward = v->forward[c * v->n_micro + i];
                int64_t backward = v->backward[c * v->n_micro + i];
                int64_t *before = &last[owner[i] * C + c];
                ck_assert_int_ge(pl_versions_tau(v, c, i), 0);
                if (!type->async) ck_assert_int_eq(pl_versions_tau(v, c, i), 0);
                ck_assert_int_le(forward, backward);
                ck_assert_int_le(backward, i / v->m);
                if (!type->nostash) ck_assert_int_eq(forward, backward);
                ck_assert_int_ge(forward, *before);
                *before = forward;
            }
        free(owner);
        free(last);
        sample_free(&x);
    }
}
END_TEST

/* The schedule with device d called perm[d]. */
static struct pl_schedule relabel(const struct pl_schedule *s, const int *perm)
{
    struct pl_schedule out = *s;
    int P = s->layout.P, n = s->layout.C * s->layout.R;
    int64_t at = 0;
    out.layout.device = PL_NEW(n, int);
    out.first = PL_NEW(P + 1, int64_t);
    out.ops = PL_NEW(s->n_ops, struct pl_op);
    for (int q = 0; q < n; q++) out.layout.device[q] = perm[s->layout.device[q]];
    for (int d = 0; d < P; d++) {
        int old = 0;
        while (perm[old] != d) old++;
        for (int64_t i = s->first[old]; i < s->first[old + 1]; i++)
            out.ops[at++] = s->ops[i];
        out.first[d + 1] = at;
    }
    return out;
}

/* Start of each op by kind, instance and number. */
static pl_tick *starts_of(const struct pl_timeline *t, int instances)
{
    int64_t n = t->shape.m * t->shape.updates;
    pl_tick *out = PL_NEW(PL_N_OP * instances * n, pl_tick);
    for (int64_t i = 0; i < t->n_ops; i++)
        out[(t->kind[i] * instances + t->chunk[i]) * n + t->micro[i]] = t->start[i] + 1;
    return out;
}

/* Names do matter when links differ: the comparison below can fail. */
START_TEST(relabelling_sees_links)
{
    struct pl_cost cost = uniform(3, 1000, 2000, 0, 10);
    struct pl_simulation sim = simulate("1f1b", 3, 4, 1, &cost, false);
    const int perm[] = {0, 2, 1};
    struct pl_schedule other = relabel(&sim.schedule, perm);
    for (int slow = 0; slow < 2; slow++) {
        struct pl_timeline moved;
        cost.next[2] = cost.prev[0] = 10 + 500 * slow; /* now between chunks 0 and 1 */
        ck_assert_int_eq(pl_engine_run(&other, &cost, false, &moved), PL_OK);
        pl_tick *a = starts_of(&sim.timeline, 3), *b = starts_of(&moved, 3);
        ck_assert_int_eq(memcmp(a, b, PL_N_OP * 3 * 4 * sizeof *a) != 0, slow);
        free(a);
        free(b);
        pl_timeline_free(&moved);
    }
    free(other.layout.device);
    free(other.first);
    free(other.ops);
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
}
END_TEST

/* Names of devices do not matter when all links are equal. */
START_TEST(relabelling)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct pl_shape shape;
        struct pl_layout layout = random_shape(type, seed, &shape);
        struct pl_cost cost = random_layout_costs(&layout, seed, seed % 3 ? 50 : 3);
        int perm[16], n = layout.C * layout.R;
        for (int d = 0; d < layout.P; d++) {
            int k =
                (int)pl_rng_below(seed, PL_RNG_TEST, 93, (uint32_t)d, (uint64_t)d + 1);
            perm[d] = perm[k]; /* a random permutation, Fisher and Yates */
            perm[k] = d;
            cost.next[d] = cost.prev[d] = (pl_tick)(seed % 7);
        }
        struct pl_simulation sim = simulate_shape(type, &shape, &cost, false);
        struct pl_schedule other = relabel(&sim.schedule, perm);
        struct pl_timeline moved;
        ck_assert_int_eq(pl_schedule_check(&other), PL_OK);
        ck_assert_int_eq(pl_engine_run(&other, &cost, false, &moved), PL_OK);
        ck_assert_int_eq(pl_timeline_check(&moved, &other, &cost), PL_OK);
        pl_tick *a = starts_of(&sim.timeline, n), *b = starts_of(&moved, n);
        size_t bytes = (size_t)PL_N_OP * (size_t)n * (size_t)shape.m *
                       (size_t)shape.updates * sizeof *a;
        ck_assert_msg(!memcmp(a, b, bytes), "%s seed %d", type->name, (int)seed);
        free(a);
        free(b);
        free(other.layout.device);
        free(other.first);
        free(other.ops);
        pl_timeline_free(&moved);
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
}
END_TEST

/* When the input of an op of chunk c is on its device. */
struct inputs {
    const struct pl_simulation *sim;
    const struct pl_cost *cost;
    bool barrier;
    pl_tick *f, *b;       /* [instances * n_micro] ends of F, and of B or BW */
    pl_tick *group, *all; /* [C * updates], [updates] last gradient */
};

static pl_tick flight(const struct inputs *x, int from, int to)
{
    const int *device = x->sim->schedule.layout.device;
    if (device[from] == device[to]) return 0;
    return pl_cost_flight(x->cost, device[from], device[to]);
}

static pl_tick input_of(const struct inputs *x, int kind, int q, int64_t micro)
{
    const struct pl_shape *shape = &x->sim->timeline.shape;
    int C = x->sim->schedule.layout.C, c = q % C;
    int64_t n = shape->m * shape->updates;
    if (kind == PL_OP_U)
        return x->barrier ? x->all[micro] : x->group[c * shape->updates + micro];
    if (kind == PL_OP_F && c > 0)
        return x->f[(q - 1) * n + micro] + flight(x, q - 1, q);
    if ((kind == PL_OP_B || kind == PL_OP_BW) && c < C - 1)
        return x->b[(q + 1) * n + micro] + flight(x, q + 1, q);
    return 0;
}

static void note_end(struct inputs *x, int64_t i)
{
    const struct pl_timeline *t = &x->sim->timeline;
    int64_t n = t->shape.m * t->shape.updates, g = t->micro[i] / t->shape.m;
    int q = t->chunk[i], c = q % x->sim->schedule.layout.C, kind = t->kind[i];
    pl_tick end = t->end[i];
    if (kind == PL_OP_F) x->f[q * n + t->micro[i]] = end;
    if (kind == PL_OP_B || kind == PL_OP_BW) x->b[q * n + t->micro[i]] = end;
    if (kind != PL_OP_W && kind != PL_OP_BW) return;
    if (end > x->all[g]) x->all[g] = end;
    if (end > x->group[c * t->shape.updates + g])
        x->group[c * t->shape.updates + g] = end;
}

/* Nobody waits without a reason: every op starts the moment its device is free, its
 * input has arrived and, for U, the last gradient it waits for exists. Found from the
 * rows alone, independent of the engine's events. */
static void assert_tight(const struct pl_simulation *sim, const struct pl_cost *cost,
                         bool barrier)
{
    const struct pl_timeline *t = &sim->timeline;
    const struct pl_layout *layout = &sim->schedule.layout;
    int64_t n = t->shape.m * t->shape.updates, Q = layout->C * layout->R;
    struct inputs x = {sim,
                       cost,
                       barrier,
                       PL_NEW(Q * n, pl_tick),
                       PL_NEW(Q * n, pl_tick),
                       PL_NEW(layout->C * t->shape.updates, pl_tick),
                       PL_NEW(t->shape.updates, pl_tick)};
    pl_tick *free_at = PL_NEW(layout->P, pl_tick);
    int64_t *issued = PL_NEW(layout->P, int64_t);
    for (int64_t i = 0; i < t->n_ops; i++) {
        int d = t->device[i];
        pl_tick want = free_at[d];
        int64_t last = i;
        if (t->kind[i] != PL_OP_U) {
            const struct pl_op *op =
                &sim->schedule.ops[sim->schedule.first[d] + issued[d]];
            last += op->pair; /* waits for both */
            issued[d] += 1 + op->pair;
        }
        for (int64_t k = i; k <= last; k++) {
            pl_tick input = input_of(&x, t->kind[k], t->chunk[k], t->micro[k]);
            if (input > want) want = input;
        }
        ck_assert_int_eq(t->start[i], want);
        for (int64_t k = i; k <= last; k++) note_end(&x, k);
        free_at[d] = t->end[i];
        i = last;
    }
    free(free_at);
    free(issued);
    free(x.f);
    free(x.b);
    free(x.group);
    free(x.all);
}

START_TEST(nobody_waits_in_vain)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    if (type->from_file) return; /* test_sim_custom.c */
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct pl_shape shape;
        struct pl_layout layout = random_shape(type, seed + 1000, &shape);
        struct pl_cost cost = random_layout_costs(&layout, seed, seed % 3 ? 50 : 3);
        bool barrier = (seed & 1) && type->global_version;
        struct pl_simulation sim = simulate_shape(type, &shape, &cost, barrier);
        assert_tight(&sim, &cost, barrier);
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
        pl_layout_free(&layout);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, scaling, 0, n_types());
    tcase_add_loop_test(t, work, 0, n_types());
    tcase_add_loop_test(t, versions, 0, n_types());
    tcase_add_loop_test(t, relabelling, 0, n_types());
    tcase_add_test(t, relabelling_sees_links);
    tcase_add_loop_test(t, nobody_waits_in_vain, 0, n_types());
}

int main(void)
{
    return run_tests("sim property", fill);
}
