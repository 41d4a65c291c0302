/* Decay in all its forms and factors, and the two places of eps, for every rule that
 * has them. eta decay is .05 or more: a decay that does nothing is seen. */
#include <string.h>

#include "tests/optim_case.h"

static const struct optim_case vector = {NULL,        {0},  1, 2, PL_PARAM_MATRIX,
                                         CASE_VECTOR, {{0}}};
static const struct optim_case matrix = {NULL,        {0},  3, 2, PL_PARAM_MATRIX,
                                         CASE_MATRIX, {{0}}};

#define ADAM .lr = .1, .decay = .1, .beta1 = .9, .beta2 = .95, .eps = 1e-8

/* Every rule, every form and factor of decay: from the steps without decay follow those
 * with it, at the second step (SOAP's first call is none). eta decay = .05. */
static double expected(enum pl_decay_form form, double k, double s, double w)
{
    switch (form) {
    case PL_DECAY_AFTER:
        return (w - s) * (1 - k);
    case PL_DECAY_PROXIMAL:
        return (w - s) / (1 + k);
    case PL_DECAY_CAUTIOUS:
        return w - s - (s * w >= 0 ? k * w : 0);
    case PL_DECAY_BEFORE:
    case PL_DECAY_COUPLED:
        break;
    }
    return w * (1 - k) - s;
}

START_TEST(decay_of_every_rule)
{
    static const double factors[] = {.1 * .5, .1 * .1 * .5, .1 * .1 / .2 * .5,
                                     .1 / .2 * .5, .5};
    const char *name = pl_optim_names()[_i];
    struct optim_case c = matrix;
    c.name = name;
    struct pl_optim o = optim_defaults(name);
    o.lr = o.aux_lr = .2;
    o.decay = o.aux_decay = 0;
    float plain[CASE_STEPS][CASE_SIZE], got[CASE_STEPS][CASE_SIZE];
    o.decay_form = PL_DECAY_BEFORE;
    optim_case_run(&c, &o, .5, 2, NULL, plain);
    o.decay = o.aux_decay = .5;
    for (int form = PL_DECAY_BEFORE; form < PL_DECAY_COUPLED; form++)
        for (int factor = PL_DECAY_LR; factor <= PL_DECAY_CONSTANT; factor++) {
            o.decay_form = (enum pl_decay_form)form;
            o.decay_factor = (enum pl_decay_factor)factor;
            optim_case_run(&c, &o, .5, 2, NULL, got);
            for (int i = 0; i < 6; i++) {
                const double s = (double)plain[0][i] - plain[1][i], w = got[0][i];
                const double want = expected(o.decay_form, factors[factor], s, w);
                ck_assert_msg(fabs(got[1][i] - want) < 1e-5 * (1 + fabs(s)),
                              "%s, %s %s: weight %d is %.8g, expected %.8g", name,
                              pl_decay_forms[form + 1], pl_decay_factors[factor + 1], i,
                              got[1][i], want);
            }
        }
}
END_TEST

/* Coupled decay is decay in the gradient (Shampoo's statistics see it without). */
START_TEST(coupled_decay_of_every_rule)
{
    struct optim_case c = matrix, with = matrix;
    c.name = with.name = pl_optim_names()[_i];
    struct pl_optim o = optim_defaults(c.name);
    if (!strcmp(c.name, "shampoo")) return;
    o.lr = o.aux_lr = .01;
    o.decay = o.aux_decay = .5;
    o.decay_form = PL_DECAY_COUPLED;
    float got[CASE_STEPS][CASE_SIZE], want[CASE_STEPS][CASE_SIZE];
    optim_case_run(&c, &o, 1, 2, NULL, got);
    o.decay = o.aux_decay = 0;
    for (int i = 0; i < 6; i++) {
        with.g[0][i] += .5 * c.w0[i];
        with.g[1][i] += .5 * (double)got[0][i];
    }
    optim_case_run(&with, &o, 1, 2, NULL, want);
    ck_assert_double_le(relative(got[1], want[1], 6), 1e-6);
}
END_TEST

/* Decoupled decay and the schedule: with g = 0, u = rate lr decay w exactly. */
START_TEST(decay_acts_with_the_rate)
{
    struct optim_case g = {.name = "sgd", .rows = 1, .cols = 2, .w0 = {1, -2}};
    struct pl_optim o = {.lr = .1, .decay = .5};
    float got[CASE_STEPS][CASE_SIZE];
    optim_case_run(&g, &o, .5, 2, NULL, got);
    ck_assert_double_eq_tol(got[0][0], 1 - .025, 1e-7);
    ck_assert_double_eq_tol(got[1][1], -2 * .975 * .975, 1e-6);
}
END_TEST

