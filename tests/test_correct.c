/* Delay correctors: equivalences of the c-family, starts, segments, and the stability
 * limit of the linear theory seen in the running loop. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "theory/stability.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 40, WIDTH = 3 };
static const struct pl_device *const dev = &pl_device_ref;

/* A run on a nonlinear noisy toy; what forward read at every update, and y at the end.
 */
struct trail {
    float x[UPDATES][2][WIDTH], last[2][WIDTH];
    struct pl_run_result result;
};

static struct pl_optim optimizer(const char *name)
{
    return (struct pl_optim){.type = pl_optim_find(name),
                             .lr = .02,
                             .aux_lr = .02,
                             .beta1 = .9,
                             .beta2 = .95,
                             .eps = 1e-8,
                             .momentum = .9,
                             .ema = true,
                             .ns_steps = 5};
}

static void run_trail(const int64_t tau[2], int n_segments,
                      const struct pl_segment *segments, const struct pl_optim *o,
                      struct trail *out)
{
    struct pl_versions v;
    pl_versions_constant(2, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 2, 1, WIDTH, PL_PARAM_VECTOR, 1, .5, .1);
    struct pl_run_spec spec = toy_spec(p, &v, segments);
    spec.n_segments = n_segments;
    spec.optim = *o;
    spec.rate = (struct pl_rate){
        .kind = PL_RATE_COSINE, .warmup = 5, .total = UPDATES, .floor = .1};
    spec.eval_every = 7;
    ck_assert_msg(pl_run(&spec, &out->result) == 0, "%s", pl_error_text());
    ck_assert_int_eq(toy_of(p)->n_reads, UPDATES);
    memcpy(out->x, toy_of(p)->reads, sizeof out->x);
    memcpy(out->last, toy_of(p)->last, sizeof out->last);
    pl_versions_free(&v);
    toy_free(p);
}

static void run_one(int64_t tau0, int64_t tau1, const char *corrector, double c,
                    enum pl_corrector_start start, const struct pl_optim *o,
                    struct trail *out)
{
    const int64_t tau[2] = {tau0, tau1};
    struct pl_segment g = toy_segment(corrector, c, start, UPDATES);
    run_trail(tau, 1, &g, o, out);
}

static double distance(const void *a, const void *b, size_t bytes)
{
    const float *x = a, *y = b;
    double worst = 0;
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        worst = fmax(worst, fabs(x[i] - y[i]));
    return worst;
}

/* Rounding of weights of size about 1: some eps(float32) per update, and Adam's
 * division can amplify what differs in g by 1/sqrt(v) (about 10 here). */
static const double rounding = UPDATES * 1.2e-7 * 10;

static struct pl_look look_of(const char *name, double given, int64_t tau)
{
    const struct pl_corrector c = {
        .type = pl_corrector_find(name), .given = given, .smooth = NAN, .lambda = NAN};
    const struct pl_look_args args = {
        .stages = 1, .m = 1, .tau = tau, .tau_mean = (double)tau, .beta = .9};
    return pl_corrector_look(&c, &args);
}

START_TEST(coefficients)
{
    static const struct {
        const char *name;
        double c0, c1, c4;
    } want[] = {{"none", 0, 0, 0},
                {"nesterov", .9, .9, .9},
                {"feedback", 0, 1, 1},
                {"prediction", 0, 1, 4},
                {"custom", NAN, NAN, NAN}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const char *name = want[i].name;
        ck_assert_int_eq(pl_corrector_find(name)->at_read, !strcmp(name, "prediction"));
        ck_assert_double_eq(look_of(name, .25, 3).c, strcmp(name, "none") ? .25 : 0);
        ck_assert_double_eq(look_of(name, .25, 3).smooth, 0);
        if (isnan(want[i].c0)) {
            ck_assert(isnan(look_of(name, NAN, 1).c));
            continue;
        }
        ck_assert_double_eq(look_of(name, NAN, 0).c, want[i].c0);
        ck_assert_double_eq(look_of(name, NAN, 1).c, want[i].c1);
        ck_assert_double_eq(look_of(name, NAN, 4).c, want[i].c4);
        ck_assert_double_eq(look_of(name, NAN, 4).c_back, want[i].c4);
    }
    for (int i = 0; pl_corrector_types[i]; i++) {
        const struct pl_corrector_type *t = pl_corrector_types[i];
        ck_assert_str_eq(t->name, pl_corrector_names()[i]);
        ck_assert_ptr_eq(pl_corrector_find(t->name), t);
    }
    ck_assert_ptr_null(pl_corrector_find("ef"));
}
END_TEST

