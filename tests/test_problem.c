/* Problems without a model: gradients, samples, stages, settings. */
#include "tests/problem_case.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/host_problem.h"
#include "tests/runner.h"

/* Every kind, and every variant of it with another gradient. */
static const struct variant {
    const char *name, *what;
    int cols, activation;
    bool full, regression;
} variants[] = {
    {"quadratic", "vector", 0, 0, false, false},
    {"quadratic", "matrix", 3, 0, false, false},
    {"logistic", "batches", 0, 0, false, false},
    {"logistic", "full", 0, 0, true, false},
    {"factor", "square", 0, 0, false, false},
    {"factor", "wide", 9, 0, false, false},
    {"factor", "tall", 5, 0, false, false},
    {"mlp", "gelu", 0, 0, false, false},
    {"mlp", "relu", 0, 1, true, false},
    {"mlp", "tanh", 0, 2, false, true},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static struct pl_problem_spec spec_of(int i)
{
    struct pl_problem_spec spec = small_problem(variants[i].name);
    spec.cols = variants[i].cols;
    spec.activation = variants[i].activation;
    spec.full = variants[i].full;
    spec.classes = !variants[i].regression;
    return spec;
}

/* Central differences with step t: error t^2/6 f''' + eps f/t, below 1e-7 (1 + |f|) for
 * t = 1e-5 and third derivatives of order 1e2. ReLU has none at its kink: with random
 * points no z is within 1e-5 of it (seen here: the test would fail). */
START_TEST(gradients)
{
    struct pl_problem_spec spec = spec_of(_i);
    struct pl_problem *p = open_problem(&spec, 2);
    const size_t n = numbers(p);
    const double t = 1e-5;
    const struct pl_batch batch = {.B = 3, .seed = 8, .index = 4};
    double *x = point(n, 0), *g = PL_NEW(n, double);
    double f = pl_host_problem_evaluate(p, &batch, x, x, g), size = 0;
    for (size_t i = 0; i < n; i++) {
        const double at = x[i];
        x[i] = at + t;
        double up = pl_host_problem_evaluate(p, &batch, x, x, NULL);
        x[i] = at - t;
        double down = pl_host_problem_evaluate(p, &batch, x, x, NULL);
        x[i] = at;
        ck_assert_msg(fabs((up - down) / (2 * t) - g[i]) < 1e-7 * (1 + fabs(f)),
                      "%s %s: number %zu: %.9g by differences, %.9g by backward",
                      variants[_i].name, variants[_i].what, i, (up - down) / (2 * t),
                      g[i]);
        size += fabs(g[i]);
    }
    ck_assert_double_gt(size, 0.01);
    free(x);
    free(g);
    pl_problem_free(p);
}
END_TEST

/* A batch is the mean of its parts, and the exact loss that of all batches' samples. */
START_TEST(batches_are_means)
{
    struct pl_problem_spec spec = spec_of(_i);
    struct pl_problem *p = open_problem(&spec, 1);
    const size_t n = numbers(p);
    double *x = point(n, 1), *whole = PL_NEW(n, double), *parts = PL_NEW(n, double);
    struct pl_batch batch = {.B = 6, .seed = 8, .index = 12};
    double f = pl_host_problem_evaluate(p, &batch, x, x, whole), sum = 0, first = 0;
    for (int k = 0; k < 3; k++) {
        struct pl_batch part = {.B = 2, .seed = 8, .index = 12 + 2 * k};
        double here = pl_host_problem_evaluate(p, &part, x, x, parts);
        if (k == 0) first = here;
        sum += here / 3;
    }
    ck_assert_double_eq_tol(f, sum, 1e-13 * (1 + fabs(f)));
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(whole[i], parts[i] / 3, 1e-13 * (1 + fabs(whole[i])));
    bool sampled = !spec.full &&
                   (spec.type == &pl_problem_logistic || spec.type == &pl_problem_mlp);
    ck_assert_int_eq(fabs(first - f) > 1e-6, sampled);
    double exact = pl_host_problem_evaluate(p, NULL, x, x, NULL);
    ck_assert_int_eq(fabs(exact - f) > 1e-6, sampled);
    free(x);
    free(whole);
    free(parts);
    pl_problem_free(p);
}
END_TEST

/* Float blocks, cut into stages: start, loss and gradient as on one stage, bit for bit.
 * factor's stages hold their columns in another place: its losses only, whose sums have
 * another order. */
START_TEST(stages)
{
    struct pl_problem_spec spec = spec_of(_i);
    spec.noise = 0.1;
    const bool moved = spec.type == &pl_problem_factor;
    struct pl_problem *p[2] = {open_problem(&spec, 1), open_problem(&spec, 3)};
    const size_t n = numbers(p[0]);
    float *w[2], *g[2];
    double loss[2], exact[2];
    ck_assert_uint_eq(numbers(p[1]), n);
    for (int k = 0; k < 2; k++) {
        const struct pl_batch batch = {.B = 2, .seed = 8, .index = 3};
        float *block[3], *grad[3];
        w[k] = PL_NEW(n, float);
        g[k] = PL_NEW(n, float);
        size_t at = 0;
        for (int s = 0; s < p[k]->n_stages; at += p[k]->stage_floats[s++]) {
            block[s] = w[k] + at;
            grad[s] = g[k] + at;
            for (int i = p[k]->first_param[s]; i < p[k]->first_param[s + 1]; i++)
                ck_assert_int_eq(p[k]->params[i].stage, s);
        }
        const float *const *read = (const float *const *)block;
        ck_assert_int_eq(spec.type->init(p[k], 1, block), 0);
        ck_assert_int_eq(
            spec.type->gradient(p[k], &batch, read, read, 0.5, grad, &loss[k]), 0);
        ck_assert_int_eq(spec.type->loss(p[k], &batch, read, &exact[k]), 0);
        ck_assert_uint_gt(pl_problem_bytes(p[k]), n * sizeof(float));
    }
    const double rounding = moved ? 1e-12 : 0;
    ck_assert_double_le(fabs(loss[0] - loss[1]), rounding * loss[0]);
    ck_assert_double_le(fabs(exact[0] - exact[1]), rounding * exact[0]);
    if (!moved) ck_assert_mem_eq(w[0], w[1], n * sizeof(float));
    if (!moved) ck_assert_mem_eq(g[0], g[1], n * sizeof(float));
    for (int k = 0; k < 2; k++) {
        free(w[k]);
        free(g[k]);
        pl_problem_free(p[k]);
    }
}
END_TEST

/* Forward-old, backward-new. The gradient is linear in the matrices that backward
 * reads of one layer, and the last layer's does not read any. */
START_TEST(backward_weights)
{
    struct pl_problem_spec spec = small_problem("mlp");
    spec.layers = 2;
    struct pl_problem *p = open_problem(&spec, 2);
    const size_t n = numbers(p), first = p->stage_floats[0];
    const struct pl_batch batch = {.B = 3, .seed = 8, .index = 4};
    double *x = point(n, 0), *y = point(n, 1), *mix = PL_NEW(n, double);
    double *gx = PL_NEW(n, double), *gy = PL_NEW(n, double), *gm = PL_NEW(n, double);
    for (size_t i = 0; i < n; i++) mix[i] = 2 * x[i] - 3 * y[i];
    double f = pl_host_problem_evaluate(p, &batch, x, x, gx), moved = 0;
    ck_assert(pl_host_problem_evaluate(p, &batch, x, y, gy) == f);
    pl_host_problem_evaluate(p, &batch, x, mix, gm);
    for (size_t i = 0; i < n; i++) {
        if (i >= first) ck_assert(gx[i] == gy[i]);
        if (i < first) {
            double want = 2 * gx[i] - 3 * gy[i];
            ck_assert_double_eq_tol(gm[i], want, 1e-13 * (1 + fabs(want)));
            moved += fabs(gx[i] - gy[i]);
        }
    }
    ck_assert_double_gt(moved, 0.01);
    free(x), free(y), free(mix), free(gx), free(gy), free(gm);
    pl_problem_free(p);
}
END_TEST

START_TEST(spectra)
{
    double h[5], values[5] = {3, 0, -1, 2, 1};
    struct pl_spectrum s = {PL_SPECTRUM_LOG, 4, 16, 2, 0, NULL};
    static const double want[][5] = {{4, 2, 1, .5, .25},
                                     {4, 3.0625, 2.125, 1.1875, .25},
                                     {4, 4, 4, 4, 4},
                                     {4, 1, 4. / 9, .25, .16},
                                     {3, 0, -1, 2, 1}};
    for (int k = 0; pl_spectrum_names[k]; k++) {
        s.kind = (enum pl_spectrum_kind)k;
        s.values = values;
        s.n_values = 5;
        ck_assert_int_eq(pl_spectrum_fill(&s, 5, h), 0);
        for (int i = 0; i < 5; i++) ck_assert_double_eq_tol(h[i], want[k][i], 1e-14);
    }
    ck_assert_int_eq(pl_spectrum_fill(&s, 4, h), PL_ECONFIG);
    values[3] = NAN;
    ck_assert_int_eq(pl_spectrum_fill(&s, 5, h), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "curvature 3"));
}
END_TEST