/* A peak rate of 0 is not divided by. */
START_TEST(rate_0_is_no_nan)
{
    struct pl_optim o = optim_defaults("adamw");
    o.lr = 0;
    for (int f = PL_DECAY_LR; f <= PL_DECAY_CONSTANT; f++) {
        o.decay_factor = (enum pl_decay_factor)f;
        ck_assert_double_eq(pl_optim_decay_rate(&o, 0),
                            f == PL_DECAY_CONSTANT ? o.decay : 0);
    }
}
END_TEST

/* Coupled decay of SGD without momentum is decoupled decay. */
START_TEST(coupled_sgd_is_decoupled)
{
    struct pl_optim coupled = {.lr = .1, .decay = .5, .decay_form = PL_DECAY_COUPLED};
    const struct pl_optim plain = {.lr = .1, .decay = .5};
    struct optim_case c = vector;
    float a[CASE_STEPS][CASE_SIZE], b[CASE_STEPS][CASE_SIZE];
    c.name = "sgd";
    optim_case_run(&c, &coupled, 1, 3, NULL, a);
    optim_case_run(&c, &plain, 1, 3, NULL, b);
    ck_assert_double_le(relative(a[2], b[2], 2), 1e-6);
    coupled.momentum = .9;
    optim_case_run(&c, &coupled, 1, 3, NULL, a);
    ck_assert_double_gt(relative(a[2], b[2], 2), 1e-3);
}
END_TEST

/* Uncorrected eps is eps / sqrt(bc2) beside the corrected root. */
START_TEST(eps_forms)
{
    static const char *const names[] = {"adamw", "nadamw", "mars"};
    struct pl_optim a = {ADAM, .momentum_decay = 4e-3}, b = a;
    a.eps = b.eps = .1;
    b.eps_form = PL_EPS_UNCORRECTED;
    float got[CASE_STEPS][CASE_SIZE], want[CASE_STEPS][CASE_SIZE];
    struct optim_case c = vector;
    c.name = names[_i];
    optim_case_run(&c, &b, 1, 1, NULL, got);
    a.eps /= sqrt(1 - a.beta2);
    optim_case_run(&c, &a, 1, 1, NULL, want);
    ck_assert_double_le(relative(got[0], want[0], 2), 1e-6);
    a.eps = .1;
    optim_case_run(&c, &a, 1, 1, NULL, want);
    ck_assert_double_gt(relative(got[0], want[0], 2), 1e-3);
}
END_TEST

/* What decay spares: with a zero gradient only decay moves. */
START_TEST(spared_tensors)
{
    static const enum pl_param_kind kinds[] = {PL_PARAM_MATRIX, PL_PARAM_EMBED,
                                               PL_PARAM_HEAD, PL_PARAM_VECTOR};
    static const bool decays[3][4] = {{1, 1, 1, 1}, {1, 1, 1, 0}, {1, 0, 0, 0}};
    static const char *const names[] = {"sgd", "adamw", "muon", "lion"};
    struct pl_optim o = optim_defaults(names[_i]);
    o.decay = o.aux_decay = .5;
    for (int spares = PL_SPARES_NONE; spares <= PL_SPARES_TABLES; spares++)
        for (int k = 0; k < 4; k++) {
            const struct pl_param p = {.rows = 1, .cols = 2, .kind = kinds[k]};
            const float w[2] = {1, -2};
            float g[2] = {0}, u[2], state[8] = {0}, scratch[16];
            o.decay_spares = (enum pl_decay_spares)spares;
            ck_assert_int_eq(
                pl_optim_step(&o, &pl_device_ref, &p, g, w, state, scratch, 1, 1, u),
                0);
            ck_assert((u[0] != 0 && u[1] != 0) == decays[spares][k]);
            ck_assert((u[0] == 0 && u[1] == 0) != decays[spares][k]);
        }
}
END_TEST

static void fill(TCase *t)
{
    int n = 0;
    while (pl_optim_types[n]) n++;
    tcase_add_loop_test(t, decay_of_every_rule, 0, n);
    tcase_add_loop_test(t, coupled_decay_of_every_rule, 0, n);
    tcase_add_test(t, decay_acts_with_the_rate);
    tcase_add_test(t, rate_0_is_no_nan);
    tcase_add_test(t, coupled_sgd_is_decoupled);
    tcase_add_loop_test(t, eps_forms, 0, 3);
    tcase_add_loop_test(t, spared_tensors, 0, 4);
}

int main(void)
{
    return run_tests("optim_decay", fill);
}
