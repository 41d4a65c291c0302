/* pl_run on problems without a model: rotated eigenbases, stages, fused batches,
 * forward-old, backward-new. */
#include "tests/problem_case.h"

#include <float.h>

#include "tests/runner.h"

/* Losses of a run on the quadratic whose eigenbasis is rotated by an amount. */
static struct pl_run_result rotated(const char *optimizer, double amount, int cols,
                                    double lr, int tau)
{
    struct pl_problem_spec spec = small_problem("quadratic");
    spec.size = 24;
    spec.cols = cols;
    spec.spectrum.kappa = 1000;
    spec.rotation = amount;
    struct pl_problem *p = open_problem(&spec, 1);
    struct setting s = {.optimizer = optimizer,
                        .lr = lr,
                        .beta = .9,
                        .tau = tau,
                        .updates = 40,
                        .nesterov = true};
    struct pl_run_result r = run_with(p, &s);
    pl_problem_free(p);
    return r;
}

/* Largest difference of the losses of two runs over their first loss. */
static double apart(struct pl_run_result a, struct pl_run_result b)
{
    double top = 0;
    ck_assert_int_eq(a.n_rows, b.n_rows);
    for (int64_t n = 0; n < a.n_rows; n++)
        top = fmax(top, fabs(a.rows[n].loss - b.rows[n].loss));
    top /= a.rows[0].loss;
    pl_run_free(&a);
    pl_run_free(&b);
    return top;
}

/* x = Q z commutes with rules that act on all coordinates alike: SGD, and Muon (a
 * polynomial in M M^T times M) on the matrix, whose five iterations amplify rounding by
 * up to 3.4445^5 = 485. AdamW's rule is tied to the axes. */
START_TEST(rotation_equivariance)
{
    const double rounding = 40 * 24 * FLT_EPSILON;
    for (int tau = 0; tau <= 2; tau += 2) {
        ck_assert_double_lt(
            apart(rotated("sgd", 0, 0, .5, tau), rotated("sgd", 1, 0, .5, tau)),
            rounding);
        ck_assert_double_lt(
            apart(rotated("muon", 0, 8, .02, tau), rotated("muon", 1, 8, .02, tau)),
            485 * rounding);
        ck_assert_double_gt(
            apart(rotated("adamw", 0, 0, .05, tau), rotated("adamw", 1, 0, .05, tau)),
            0.05);
    }
}
END_TEST

/* Updates until AdamW's loss is and stays below a twentieth of the first. */
static double updates_needed(double amount, int tau)
{
    struct pl_problem_spec spec = small_problem("quadratic");
    spec.size = 24;
    spec.spectrum.kappa = 100;
    spec.rotation = amount;
    struct pl_problem *p = open_problem(&spec, 1);
    struct setting s = {.optimizer = "adamw", .lr = .01, .tau = tau, .updates = 400};
    struct pl_run_result r = run_with(p, &s);
    int64_t n = r.n_rows;
    while (n > 0 && r.rows[n - 1].loss < 0.05 * r.rows[0].loss) n--;
    ck_assert_int_lt(n, 400);
    pl_run_free(&r);
    pl_problem_free(p);
    return (double)n;
}

/* Delay and a rotated eigenbasis multiply (arXiv 2602.03515): the updates that tau = 8
 * adds are several times as many off the axes (5, 28 and 25 here). */
START_TEST(rotation_hurts_adam_under_delay)
{
    const double aligned = updates_needed(0, 8) - updates_needed(0, 0);
    ck_assert_double_gt(aligned, 0);
    for (double amount = .5; amount <= 1; amount += .5)
        ck_assert_double_gt(updates_needed(amount, 8) - updates_needed(amount, 0),
                            2 * aligned);
}
END_TEST

/* Delays 2, 1, 0 with the weights of forward (stash) or the live ones (nostash) in
 * backward: no difference where backward reads none, one in the MLP. */
