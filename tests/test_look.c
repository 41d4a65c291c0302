/* Every look-ahead corrector against its formulas (train/correct.h) in double: the
 * iterates that forward and backward read, on f = h/2 x^2 + q/4 x^4 under plain
 * descent, where u is known in closed form. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 30, STAGES = 4 };
static const double lr = .05, H = 1, Q = .5;
static const struct pl_device *const dev = &pl_device_ref;

/* reads[n][s], backs[n][s] */
struct trail {
    double reads[UPDATES][STAGES], backs[UPDATES][STAGES], last[STAGES];
};

static void run(const struct pl_corrector *c, enum pl_fidelity fidelity,
                const int64_t *tau, struct trail *out)
{
    struct pl_versions v;
    struct pl_run_result result;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, STAGES, 1, 1, PL_PARAM_VECTOR, H, 0, Q);
    const struct pl_segment segment = {UPDATES, *c};
    struct pl_run_spec spec = toy_spec(p, &v, &segment);
    spec.batch = 1;
    spec.fidelity = fidelity;
    spec.optim = (struct pl_optim){.type = pl_optim_find("sgd"), .lr = lr};
    ck_assert_msg(pl_run(&spec, &result) == 0, "%s", pl_error_text());
    for (int n = 0; n < UPDATES; n++)
        for (int s = 0; s < STAGES; s++) {
            out->reads[n][s] = toy_of(p)->reads[n * STAGES + s];
            out->backs[n][s] = toy_of(p)->backs[n * STAGES + s];
        }
    for (int s = 0; s < STAGES; s++) out->last[s] = toy_of(p)->last[s];
    pl_run_free(&result);
    pl_versions_free(&v);
    toy_free(p);
}

/* The same in double. y and e by version: e[n] is what led to version n. */
static void reference(const struct pl_corrector *corrector, bool nostash,
                      const int64_t *tau, const struct trail *start, int s,
                      struct trail *out)
{
    double x[UPDATES + 1], y[UPDATES + 1], e[UPDATES + 1];
    struct pl_look_args args = {
        .stage = s, .stages = STAGES, .m = 1, .tau = tau[s], .beta = 0};
    for (int n = 0; n < UPDATES; n++) {
        args.tau_mean += (double)(n < tau[s] ? n : tau[s]) / UPDATES;
        if (!nostash) args.tau_back_mean = args.tau_mean;
    }
    struct pl_look look = pl_corrector_look(corrector, &args);
    x[0] = start->reads[0][s];
    y[0] = x[0];
    e[0] = 0;
    for (int n = 0; n < UPDATES; n++) {
        int f = n < tau[s] ? 0 : n - (int)tau[s];
        const double c_back = look.c_back; /* of the update that made version n */
        args.n = n;
        look = pl_corrector_look(corrector, &args);
        double u = lr * (H * x[f] + Q * x[f] * x[f] * x[f]), c = look.c;
        bool hold = n == 0 && corrector->start == PL_START_HOLD;
        if (hold) {
            e[0] = u;
            y[0] = x[0] + c * u;
        }
        if (corrector->gate && n > 0) c *= fmax(0, u * e[n] > 0 ? 1 : -1);
        e[n + 1] = hold ? u : look.smooth * e[n] + (1 - look.smooth) * u;
        y[n + 1] = y[n] - (corrector->type->momentum ? e[n + 1] : u);
        x[n + 1] = y[n + 1] - c * e[n + 1];
        out->reads[n][s] = x[f];
        out->backs[n][s] = !nostash ? x[f] : n == 0 ? x[0] : y[n] - c_back * e[n];
    }
    out->last[s] = y[UPDATES]; /* the last evaluation is at y */
}

/* Some eps per update, of iterates of size 1. */
static const double rounding = UPDATES * 1.2e-7;

static double worst(const struct trail *a, const struct trail *b)
{
    double d = 0;
    for (int s = 0; s < STAGES; s++) {
        for (int n = 0; n < UPDATES; n++) {
            d = fmax(d, fabs(a->reads[n][s] - b->reads[n][s]));
            d = fmax(d, fabs(a->backs[n][s] - b->backs[n][s]));
        }
        d = fmax(d, fabs(a->last[s] - b->last[s]));
    }
    return d;
}

/* Every corrector that looks, with and without stash, both starts, its own smoothing
 * and another, gated or not. */
