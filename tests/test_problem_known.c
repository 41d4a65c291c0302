/* What is known exactly of problems without a model: minima and smoothness. */
#include "tests/problem_case.h"

#include <stdlib.h>
#include <string.h>

#include "train/host_problem.h"
#include "train/small_matrix.h"
#include "tests/runner.h"

/* The least value is not undercut, and gradient descent comes within `near` of it. */
static void reaches_minimum(struct pl_problem *p, double rate, int steps, double near)
{
    const size_t n = numbers(p);
    const double f0 = pl_problem_known(p).minimum;
    double *x = point(n, 0), *g = PL_NEW(n, double), f = INFINITY;
    for (int k = 0; k < steps; k++) {
        memset(g, 0, n * sizeof *g);
        f = pl_host_problem_evaluate(p, NULL, x, x, g);
        ck_assert_double_ge(f, f0 - 1e-12);
        for (size_t i = 0; i < n; i++) x[i] -= rate * g[i];
    }
    ck_assert_msg(f < f0 + near, "%s: %.12g after %d steps, minimum %.12g",
                  p->type->name, f, steps, f0);
    free(x);
    free(g);
}

START_TEST(minima)
{
    struct pl_problem_spec spec = small_problem("logistic");
    struct pl_problem *p = open_problem(&spec, 2);
    /* strongly convex: error (1 - l2 / L)^(2 k) */
    reaches_minimum(p, 1 / pl_problem_known(p).L, 4000, 1e-9);
    pl_problem_free(p);
    spec = small_problem("factor");
    spec.rank = 2; /* of 6: the minimum is not 0 */
    p = open_problem(&spec, 1);
    ck_assert_double_gt(pl_problem_known(p).minimum, 0.01);
    reaches_minimum(p, 0.2, 4000, 1e-9);
    pl_problem_free(p);
    spec = small_problem("quadratic");
    spec.cols = 2;
    p = open_problem(&spec, 1);
    reaches_minimum(p, 1, 400, 1e-9);
    pl_problem_free(p);
    spec.spectrum = (struct pl_spectrum){.kind = PL_SPECTRUM_LIST,
                                         .n_values = 6,
                                         .values = (double[]){1, 1, 1, 1, 1, -1}};
    p = open_problem(&spec, 1);
    ck_assert(pl_problem_known(p).minimum == -INFINITY);
    pl_problem_free(p);
}
END_TEST

/* Separable samples without l2: the infimum 0 is approached at infinity; with fewer
 * samples than features there is no Newton step, and nothing is claimed. */
START_TEST(no_minimum)
{
    struct pl_problem_spec spec = small_problem("logistic");
    spec.l2 = 0;
    for (int d = 1; d <= 3; d += 2) {
        spec.size = d;
        spec.samples = d == 1 ? 1 : 2;
        struct pl_problem *p = open_problem(&spec, 1);
        double minimum = pl_problem_known(p).minimum;
        if (d == 1)
            ck_assert_double_lt(fabs(minimum), 1e-9);
        else
            ck_assert_double_nan(minimum);
        pl_problem_free(p);
    }
}
END_TEST

/* ||grad f(x) - grad f(y)|| / ||x - y|| at random pairs and along the gradient
 * difference (power iteration, which finds the largest): never above L, and near it. */
static void smoothness(struct pl_problem *p)
{
    const size_t n = numbers(p);
    const struct pl_problem_known known = pl_problem_known(p);
    double *x = PL_NEW(n, double), *d = point(n, 2), *y = PL_NEW(n, double), best = 0;
    for (int round = 0; round < 200; round++) {
        double *g = PL_NEW(n, double), *h = PL_NEW(n, double);
        double dd = 0, gg = 0, sum = 0, top = 0;
        for (size_t i = 0; i < n; i++) y[i] = x[i] + 1e-3 * d[i];
        pl_host_problem_evaluate(p, NULL, x, x, g);
        pl_host_problem_evaluate(p, NULL, y, y, h);
        for (size_t i = 0; i < n; i++) {
            double change = (h[i] - g[i]) / 1e-3;
            gg += change * change;
            dd += d[i] * d[i];
            sum += fabs(change);
            top = fmax(top, fabs(d[i]));
            y[i] = change;
        }
        for (size_t i = 0; i < n; i++) d[i] = y[i] / sqrt(gg);
        best = fmax(best, sqrt(gg / dd));
        if (p->params[0].kind == PL_PARAM_VECTOR)
            ck_assert_double_le(sum / top, known.L_lmo * (1 + 1e-9));
        free(g), free(h);
    }
    ck_assert_double_le(best, known.L * (1 + 1e-9));
    ck_assert_double_gt(best, known.L * 0.99);
    free(x), free(d), free(y);
}

START_TEST(constants)
{
    struct pl_problem_spec spec = small_problem("quadratic");
    struct pl_problem *p = open_problem(&spec, 2);
    smoothness(p);
    pl_problem_free(p);
    spec.cols = 3;
    p = open_problem(&spec, 1);
    smoothness(p);
    /* sum of the 3 largest of 10^(-i/5); 2 stages: twice that */
    double sum = 1 + pow(10, -0.2) + pow(10, -0.4);
    ck_assert_double_eq_tol(pl_problem_known(p).L_lmo, sum, 1e-12);
    pl_problem_free(p);
    p = open_problem(&spec, 2);
    ck_assert_double_eq_tol(pl_problem_known(p).L_lmo, 2 * sum, 1e-12);
    pl_problem_free(p);
    spec = small_problem("logistic"); /* at w = 0 its Hessian is M itself */
    p = open_problem(&spec, 2);
    smoothness(p);
    pl_problem_free(p);
    spec = small_problem("mlp");
    p = open_problem(&spec, 2);
    ck_assert(isnan(pl_problem_known(p).L) && pl_problem_known(p).minimum == 0);
    pl_problem_free(p);
}
END_TEST

START_TEST(small_matrices)
{
    double A[9] = {4, 2, 0, 2, 5, 1, 0, 1, 3}, b[3] = {8, 15, 11};
    ck_assert_double_eq_tol(pl_symmetric_largest(3, A), 5 + sqrt(3), 1e-11);
    ck_assert(pl_cholesky_solve(3, A, b)); /* x = (1, 2, 3) */
    for (int i = 0; i < 3; i++) ck_assert_double_eq_tol(b[i], i + 1, 1e-14);
    double singular[4] = {1, 1, 1, 1};
    ck_assert(!pl_cholesky_solve(2, singular, b));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, minima);
    tcase_add_test(t, no_minimum);
    tcase_add_test(t, constants);
    tcase_add_test(t, small_matrices);
}

int main(void)
{
    return run_tests("problem_known", fill);
}
