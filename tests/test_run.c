/* The training loop against brute force: which versions are read, which update uses
 * which samples, clipping, segments of a spec that must be refused, devices. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 24 };
static const struct pl_device *const dev = &pl_device_ref;

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

static void same_rows(const struct pl_run_result *a, const struct pl_run_result *b)
{
    ck_assert_int_eq(a->n_rows, b->n_rows);
    ck_assert_int_eq(a->n_evals, b->n_evals);
    ck_assert_mem_eq(a->rows, b->rows, sizeof *a->rows * (size_t)a->n_rows);
    ck_assert_mem_eq(a->evals, b->evals, sizeof *a->evals * (size_t)a->n_evals);
}

/* The undelayed loop by hand, with the same device and rule: weights after UPDATES. */
static void by_hand(struct pl_problem *p, const struct pl_run_spec *spec, float *w0,
                    float *w1)
{
    enum { STATE = 512 };
    float *w[2] = {w0, w1}, g0[12], g1[12], u[12], state[2][STATE] = {{0}},
          scratch[512];
    float *g[2] = {g0, g1};
    for (int s = 0; s < 2; s++) {
        const struct pl_optim *o = &spec->optim;
        ck_assert_uint_le(pl_optim_state(o, &p->params[s]), STATE);
        ck_assert_uint_le(pl_optim_scratch(o, &p->params[s]), 512);
    }
    must(p->type->init(p, spec->seed, w));
    for (int64_t n = 0; n < UPDATES; n++) {
        struct pl_batch b = {
            .B = spec->batch, .T = 1, .seed = spec->seed, .index = n * spec->batch};
        double loss;
        memset(g0, 0, sizeof g0);
        memset(g1, 0, sizeof g1);
        must(p->type->gradient(p, &b, (const float *const *)w, (const float *const *)w,
                               1, g, &loss));
        for (int s = 0; s < 2; s++) {
            must(pl_optim_step(&spec->optim, dev, &p->params[s], g[s], w[s], state[s],
                               scratch, n + 1, pl_rate_at(&spec->rate, n), u));
            must(dev->axpby(12, -1, u, 1, w[s]));
        }
    }
}

/* Rule i with its own defaults and a decay that is seen. Where bases and roots come
 * from few gradients, eps has to be above the rounding in what those do not span. */
static struct pl_optim some_optimizer(int i)
{
    struct pl_optim o = pl_optim_types[i]->defaults;
    o.type = pl_optim_types[i];
    o.decay = o.aux_decay = .1;
    if (o.refresh) o.eps = 1e-3;
    return o;
}

