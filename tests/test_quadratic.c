/* The quadratic problem against its closed forms. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/problem.h"
#include "tests/runner.h"

enum { N = 7 };
static const double h[N] = {4, 2, 1, 0.5, 0.25, 0, -0.125};

/* Weights or gradients of all stages in one array, cut as the problem says. */
struct blocks {
    float all[N], *stage[N];
};

static void cut(struct blocks *b, const struct pl_problem *p)
{
    memset(b->all, 0, sizeof b->all);
    float *next = b->all;
    for (int s = 0; s < p->n_stages; s++) {
        b->stage[s] = next;
        next += p->stage_floats[s];
    }
    ck_assert_ptr_eq(next, b->all + N);
}

static int open_quadratic(const double *values, int n, int P, uint64_t rotate,
                          double noise, struct pl_problem **p)
{
    const struct pl_problem_type *type = pl_problem_find("quadratic");
    struct pl_problem_spec spec = {
        .type = type,
        .seed = rotate,
        .size = n,
        .spectrum = {.kind = PL_SPECTRUM_LIST, .n_values = n, .values = values},
        .rotation = rotate ? 1 : 0,
        .noise = noise};
    return type->open(&spec, &pl_device_ref, P, p);
}

static struct pl_problem *create(int P, uint64_t rotate, double noise)
{
    struct pl_problem *p;
    int rc = open_quadratic(h, N, P, rotate, noise, &p);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    return p;
}

static double gradient_at(struct pl_problem *p, struct blocks *w, struct blocks *g,
                          int64_t index, double scale)
{
    struct pl_batch batch = {.B = 1, .T = 1, .seed = 9, .index = index};
    const float *const *stage = (const float *const *)w->stage;
    double loss;
    ck_assert_int_eq(p->type->gradient(p, &batch, stage, stage, scale, g->stage, &loss),
                     0);
    double same;
    ck_assert_int_eq(p->type->loss(p, &batch, stage, &same), 0);
    ck_assert(loss == same);
    return loss;
}

START_TEST(eigenbasis_is_exact)
{
    struct pl_problem *p = create(_i, 0, 0);
    struct blocks w, g;
    cut(&w, p);
    cut(&g, p);
    ck_assert_int_eq(p->type->init(p, 1, w.stage), 0);
    double half_trace = 0;
    for (int i = 0; i < N; i++) {
        ck_assert(w.all[i] == 1);
        half_trace += h[i] / 2;
        w.all[i] = (float)(i + 1);
    }
    ck_assert(gradient_at(p, &w, &g, 0, 2) != half_trace);
    for (int i = 0; i < N; i++) ck_assert(g.all[i] == (float)(2 * h[i] * (i + 1)));
    gradient_at(p, &w, &g, 0, -2); /* adds to what is there */
    for (int i = 0; i < N; i++) ck_assert(g.all[i] == 0);
    ck_assert_int_eq(p->type->init(p, 1, w.stage), 0);
    ck_assert(gradient_at(p, &w, &g, 0, 1) == half_trace);
    ck_assert_uint_gt(pl_problem_bytes(p), N * sizeof(float));
    pl_problem_free(p);
}
END_TEST

/* Invariants of an orthogonal basis at z = 1: |x|^2 = n, f = sum h/2, |g|^2 = sum h^2,
 * x.g = sum h; each holds to n float roundings of its terms. */