START_TEST(nostash)
{
    static const char *const names[] = {"quadratic", "logistic", "mlp", "factor"};
    enum { UPDATES = 20 };
    const int64_t tau[3] = {2, 1, 0};
    struct pl_problem_spec spec = small_problem(names[_i]);
    struct pl_problem *p = open_problem(&spec, 3);
    const struct pl_segment segment = {UPDATES,
                                       pl_corrector_make("none", NAN, PL_START_ZERO)};
    struct pl_run_result r[2];
    for (int live = 0; live < 2; live++) {
        struct pl_versions v;
        pl_versions_constant(3, UPDATES, 1, tau, 1, &v);
        for (int64_t i = 0; live && i < 3 * UPDATES; i++) v.backward[i] = i % UPDATES;
        const struct pl_run_spec run = {
            .device = &pl_device_ref,
            .problem = p,
            .versions = &v,
            .fidelity = live ? PL_FIDELITY_NOSTASH : PL_FIDELITY_STASH,
            .batch = 2,
            .T = 1,
            .seed = 11,
            .optim = {.type = pl_optim_find("sgd"), .lr = .2},
            .rate = {.kind = PL_RATE_CONSTANT, .total = UPDATES},
            .n_segments = 1,
            .segments = &segment};
        ck_assert_int_eq(pl_run(&run, &r[live]), 0);
        pl_versions_free(&v);
    }
    double difference = apart(r[0], r[1]);
    ck_assert_int_eq(difference > 0, _i >= 2);
    ck_assert_double_lt(difference, 0.5);
    pl_problem_free(p);
}
END_TEST

/* Same rows on one stage and on three, bit for bit; factor's columns move, so there to
 * rounding. */
START_TEST(stages_are_one)
{
    static const char *const names[] = {"quadratic", "logistic", "mlp", "factor"};
    struct pl_problem_spec spec = small_problem(names[_i]);
    /* numbers of the noise follow the places of the coordinates */
    spec.noise = _i == 3 ? 0 : 0.1;
    struct setting s = {.optimizer = "sgd",
                        .corrector = "feedback",
                        .c = NAN,
                        .lr = .1,
                        .beta = .9,
                        .tau = 1,
                        .m = 2,
                        .batch = 4,
                        .updates = 30};
    struct pl_problem *one = open_problem(&spec, 1), *many = open_problem(&spec, 3);
    struct pl_run_result a = run_with(one, &s), b = run_with(many, &s);
    ck_assert_int_eq(a.n_rows, 30);
    for (int k = 0; k < 30; k++) {
        double rounding = _i == 3 ? 30 * 20 * FLT_EPSILON * a.rows[0].loss : 0;
        ck_assert_double_le(fabs(a.rows[k].loss - b.rows[k].loss), rounding);
    }
    ck_assert_double_lt(a.evals[1].loss, a.evals[0].loss);
    /* one by one: the mean of the group's parts, in another order of sums */
    pl_run_free(&b);
    s.replay = true;
    b = run_with(many, &s);
    for (int k = 0; k < 30; k++)
        ck_assert_double_le(fabs(a.rows[k].loss - b.rows[k].loss),
                            30 * 20 * FLT_EPSILON * a.rows[0].loss);
    pl_run_free(&a);
    pl_run_free(&b);
    pl_problem_free(one);
    pl_problem_free(many);
}
END_TEST

/* Evaluations carry the exact gradient: on H = 1 it is X itself, at x and at y. The
 * dual norm is at least the Euclidean one, and equal to it for one column. */
START_TEST(exact_gradients)
{
    struct pl_problem_spec spec = small_problem("quadratic");
    spec.spectrum.kind = PL_SPECTRUM_CONSTANT;
    spec.cols = _i;
    spec.noise = 1;
    struct setting s = {.optimizer = "sgd",
                        .corrector = "feedback",
                        .c = NAN,
                        .lr = .1,
                        .tau = 1,
                        .updates = 9};
    struct pl_problem *p = open_problem(&spec, 1);
    struct pl_run_result r = run_with(p, &s);
    for (int k = 0; k < 2; k++) {
        const struct pl_eval *e = &r.evals[k];
        ck_assert_double_eq_tol(e->grad_norm, sqrt(2 * e->loss), 1e-12 * e->grad_norm);
        double ratio = e->grad_dual / e->grad_norm;
        if (_i == 1)
            ck_assert_double_eq_tol(ratio, 1, 1e-12);
        else
            ck_assert(ratio > 1.05 && ratio <= sqrt(_i ? 2 : 6) * (1 + 1e-12));
        ck_assert_int_eq(e->grad_dual == e->grad_dual_y, k == 0);
        if (_i == 1)
            ck_assert_double_eq_tol(e->grad_dual_y, sqrt(2 * e->loss_y),
                                    1e-12 * e->grad_dual_y);
    }
    pl_run_free(&r);
    pl_problem_free(p);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, rotation_equivariance);
    tcase_add_test(t, rotation_hurts_adam_under_delay);
    tcase_add_loop_test(t, exact_gradients, 0, 3);
    tcase_add_loop_test(t, nostash, 0, 4);
    tcase_add_loop_test(t, stages_are_one, 0, 4);
}

int main(void)
{
    return run_tests("problem_delay", fill);
}