/* Delay 0 through the whole machinery, every optimizer: the same bits. */
START_TEST(delay_0_is_the_plain_loop)
{
    const int64_t tau[2] = {0, 0};
    struct pl_versions v;
    pl_versions_constant(2, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 2, 4, 3, PL_PARAM_MATRIX, 1, .5, .1);
    struct pl_segment seg = toy_segment("prediction", NAN, PL_START_ZERO, UPDATES);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    float w0[12], w1[12];
    spec.optim = some_optimizer(_i);
    spec.rate = (struct pl_rate){
        .kind = PL_RATE_COSINE, .warmup = 3, .total = UPDATES, .floor = .1};
    must(pl_run(&spec, &r));
    ck_assert_int_eq(r.status, PL_RUN_DONE);
    ck_assert_int_eq(r.n_rows, UPDATES);
    by_hand(p, &spec, w0, w1);
    ck_assert_mem_eq(toy_of(p)->last, w0, sizeof w0);
    ck_assert_mem_eq(toy_of(p)->last + 12, w1, sizeof w1);
    for (int64_t n = 0; n < UPDATES; n++) ck_assert_double_eq(r.rows[n].stale_norm, 0);
    pl_run_free(&r);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

/* Plain SGD by brute force: all versions of all stages kept, read through the map.
 * *worst: largest deviation of what the loop handed to the problem. */
static double brute_force(const struct pl_problem *p, const struct pl_versions *v,
                          const struct pl_run_spec *spec)
{
    const struct toy *toy = toy_of(p);
    const int W = toy->width, P = v->stages, B = spec->batch / v->m;
    float *x = PL_NEW((v->updates + 1) * P * W, float);
    float *grad = PL_NEW(P * W, float), **w = PL_NEW(P, float *),
          **g = PL_NEW(P, float *);
    double worst = 0, loss;
    struct pl_problem copy = *p;
    struct toy quiet = *toy;
    quiet.reads = quiet.backs = NULL;
    quiet.first = NULL, quiet.B = NULL, quiet.n_reads = 0;
    copy.state = &quiet;
    for (int s = 0; s < P; s++) w[s] = x + s * W, g[s] = grad + s * W;
    must(p->type->init(&copy, spec->seed, w));
    for (int64_t i = 0; i < v->n_micro; i++) {
        int64_t n = i / v->m;
        if (i % v->m == 0) memset(grad, 0, sizeof(float) * (size_t)(P * W));
        for (int s = 0; s < P; s++) {
            w[s] = x + (v->forward[s * v->n_micro + i] * P + s) * W;
            for (int k = 0; k < W; k++)
                worst = fmax(worst, fabs(w[s][k] - toy->reads[(i * P + s) * W + k]));
        }
        ck_assert_int_eq(toy->first[i], i * B);
        ck_assert_int_eq(toy->B[i], B);
        struct pl_batch b = {.B = B, .T = 1, .seed = spec->seed, .index = i * B};
        must(p->type->gradient(&copy, &b, (const float *const *)w,
                               (const float *const *)w, 1.0 / v->m, g, &loss));
        if (i % v->m != v->m - 1) continue;
        for (int k = 0; k < P * W; k++)
            x[(n + 1) * P * W + k] =
                x[n * P * W + k] - (float)(spec->optim.lr * (double)grad[k]);
    }
    free(quiet.reads), free(quiet.backs), free(quiet.first), free(quiet.B);
    free(x), free(grad), free(w), free(g);
    return worst;
}

/* Maps: pipedream 3,2,1,0; uniform 1; start-up; and one with microbatches of unequal
 * age. */
START_TEST(reads_what_the_map_says)
{
    const int64_t pipedream[4] = {3, 2, 1, 0}, one[4] = {1, 1, 1, 1};
    struct pl_versions v;
    const int m = _i == 0 ? 1 : 2;
    pl_versions_constant(4, UPDATES, m, _i == 1 ? one : pipedream, 1, &v);
    if (_i ==
        2) /* the second microbatch of each group reads a version later on stage 0 */
        for (int64_t n = 3; n < UPDATES; n++)
            v.forward[2 * n + 1] = ++v.backward[2 * n + 1];
    /* once so wide that the store writes in slices */
    struct pl_problem *p = toy_new(dev, 4, 1, _i == 1 ? 8200 : 3, PL_PARAM_VECTOR, 1,
                                   _i == 1 ? 0 : .5, .1);
    struct pl_segment seg = toy_segment("none", NAN, PL_START_ZERO, UPDATES);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    spec.replay = true;
    must(pl_run(&spec, &r));
    /* one rounding of u apart: eps(float32) of weights of size 1, UPDATES times */
    ck_assert_double_le(brute_force(p, &v, &spec), UPDATES * 1.2e-7);
    for (int64_t n = 0; n < UPDATES; n++)
        ck_assert((r.rows[n].stale_norm > 0) == (n > 0));
    v.forward[5 * m]--; /* a wrong map must show */
    ck_assert_double_gt(brute_force(p, &v, &spec), 1e-3);
    pl_run_free(&r);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

START_TEST(fused_equals_replayed)
{
    const int64_t tau[2] = {2, 1};
    struct pl_versions v;
    pl_versions_constant(2, UPDATES, 4, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 2, 4, 3, PL_PARAM_MATRIX, 1, .5, .1);
    struct pl_segment seg = toy_segment("feedback", NAN, PL_START_HOLD, UPDATES);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result fused, replayed;
    must(pl_run(&spec, &fused));
    ck_assert_int_eq(toy_of(p)->n_reads, UPDATES);
    spec.replay = true;
    must(pl_run(&spec, &replayed));
    ck_assert_int_eq(toy_of(p)->n_reads, 5 * UPDATES);
    for (int64_t n = 0; n < UPDATES; n++) {
        ck_assert_double_eq_tol(fused.rows[n].loss, replayed.rows[n].loss, 1e-4);
        ck_assert_double_eq_tol(fused.rows[n].grad_norm, replayed.rows[n].grad_norm,
                                1e-4);
    }
    pl_run_free(&fused);
    pl_run_free(&replayed);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

/* Sum of squares per stage of u on the first update under a scope. SGD: u = lr g. */
static double first_update(enum pl_clip_scope scope, double limit, double *grad_norm,
                           float change[2])
{
    const int64_t tau[2] = {0, 0};
    struct pl_versions v;
    pl_versions_constant(2, 2, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 2, 1, 1, PL_PARAM_VECTOR, 3, .5, 0);
    struct pl_segment seg = toy_segment("none", NAN, PL_START_ZERO, 2);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    spec.clip = limit;
    spec.clip_scope = scope;
    must(pl_run(&spec, &r));
    for (int s = 0; s < 2; s++) /* reads: update 0, update 1 */
        change[s] = toy_of(p)->reads[s] - toy_of(p)->reads[2 + s];
    double norm = r.rows[0].update_norm;
    *grad_norm = r.rows[0].grad_norm;
    pl_run_free(&r);
    pl_versions_free(&v);
    toy_free(p);
    return norm;
}

START_TEST(clip_scopes)
{
    double N, M;
    float none[2], c[2];
    double u = first_update(PL_CLIP_NONE, .5, &N, none);
    ck_assert_double_eq_tol(u, .05 * N, 1e-6);
    u = first_update(PL_CLIP_GLOBAL, .5, &M, c);
    ck_assert_double_eq(M, N); /* the row has the norm before clipping */
    ck_assert_double_eq_tol(u, .05 * .5 * N / (N + 1e-6), 1e-7);
    ck_assert_double_eq_tol(c[0] / c[1], none[0] / none[1], 1e-4);
    u = first_update(PL_CLIP_STAGE, .5, &M, c);
    ck_assert_double_eq_tol(fabs(c[0]), .05 * .5, 1e-6);
    ck_assert_double_eq_tol(fabs(c[1]), .05 * .5, 1e-6);
    u = first_update(PL_CLIP_STAGE, 1e9, &M, c);
    ck_assert_double_eq(u, first_update(PL_CLIP_NONE, 1, &M, none));
}
END_TEST

/* Rows so far and the update at which it happened; nothing after. */
START_TEST(divergence_is_a_result)
{
    const int64_t tau[1] = {1};
    struct pl_versions v;
    pl_versions_constant(1, 200, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 1, 1, 2, PL_PARAM_VECTOR, 1, 0, 0);
    struct pl_segment seg = toy_segment("none", NAN, PL_START_HOLD, 200);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    if (_i == 0) toy_of(p)->nan_from = 10;
    if (_i == 1) spec.optim.lr = 1.5, spec.diverged_above = 1e4;
    if (_i == 2) toy_of(p)->inf_from = 10;
    spec.eval_every = 5;
    must(pl_run(&spec, &r));
    ck_assert_int_eq(r.status, PL_RUN_DIVERGED);
    ck_assert_int_eq(r.n_rows, r.diverged_at);
    if (_i != 1) ck_assert_int_eq(r.diverged_at, 10);
    ck_assert_int_gt(r.diverged_at, 5);
    ck_assert_int_lt(r.diverged_at, 100);
    for (int64_t n = 0; n < r.n_rows; n++)
        ck_assert(r.rows[n].loss < 1e5 && isfinite(r.rows[n].grad_norm));
    pl_run_free(&r);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

START_TEST(evaluations_and_times)
{
    const int64_t tau[1] = {2};
    struct pl_versions v;
    pl_versions_constant(1, 7, 1, tau, .5, &v);
    struct pl_problem *p = toy_new(dev, 1, 1, 2, PL_PARAM_VECTOR, 1, 0, 0);
    struct pl_segment seg =
        toy_segment(_i ? "feedback" : "none", NAN, PL_START_HOLD, 7);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    spec.eval_every = 3;
    must(pl_run(&spec, &r));
    const int64_t at[] = {0, 3, 6, 7};
    ck_assert_int_eq(r.n_evals, 4);
    for (int i = 0; i < 4; i++) {
        const struct pl_eval *e = &r.evals[i];
        ck_assert_int_eq(e->update, at[i]);
        ck_assert_double_eq_tol(e->time_s, .5 * (double)at[i], 1e-12);
        ck_assert((e->loss_y == e->loss) == (_i == 0 || at[i] == 0));
    }
    /* With no noise the training loss of a synchronous read is the evaluation's. */
    ck_assert_double_eq_tol(r.evals[0].loss, r.rows[0].loss, 1e-12);
    ck_assert_double_eq_tol(r.evals[1].loss, r.rows[5].loss, 1e-12);
    for (int i = 0; i < 7; i++)
        ck_assert_double_eq_tol(r.rows[i].time_s, .5 * (i + 1), 1e-12);
    pl_run_free(&r);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

/* The same spec twice: equal bytes. host against ref: rounding. */
START_TEST(determinism_and_devices)
{
    const int64_t tau[2] = {2, 1};
    struct pl_versions v;
    pl_versions_constant(2, UPDATES, 2, tau, 1, &v);
    struct pl_run_result r[3];
    struct pl_segment seg = toy_segment("nesterov", NAN, PL_START_HOLD, UPDATES);
    const struct pl_device *devices[] = {dev, dev, &pl_device_host};
    if (pl_device_host.open) must(pl_device_host.open());
    for (int k = 0; k < 3; k++) {
        struct pl_problem *p = toy_new(devices[k], 2, 4, 3, PL_PARAM_MATRIX, 1, .5, .1);
        struct pl_run_spec spec = toy_spec(p, &v, &seg);
        spec.optim = some_optimizer(_i);
        spec.eval_every = 4;
        must(pl_run(&spec, &r[k]));
        toy_free(p);
    }
    same_rows(&r[0], &r[1]);
    for (int64_t n = 0; n < UPDATES; n++) {
        ck_assert_double_eq_tol(r[0].rows[n].loss, r[2].rows[n].loss, 1e-4);
        ck_assert_double_eq_tol(r[0].rows[n].update_norm, r[2].rows[n].update_norm,
                                1e-4);
        ck_assert_double_eq_tol(r[0].rows[n].stale_norm, r[2].rows[n].stale_norm, 1e-4);
    }
    for (int k = 0; k < 3; k++) pl_run_free(&r[k]);
    pl_versions_free(&v);
}
END_TEST

static void fill(TCase *t)
{
    int rules = 0;
    while (pl_optim_types[rules]) rules++;
    tcase_add_loop_test(t, delay_0_is_the_plain_loop, 0, rules);
    tcase_add_loop_test(t, reads_what_the_map_says, 0, 3);
    tcase_add_test(t, fused_equals_replayed);
    tcase_add_test(t, clip_scopes);
    tcase_add_loop_test(t, divergence_is_a_result, 0, 3);
    tcase_add_loop_test(t, evaluations_and_times, 0, 2);
    tcase_add_loop_test(t, determinism_and_devices, 0, rules);
}

int main(void)
{
    return run_tests("run", fill);
}