/* Columns orthonormal to rounding, and further from the axes with more rotation. */
START_TEST(bases)
{
    enum { n = 12 };
    double before = 1;
    ck_assert_ptr_null(pl_spectrum_basis(1, 0, n));
    for (int step = 1; step <= 4; step++) {
        double *q = pl_spectrum_basis(1, step / 4.0, n), diagonal = 0;
        for (int i = 0; i < n; i++) {
            diagonal += q[i * n + i] * q[i * n + i] / n;
            for (int j = 0; j < n; j++) {
                double dot = 0;
                for (int k = 0; k < n; k++) dot += q[k * n + i] * q[k * n + j];
                ck_assert_double_eq_tol(dot, i == j, 1e-14);
            }
        }
        ck_assert_double_lt(diagonal, before);
        before = diagonal;
        free(q);
    }
    ck_assert_double_lt(before, 0.5);
}
END_TEST

static void refused(struct pl_problem_spec spec, int P, const char *text)
{
    struct pl_problem *p = (struct pl_problem *)&p;
    ck_assert_int_lt(spec.type->open(&spec, &pl_device_ref, P, &p), 0);
    ck_assert_ptr_null(p);
    ck_assert_msg(strstr(pl_error_text(), text), "%s", pl_error_text());
}

START_TEST(bad_settings)
{
    double negative[6] = {1, 1, 1, 1, 1, -1}, none[6] = {0};
    struct pl_spectrum list = {.kind = PL_SPECTRUM_LIST, .n_values = 6};
    struct pl_problem_spec s = small_problem("logistic");
    refused(s, 7, "7 stages for 6 features");
    s.spectrum = list;
    s.spectrum.values = negative;
    refused(s, 1, "variance 5");
    s.spectrum.values = none;
    refused(s, 1, "all features are 0");
    s = small_problem("factor");
    refused(s, 5, "problem.rank");
    s.spectrum = list;
    s.spectrum.values = negative;
    refused(s, 1, "singular value 5");
    s = small_problem("mlp");
    refused(s, 5, "5 stages for 4 layers");
    s.outputs = 1;
    refused(s, 1, "problem.outputs");
    s.width = 46341;
    refused(s, 1, "problem.size, width, outputs");
    s = small_problem("quadratic");
    s.size = s.cols = 65536;
    refused(s, 1, "at most");
    ck_assert_ptr_null(pl_problem_find("cubic"));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, gradients, 0, N_VARIANTS);
    tcase_add_loop_test(t, batches_are_means, 0, N_VARIANTS);
    tcase_add_loop_test(t, stages, 0, N_VARIANTS);
    tcase_add_test(t, backward_weights);
    tcase_add_test(t, spectra);
    tcase_add_test(t, bases);
    tcase_add_test(t, bad_settings);
}

int main(void)
{
    return run_tests("problem", fill);
}