/* Error feedback = delayed y with extrapolated reads, to rounding: starts zero and
 * hold, tau 1, 2, 4, c = 1 and tau, Adam and SGD, decay 0; and not with the wrong c. */
START_TEST(feedback_is_prediction)
{
    static const int64_t taus[] = {1, 2, 4};
    const int64_t tau = taus[_i % 3];
    const double c = _i / 3 % 2 ? (double)tau : 1;
    const enum pl_corrector_start start = _i / 6 % 2 ? PL_START_HOLD : PL_START_ZERO;
    const struct pl_optim o = optimizer(_i / 12 ? "sgd" : "adamw");
    static struct trail ef, la, other;
    run_one(tau, 1, "custom", c, start, &o, &ef);
    run_one(tau, 1, "prediction", c, start, &o, &la);
    run_one(tau, 1, "prediction", c + .5, start, &o, &other);
    ck_assert_double_le(distance(ef.x, la.x, sizeof ef.x), rounding);
    ck_assert_double_gt(distance(ef.x, other.x, sizeof ef.x), 10 * rounding);
    /* The other iterate: y of error feedback is what prediction stores. */
    for (int64_t i = 0; i < ef.result.n_evals; i++) {
        const struct pl_eval *e = &ef.result.evals[i], *l = &la.result.evals[i];
        ck_assert_double_eq(l->loss, l->loss_y);
        if (i > 0) {
            ck_assert_double_eq_tol(e->loss_y, l->loss, 10 * rounding);
            ck_assert_double_ne(e->loss, e->loss_y);
        }
    }
    pl_run_free(&ef.result);
    pl_run_free(&la.result);
    pl_run_free(&other.result);
}
END_TEST

/* c = 0, whoever says it, is plain delay bit for bit. */
START_TEST(no_look_ahead_is_plain)
{
    static const char *const names[] = {"custom", "prediction", "feedback",
                                        "prediction"};
    static const double c[] = {0, 0, 0,
                               NAN}; /* prediction: its own, on stages without delay */
    const struct pl_optim o = optimizer("adamw");
    const int64_t tau = _i == 3 ? 0 : 2;
    static struct trail plain, zero;
    run_one(tau, tau, "none", NAN, PL_START_HOLD, &o, &plain);
    run_one(tau, tau, names[_i], c[_i], PL_START_ZERO, &o, &zero);
    ck_assert_mem_eq(plain.x, zero.x, sizeof plain.x);
    ck_assert_mem_eq(plain.last, zero.last, sizeof plain.last);
    ck_assert_mem_eq(plain.result.evals, zero.result.evals,
                     sizeof *plain.result.evals * (size_t)plain.result.n_evals);
    pl_run_free(&plain.result);
    pl_run_free(&zero.result);
}
END_TEST

/* x[n+1] - x[n] from the rows of the loop itself, SGD without momentum: u_n = lr rate
 * g_n is what a plain run from the same reads gives, so check through the definition
 * with u taken from the first steps: zero starts with (1+c) u_0, hold with u_0. */
