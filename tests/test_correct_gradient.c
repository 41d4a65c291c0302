/* Correctors of the gradient against their formulas in double, under plain descent on
 * f = h/2 x^2 + q/4 x^4. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 30 };
static const double lr = .05, H = 1, Q = .5;

static void run(const struct pl_segment *segments, int n_segments, int64_t tau,
                double reads[UPDATES])
{
    struct pl_versions v;
    struct pl_run_result result;
    pl_versions_constant(1, UPDATES, 1, &tau, 1, &v);
    struct pl_problem *p = toy_new(&pl_device_ref, 1, 1, 1, PL_PARAM_VECTOR, H, 0, Q);
    struct pl_run_spec spec = toy_spec(p, &v, segments);
    spec.n_segments = n_segments;
    spec.batch = 1;
    spec.optim = (struct pl_optim){.type = pl_optim_find("sgd"), .lr = lr};
    ck_assert_msg(pl_run(&spec, &result) == 0, "%s", pl_error_text());
    for (int n = 0; n < UPDATES; n++) reads[n] = toy_of(p)->reads[n];
    pl_run_free(&result);
    pl_versions_free(&v);
    toy_free(p);
}

/* reads by the formulas; lambda NaN: the paper's. */
static void reference(const char *name, double lambda, int64_t tau, double x0,
                      double reads[UPDATES])
{
    double x[UPDATES + 1] = {x0}, square = 0, step = 0;
    for (int n = 0; n < UPDATES; n++) {
        double then = x[n < tau ? 0 : n - tau], g = H * then + Q * then * then * then;
        double gap = x[n] - then;
        reads[n] = then;
        if (!strcmp(name, "dcasgd")) g += (isnan(lambda) ? .04 : lambda) * g * g * gap;
        if (!strcmp(name, "dcasgd_adaptive")) {
            square = .95 * square + .05 * g * g;
            g += (isnan(lambda) ? 2 : lambda) / sqrt(square + 1e-7) * g * g * gap;
        }
        if (!strcmp(name, "gapaware") && n > 0) {
            square = .999 * square + .001 * step * step;
            g /= 1 + fabs(gap) / (sqrt(square / (1 - pow(.999, n))) + 1e-8);
        }
        step = lr * g;
        x[n + 1] = x[n] - step;
    }
}

static const char *const names[] = {"dcasgd", "dcasgd_adaptive", "gapaware"};
static const double rounding = UPDATES * 1.2e-7 * 10; /* quotients of small numbers */

static double worst(const double *a, const double *b)
{
    double d = 0;
    for (int n = 0; n < UPDATES; n++) d = fmax(d, fabs(a[n] - b[n]));
    return d;
}

START_TEST(formulas_hold)
{
    const char *name = names[_i % 3];
    const int64_t tau = _i / 3 % 2 ? 3 : 1;
    const double lambda = _i / 6 && _i % 3 < 2 ? .5 : NAN;
    struct pl_segment g = toy_segment(name, NAN, PL_START_HOLD, UPDATES);
    double got[UPDATES], want[UPDATES], plain[UPDATES];
    g.corrector.lambda = lambda;
    run(&g, 1, tau, got);
    reference(name, lambda, tau, got[0], want);
    reference("none", NAN, tau, got[0], plain);
    ck_assert_msg(worst(got, want) <= rounding, "%s: off by %g", name,
                  worst(got, want));
    ck_assert_double_gt(worst(got, plain), 10 * rounding);
}
END_TEST

/* Without delay a gradient is as it was, bit for bit. */
START_TEST(nothing_late_is_changed)
{
    const struct pl_segment g = toy_segment(names[_i], NAN, PL_START_HOLD, UPDATES);
    const struct pl_segment none = toy_segment("none", NAN, PL_START_HOLD, UPDATES);
    double got[UPDATES], plain[UPDATES];
    run(&g, 1, 0, got);
    run(&none, 1, 0, plain);
    ck_assert_mem_eq(got, plain, sizeof got);
}
END_TEST

/* The state of one corrector is not the next one's: after a switch it starts anew. */
START_TEST(a_stretch_starts_with_empty_state)
{
    const struct pl_segment two[2] = {
        toy_segment("dcasgd_adaptive", NAN, PL_START_HOLD, 10),
        toy_segment("gapaware", NAN, PL_START_HOLD, UPDATES - 10)};
    double got[UPDATES], first[UPDATES];
    run(two, 2, 1, got);
    reference("dcasgd_adaptive", NAN, 1, got[0], first);
    for (int n = 0; n <= 11; n++) ck_assert_double_eq_tol(got[n], first[n], rounding);
    /* update 10 has seen one step, that of update 9 */
    double x9 = got[10], x10 = got[11], u9 = x9 - x10;
    double g = H * x9 + Q * x9 * x9 * x9, c = fabs(u9);
    double want = x10 - lr * g / (1 + fabs(x10 - x9) / (c + 1e-8));
    ck_assert_double_eq_tol(got[12], want, rounding);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, formulas_hold, 0, 12);
    tcase_add_loop_test(t, nothing_late_is_changed, 0, 3);
    tcase_add_test(t, a_stretch_starts_with_empty_state);
}

int main(void)
{
    return run_tests("correct_gradient", fill);
}