START_TEST(rotation_keeps_invariants)
{
    struct pl_problem *p = create(3, 42, 0);
    struct blocks w, g;
    cut(&w, p);
    cut(&g, p);
    ck_assert_int_eq(p->type->init(p, 1, w.stage), 0);
    double loss = gradient_at(p, &w, &g, 0, 1), xx = 0, gg = 0, xg = 0, h1 = 0, h2 = 0,
           off_axis = 0;
    for (int i = 0; i < N; i++) {
        xx += w.all[i] * w.all[i];
        gg += g.all[i] * g.all[i];
        xg += w.all[i] * g.all[i];
        h1 += h[i];
        h2 += h[i] * h[i];
        off_axis += fabs(w.all[i] - 1);
    }
    double tolerance = 4 * N * (double)FLT_EPSILON;
    ck_assert_double_lt(fabs(loss - h1 / 2), tolerance * h1);
    ck_assert_double_lt(fabs(xx - N), tolerance * N);
    ck_assert_double_lt(fabs(gg - h2), tolerance * h2);
    ck_assert_double_lt(fabs(xg - h1), tolerance * h1);
    ck_assert_double_gt(off_axis, 0.1);
    pl_problem_free(p);
}
END_TEST

START_TEST(stages_do_not_change_it)
{
    struct pl_problem *one = create(1, 5, 0.5), *many = create(_i, 5, 0.5);
    struct blocks w1, g1, wP, gP;
    cut(&w1, one);
    cut(&g1, one);
    cut(&wP, many);
    cut(&gP, many);
    ck_assert_int_eq(one->type->init(one, 1, w1.stage), 0);
    ck_assert_int_eq(many->type->init(many, 2, wP.stage), 0);
    ck_assert(gradient_at(one, &w1, &g1, 3, 1) == gradient_at(many, &wP, &gP, 3, 1));
    ck_assert_mem_eq(w1.all, wP.all, sizeof w1.all);
    ck_assert_mem_eq(g1.all, gP.all, sizeof g1.all);
    for (int s = 0; s < _i; s++) {
        ck_assert_int_eq(many->first_param[s], s);
        ck_assert_int_eq(many->params[s].stage, s);
        ck_assert_uint_eq(pl_param_size(&many->params[s]), many->stage_floats[s]);
    }
    pl_problem_free(one);
    pl_problem_free(many);
}
END_TEST

/* Mean and variance of the noise within 5 standard errors of 0 and noise^2. */
START_TEST(noise_has_its_size)
{
    enum { DRAWS = 2000 };
    const double noise = 0.5;
    struct pl_problem *p = create(2, 0, noise);
    struct blocks w, g;
    double sum = 0, squares = 0;
    cut(&w, p); /* weights 0: the gradient is the noise */
    for (int64_t k = 0; k < DRAWS; k++) {
        cut(&g, p);
        gradient_at(p, &w, &g, k, 1);
        for (int i = 0; i < N; i++) {
            sum += g.all[i];
            squares += (double)g.all[i] * g.all[i];
        }
    }
    double n = (double)DRAWS * N;
    ck_assert_double_lt(fabs(sum / n), 5 * noise / sqrt(n));
    ck_assert_double_lt(fabs(squares / n - noise * noise),
                        5 * noise * noise * sqrt(2 / n));
    pl_problem_free(p);
}
END_TEST

START_TEST(bad_arguments)
{
    struct pl_problem *p = (struct pl_problem *)&p;
    double bad[2] = {1, NAN};
    ck_assert_int_eq(open_quadratic(h, 0, 1, 0, 0, &p), PL_ECONFIG);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(open_quadratic(h, N, N + 1, 0, 0, &p), PL_ECONFIG);
    ck_assert_int_eq(open_quadratic(h, N, 0, 0, 0, &p), PL_ECONFIG);
    ck_assert_int_eq(open_quadratic(h, N, 1, 0, -1, &p), PL_ECONFIG);
    ck_assert_int_eq(open_quadratic(h, N, 1, 0, NAN, &p), PL_ECONFIG);
    ck_assert_int_eq(open_quadratic(bad, 2, 1, 0, 0, &p), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "curvature 1"));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, eigenbasis_is_exact, 1, N + 1);
    tcase_add_test(t, rotation_keeps_invariants);
    tcase_add_loop_test(t, stages_do_not_change_it, 1, N + 1);
    tcase_add_test(t, noise_has_its_size);
    tcase_add_test(t, bad_arguments);
}

int main(void)
{
    return run_tests("quadratic", fill);
}