START_TEST(starts)
{
    struct pl_optim o = optimizer("sgd");
    o.momentum = 0;
    static struct trail plain, zero, hold;
    run_one(1, 1, "none", NAN, PL_START_ZERO, &o, &plain);
    run_one(1, 1, _i ? "prediction" : "custom", 2, PL_START_ZERO, &o, &zero);
    run_one(1, 1, _i ? "prediction" : "custom", 2, PL_START_HOLD, &o, &hold);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < WIDTH; i++) {
            /* updates 0 and 1 both read version 0; version 1 shows at update 2 */
            double x0 = plain.x[0][s][i], u0 = x0 - plain.x[2][s][i];
            double u1 = plain.x[2][s][i] - plain.x[3][s][i];
            ck_assert_double_eq_tol(zero.x[2][s][i], x0 - 3 * u0, 1e-6);
            ck_assert_double_eq_tol(hold.x[2][s][i], x0 - u0, 1e-6);
            ck_assert_double_eq_tol(zero.x[3][s][i], x0 - u0 - 3 * u1, 1e-6);
            ck_assert_double_eq_tol(hold.x[3][s][i], x0 + u0 - 3 * u1, 1e-6);
        }
    pl_run_free(&plain.result);
    pl_run_free(&zero.result);
    pl_run_free(&hold.result);
}
END_TEST

/* A stretch of plain delay, then a corrected one, then plain: u history and moments go
 * on, x is kept. Either member of the pair feedback/look-ahead gives the same reads;
 * one stretch cut in two is one stretch. */
START_TEST(segments)
{
    const struct pl_optim o = optimizer("adamw");
    const int64_t tau[2] = {1, 1};
    static struct trail a, b, whole, cut;
    struct pl_segment three[3] = {
        toy_segment("none", NAN, PL_START_ZERO, 10),
        toy_segment("feedback", NAN, PL_START_ZERO, 15),
        toy_segment("none", NAN, PL_START_ZERO, UPDATES - 25)};
    run_trail(tau, 3, three, &o, &a);
    three[1] = toy_segment("prediction", 1, PL_START_ZERO, 15);
    run_trail(tau, 3, three, &o, &b);
    ck_assert_double_le(distance(a.x, b.x, sizeof a.x), rounding);
    run_one(1, 1, "none", NAN, PL_START_ZERO, &o, &whole);
    /* version 10 is the last plain one; update 12 is the first to read version 11 */
    ck_assert_mem_eq(a.x, whole.x, sizeof(float) * 12 * 2 * WIDTH);
    ck_assert_double_gt(distance(a.x[12], whole.x[12], sizeof a.x[12]), 1e-4);
    struct pl_segment two[2] = {
        toy_segment("feedback", NAN, PL_START_HOLD, 13),
        toy_segment("feedback", NAN, PL_START_HOLD, UPDATES - 13)};
    run_trail(tau, 2, two, &o, &cut);
    pl_run_free(&whole.result);
    run_one(1, 1, "feedback", NAN, PL_START_HOLD, &o, &whole);
    ck_assert_mem_eq(cut.x, whole.x, sizeof cut.x);
    ck_assert_mem_eq(cut.result.evals, whole.result.evals,
                     sizeof *cut.result.evals * (size_t)cut.result.n_evals);
    pl_run_free(&a.result);
    pl_run_free(&b.result);
    pl_run_free(&whole.result);
    pl_run_free(&cut.result);
}
END_TEST

/* Landing on y: what the plain stretch starts from is x + c u of the corrected one,
 * which is what `prediction` stores. SGD without momentum: u[n] from x[n+1] = x[n] - 3
 * u[n] + 2 u[n-1]; version n shows at update n + 1. */
START_TEST(a_stretch_may_land_on_y)
{
    struct pl_optim o = optimizer("sgd");
    o.momentum = 0;
    const int64_t tau[2] = {1, 1};
    static struct trail kept, landed;
    struct pl_segment two[2] = {
        toy_segment(_i ? "prediction" : "custom", 2, PL_START_ZERO, 10),
        toy_segment("none", NAN, PL_START_ZERO, UPDATES - 10)};
    run_trail(tau, 2, two, &o, &kept);
    two[1].corrector.land = true;
    run_trail(tau, 2, two, &o, &landed);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < WIDTH; i++) {
            double u = 0;
            for (int n = 0; n < 10; n++)
                u = (kept.x[n ? n + 1 : 0][s][i] - kept.x[n + 2][s][i] + 2 * u) / 3;
            ck_assert_double_eq_tol(landed.x[11][s][i], kept.x[11][s][i] + 2 * u, 1e-5);
            ck_assert_double_ne(landed.x[11][s][i], kept.x[11][s][i]);
        }
    pl_run_free(&kept.result);
    pl_run_free(&landed.result);
}
END_TEST

