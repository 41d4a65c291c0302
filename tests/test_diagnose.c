/* Diagnosis: what it says of runs whose answers are known, and that it changes nothing.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 20, STAGES = 2, EVERY = 5 };
static volatile sig_atomic_t stop;
static const char path[] = "test_diagnose.ckp";

struct options {
    const char *optimizer;
    int64_t tau;
    double noise;
    bool diagnose, resume;
    int64_t stop_after;
};

static void on_row(void *context, const struct pl_row *row)
{
    const struct options *o = context;
    if (o->stop_after && row->update + 1 == o->stop_after) stop = 1;
}

static void run(const struct options *o, struct pl_run_result *out)
{
    const int64_t tau[STAGES] = {o->tau, 0};
    struct pl_versions v;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p =
        toy_new(&pl_device_ref, STAGES, 1, 3, PL_PARAM_VECTOR, 1, o->noise, .5);
    const struct pl_segment segment = toy_segment("none", NAN, PL_START_HOLD, UPDATES);
    struct pl_run_spec spec = toy_spec(p, &v, &segment);
    spec.batch = 2;
    spec.optim = (struct pl_optim){.type = pl_optim_find(o->optimizer),
                                   .lr = .05,
                                   .beta1 = .9,
                                   .beta2 = .95,
                                   .eps = 1e-8};
    spec.eval_every = EVERY;
    spec.diagnose = o->diagnose;
    spec.checkpoint = o->stop_after || o->resume ? path : NULL;
    spec.resume = o->resume;
    spec.stop = &stop;
    spec.on_row = on_row;
    spec.context = (void *)o;
    stop = 0;
    ck_assert_msg(pl_run(&spec, out) == 0, "%s", pl_error_text());
    pl_versions_free(&v);
    toy_free(p);
}

static const struct pl_diag *find(const struct pl_run_result *r, int64_t n, int stage)
{
    for (int64_t i = 0; i < r->n_diags; i++)
        if (r->diags[i].update == n && r->diags[i].stage == stage) return &r->diags[i];
    ck_abort_msg("no row of update %d", (int)n);
    return NULL;
}

START_TEST(without_delay_nothing_differs)
{
    const struct options o = {
        .optimizer = _i ? "adamw" : "sgd", .noise = .3, .diagnose = true};
    struct pl_run_result r;
    run(&o, &r);
    ck_assert_int_eq(r.n_diags, STAGES * UPDATES / EVERY);
    for (int64_t i = 0; i < r.n_diags; i++) {
        ck_assert_double_eq_tol(r.diags[i].cos_gradient, 1, 1e-12);
        ck_assert_double_eq_tol(r.diags[i].cos_update, 1, 1e-6);
        ck_assert_double_eq(r.diags[i].distance, 0);
        ck_assert(!isfinite(r.diags[i].half_life)); /* over a delay of 0 */
    }
    ck_assert(isnan(find(&r, 0, 0)->turning));
    pl_run_free(&r);
}
END_TEST

/* Steep descent with delay 1 oscillates: the late gradient is that of the other side
 * and the cosines, products of one coordinate each, have signs known from the row. */
START_TEST(late_updates_are_seen)
{
    const struct options late = {
        .optimizer = "adamw", .tau = 3, .noise = .3, .diagnose = true};
    struct pl_run_result r;
    run(&late, &r);
    const struct pl_diag *d = find(&r, 10, 0), *fresh = find(&r, 10, 1);
    ck_assert_double_eq(d->tau, 3);
    ck_assert_double_lt(d->cos_gradient, 1 - 1e-6);
    ck_assert_double_lt(d->cos_update, 1 - 1e-9);
    ck_assert_double_gt(d->distance, 0);
    ck_assert_double_eq_tol(fresh->cos_gradient, 1, 1e-12);
    ck_assert_double_eq_tol(d->half_life, log(.5) / log(.9) / 3, 1e-12);
    /* over all stages they are the row's norms */
    double grad = hypot(d->grad_norm, fresh->grad_norm);
    ck_assert_double_eq_tol(grad, r.rows[10].grad_norm, 1e-12);
    ck_assert_double_eq_tol(hypot(d->update_norm, fresh->update_norm),
                            r.rows[10].update_norm, 1e-12);
    ck_assert_double_eq_tol(hypot(d->distance, fresh->distance), r.rows[10].stale_norm,
                            1e-12);
    pl_run_free(&r);
}
END_TEST

START_TEST(rows_are_as_without)
{
    struct options o = {.optimizer = "adamw", .tau = 2, .noise = .3};
    struct pl_run_result plain, seen;
    run(&o, &plain);
    o.diagnose = true;
    run(&o, &seen);
    ck_assert_int_eq(plain.n_diags, 0);
    ck_assert_mem_eq(plain.rows, seen.rows, sizeof *plain.rows * UPDATES);
    ck_assert_mem_eq(plain.evals, seen.evals,
                     sizeof *plain.evals * (size_t)plain.n_evals);
    pl_run_free(&plain);
    pl_run_free(&seen);
}
END_TEST

START_TEST(resumes)
{
    struct options o = {.optimizer = "adamw", .tau = 2, .noise = .3, .diagnose = true};
    struct pl_run_result whole, part;
    run(&o, &whole);
    o.stop_after = _i; /* 5: right before an update that is diagnosed */
    run(&o, &part);
    ck_assert_int_eq(part.status, PL_RUN_INTERRUPTED);
    pl_run_free(&part);
    o.stop_after = 0;
    o.resume = true;
    run(&o, &part);
    ck_assert_int_eq(part.n_diags, whole.n_diags);
    ck_assert_mem_eq(part.diags + 2, whole.diags + 2,
                     sizeof *part.diags * (size_t)(part.n_diags - 2));
    pl_run_free(&part);
    pl_run_free(&whole);
    unlink(path);
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, without_delay_nothing_differs, 0, 2);
    tcase_add_test(t, late_updates_are_seen);
    tcase_add_test(t, rows_are_as_without);
    tcase_add_loop_test(t, resumes, 4, 7);
}

int main(void)
{
    return run_tests("diagnose", fill);
}