START_TEST(formulas_hold)
{
    static const int64_t tau[STAGES] = {3, 2, 1, 0};
    int k = _i;
    const struct pl_corrector_type *type = pl_corrector_types[k / 16];
    if (type->grad) return;
    const bool nostash = k & 1;
    struct pl_corrector c =
        pl_corrector_make(type->name, NAN, k & 2 ? PL_START_HOLD : PL_START_ZERO);
    if (!strcmp(type->name, "custom")) c.given = .7;
    if (k & 4 && strcmp(type->name, "nag")) c.smooth = .3;
    c.gate = k & 8 && !nostash;
    static struct trail got, want;
    run(&c, nostash ? PL_FIDELITY_NOSTASH : PL_FIDELITY_STASH, tau, &got);
    for (int s = 0; s < STAGES; s++) reference(&c, nostash, tau, &got, s, &want);
    ck_assert_msg(worst(&got, &want) <= rounding, "%s %d: off by %g", type->name,
                  k % 16, worst(&got, &want));
    c.smooth = .6; /* and the comparison can fail */
    for (int s = 0; s < STAGES; s++) reference(&c, nostash, tau, &got, s, &want);
    bool trivial = !type->look || !strcmp(type->name, "nesterov") ||
                   !strcmp(type->name, "spike") || /* beta is 0 here */
                   (!strcmp(type->name, "discrepancy") && !nostash);
    if (!trivial && !c.gate) ck_assert_double_gt(worst(&got, &want), rounding);
}
END_TEST

/* Delayed Nesterov descent with a constant gamma is the family's c = gamma on
 * heavy-ball EMA updates (papers.md 2.1): the same reads. */
START_TEST(nag_is_nesterov)
{
    static const int64_t tau[STAGES] = {4, 2, 1, 0};
    const double gamma = .8;
    static struct trail a, b;
    struct pl_corrector nag = pl_corrector_make("nag", gamma, PL_START_ZERO);
    run(&nag, PL_FIDELITY_STASH, tau, &a);
    struct pl_versions v;
    struct pl_run_result result;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, STAGES, 1, 1, PL_PARAM_VECTOR, H, 0, Q);
    const struct pl_segment segment = {
        UPDATES, pl_corrector_make("nesterov", NAN, PL_START_ZERO)};
    struct pl_run_spec spec = toy_spec(p, &v, &segment);
    spec.batch = 1;
    spec.optim = (struct pl_optim){
        .type = pl_optim_find("sgd"), .lr = lr, .momentum = gamma, .ema = true};
    ck_assert_msg(pl_run(&spec, &result) == 0, "%s", pl_error_text());
    for (int n = 0; n < UPDATES; n++)
        for (int s = 0; s < STAGES; s++)
            b.reads[n][s] = toy_of(p)->reads[n * STAGES + s];
    for (int n = 0; n < UPDATES; n++)
        for (int s = 0; s < STAGES; s++)
            ck_assert_double_eq_tol(a.reads[n][s], b.reads[n][s], rounding);
    pl_run_free(&result);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

/* w -= eta (a v + b g) with v = m v + g, in double, against c = m (1-m^D) / (1-m). */
START_TEST(spike_is_the_papers_rule)
{
    static const int64_t taus[] = {1, 2, 5};
    const int64_t D = taus[_i];
    const double m = .9, a = pow(m, (double)D), b = (1 - a) / (1 - m);
    const int64_t tau[STAGES] = {D, D, D, D};
    struct pl_versions v;
    struct pl_run_result result;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, STAGES, 1, 1, PL_PARAM_VECTOR, H, 0, Q);
    const struct pl_segment segment = {UPDATES,
                                       pl_corrector_make("spike", NAN, PL_START_ZERO)};
    struct pl_run_spec spec = toy_spec(p, &v, &segment);
    spec.batch = 1;
    spec.optim = (struct pl_optim){
        .type = pl_optim_find("sgd"), .lr = .002, .momentum = m, .first_copies = true};
    ck_assert_msg(pl_run(&spec, &result) == 0, "%s", pl_error_text());
    double w[UPDATES + 1] = {toy_of(p)->reads[0]}, velocity = 0;
    for (int n = 0; n < UPDATES; n++) {
        double x = w[n < D ? 0 : n - D], g = H * x + Q * x * x * x;
        velocity = m * velocity + g;
        w[n + 1] = w[n] - .002 * (a * velocity + b * g);
        ck_assert_double_eq_tol(toy_of(p)->reads[n * STAGES], x, rounding);
    }
    pl_run_free(&result);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

static void fill(TCase *t)
{
    int n = 0;
    while (pl_corrector_types[n]) n++;
    tcase_add_loop_test(t, formulas_hold, 0, 16 * n);
    tcase_add_test(t, nag_is_nesterov);
    tcase_add_loop_test(t, spike_is_the_papers_rule, 0, 3);
}

int main(void)
{
    return run_tests("look", fill);
}