/* The step after a switch uses the update before it: x[n+1] = x[n] - 2 u_n + u_{n-1}.
 */
START_TEST(history_crosses_a_switch)
{
    struct pl_optim o = optimizer("sgd");
    o.momentum = 0;
    const int64_t tau[2] = {1, 1};
    static struct trail a, plain;
    struct pl_segment two[2] = {
        toy_segment("none", NAN, PL_START_ZERO, 10),
        toy_segment("feedback", NAN, PL_START_ZERO, UPDATES - 10)};
    run_trail(tau, 2, two, &o, &a);
    run_one(1, 1, "none", NAN, PL_START_ZERO, &o, &plain);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < WIDTH; i++) {
            double u9 = plain.x[10][s][i] - plain.x[11][s][i];
            double u10 = plain.x[11][s][i] - plain.x[12][s][i];
            ck_assert_double_eq_tol(a.x[12][s][i], plain.x[11][s][i] - 2 * u10 + u9,
                                    1e-6);
        }
    pl_run_free(&a.result);
    pl_run_free(&plain.result);
}
END_TEST

/* |f| at the end over f at the start, on f = x^2/2 with heavy-ball EMA momentum; judged
 * after as many updates as the root modulus r needs for r^N = 1e6 or 1e-6. */
static double growth(double a, double beta, int64_t tau, double c)
{
    double r = pl_stability_radius(a, beta, (int)tau, c, PL_HEAVY_BALL);
    int64_t N = (int64_t)ceil(log(1e6) / fabs(log(r))) + 20 * tau;
    struct pl_versions v;
    pl_versions_constant(1, N, 1, &tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 1, 1, 1, PL_PARAM_VECTOR, 1, 0, 0);
    struct pl_segment g = toy_segment("custom", c, PL_START_HOLD, N);
    struct pl_run_spec spec = toy_spec(p, &v, &g);
    struct pl_run_result out;
    spec.batch = 1;
    spec.optim = (struct pl_optim){
        .type = pl_optim_find("sgd"), .lr = a, .momentum = beta, .ema = true};
    spec.diverged_above = 1e6;
    ck_assert_msg(pl_run(&spec, &out) == 0, "%s", pl_error_text());
    double ratio = out.status == PL_RUN_DIVERGED
                       ? INFINITY
                       : out.evals[out.n_evals - 1].loss / out.evals[0].loss;
    pl_run_free(&out);
    pl_versions_free(&v);
    toy_free(p);
    return ratio;
}

START_TEST(stability_limit_is_observed)
{
    static const int64_t taus[] = {1, 2, 4};
    static const double betas[] = {0, .5, .9};
    const int64_t tau = taus[_i % 3];
    const double beta = betas[_i / 3 % 3];
    const double c = _i / 9 == 2 ? (double)tau : _i / 9;
    const double limit = pl_stability_limit(beta, (int)tau, c, PL_HEAVY_BALL);
    ck_assert_double_lt(growth(.99 * limit, beta, tau, c), 1e-6);
    ck_assert_double_gt(growth(1.01 * limit, beta, tau, c), 1e5);
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_test(t, coefficients);
    tcase_add_loop_test(t, feedback_is_prediction, 0, 24);
    tcase_add_loop_test(t, no_look_ahead_is_plain, 0, 4);
    tcase_add_loop_test(t, starts, 0, 2);
    tcase_add_test(t, segments);
    tcase_add_test(t, history_crosses_a_switch);
    tcase_add_loop_test(t, a_stretch_may_land_on_y, 0, 2);
    tcase_add_loop_test(t, stability_limit_is_observed, 0, 27);
}

int main(void)
{
    return run_tests("correct", fill);
}
