/* Optimizers by what must hold of them: identities between rules, invariants. */
#include <string.h>

#include "tests/optim_case.h"

static const struct pl_device *const dev = &pl_device_ref;

static const struct optim_case vector = {NULL,        {0},  1, 2, PL_PARAM_MATRIX,
                                         CASE_VECTOR, {{0}}};
static const struct optim_case matrix = {NULL,        {0},  3, 2, PL_PARAM_MATRIX,
                                         CASE_MATRIX, {{0}}};

/* ||a - b|| / ||b|| of the weights after three steps of two rules. */
static double apart(const struct optim_case *c, const char *name,
                    const struct pl_optim *o, const char *other,
                    const struct pl_optim *p)
{
    float a[CASE_STEPS][CASE_SIZE], b[CASE_STEPS][CASE_SIZE];
    struct optim_case mine = *c, its = *c;
    mine.name = name;
    its.name = other;
    optim_case_run(&mine, o, 1, 3, NULL, a);
    optim_case_run(&its, p, 1, 3, NULL, b);
    return relative(a[2], b[2], (size_t)(c->rows * c->cols));
}

#define ADAM .lr = .1, .decay = .1, .beta1 = .9, .beta2 = .95, .eps = 1e-8

START_TEST(adan_without_difference_is_adamw)
{
    const struct pl_optim adamw = {ADAM};
    struct pl_optim adan = {ADAM, .beta3 = .95};
    adan.beta2 = 0;
    ck_assert_double_le(apart(&vector, "adan", &adan, "adamw", &adamw), 1e-6);
    adan.beta2 = .9;
    ck_assert_double_gt(apart(&vector, "adan", &adan, "adamw", &adamw), 1e-3);
}
END_TEST

/* gamma = 0, and gradients of norm below 1: the third of the vector's has 2.2. */
START_TEST(mars_without_correction_is_adamw)
{
    const struct pl_optim adamw = {ADAM};
    struct pl_optim mars = {ADAM};
    struct optim_case small = vector;
    small.g[2][0] = .5;
    small.g[2][1] = .8;
    ck_assert_double_le(apart(&small, "mars", &mars, "adamw", &adamw), 1e-6);
    ck_assert_double_gt(apart(&vector, "mars", &mars, "adamw", &adamw), 1e-3);
    mars.gamma = .025;
    ck_assert_double_gt(apart(&small, "mars", &mars, "adamw", &adamw), 1e-3);
}
END_TEST

/* The per-tensor clip of mars: gradients that are all above 1 act as directions. */
START_TEST(mars_clips_each_tensor)
{
    const struct pl_optim mars = {ADAM};
    struct optim_case large = vector, larger = vector;
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 2; i++) {
            large.g[t][i] *= 10;
            larger.g[t][i] *= 1000;
        }
    float a[CASE_STEPS][CASE_SIZE], b[CASE_STEPS][CASE_SIZE];
    large.name = larger.name = "mars";
    optim_case_run(&large, &mars, 1, 3, NULL, a);
    optim_case_run(&larger, &mars, 1, 3, NULL, b);
    ck_assert_double_le(relative(a[2], b[2], 2), 1e-6);
}
END_TEST

START_TEST(lion_with_one_beta_is_signum)
{
    struct pl_optim lion = {
        .lr = .1, .decay = .1, .beta1 = .9, .beta2 = .9, .cautious = 1};
    const struct pl_optim signum = {.lr = .1, .decay = .1, .momentum = .9, .ema = true};
    ck_assert_double_le(apart(&vector, "lion", &lion, "signum", &signum), 1e-6);
    lion.beta2 = .99;
    ck_assert_double_gt(apart(&vector, "lion", &lion, "signum", &signum), 1e-2);
}
END_TEST

/* NS is scale invariant, so the two momentum forms make one trajectory (both start at
 * 0; Jordan's eps acts on norms of .5: 1e-7). */
START_TEST(muon_ema_is_sum_form)
{
    const struct pl_optim ema = {
        .lr = .02, .momentum = .95, .nesterov = true, .ema = true, .decay = .5};
    struct pl_optim sum = ema;
    sum.ema = false;
    ck_assert_double_le(apart(&matrix, "muon", &sum, "muon", &ema), 1e-5);
    sum.nesterov = false;
    ck_assert_double_gt(apart(&matrix, "muon", &sum, "muon", &ema), 1e-3);
}
END_TEST

/* Sign of the sum is sign of the EMA. */
START_TEST(signum_ema_is_sum_form)
{
    struct pl_optim o = {.lr = .1, .decay = .1, .momentum = .9, .nesterov = _i}, p = o;
    p.ema = true;
    ck_assert_double_le(apart(&vector, "signum", &o, "signum", &p), 1e-7);
}
END_TEST

/* EMA momentum at rate lr is sum-form momentum at lr (1 - mu), and dampening mu is the
 * EMA but for torch's first step. */
START_TEST(sgd_forms)
{
    const struct pl_optim ema = {.lr = .1, .momentum = .9, .ema = true, .nesterov = _i};
    struct pl_optim sum = ema;
    sum.ema = false;
    sum.lr *= 1 - sum.momentum;
    ck_assert_double_le(apart(&vector, "sgd", &sum, "sgd", &ema), 1e-6);
    if (_i) return;
    sum.lr = ema.lr;
    sum.dampening = .9;
    ck_assert_double_le(apart(&vector, "sgd", &sum, "sgd", &ema), 1e-6);
    sum.first_copies = true;
    ck_assert_double_gt(apart(&vector, "sgd", &sum, "sgd", &ema), 1e-3);
}
END_TEST

/* psi -> infinity: mu_t = b1, and torch's NAdam is Dozat's with constant momentum: P =
 * b1^t, so that it has optax's form. */
START_TEST(nadam_with_constant_momentum_is_optax)
{
    struct pl_optim torch = {ADAM, .momentum_decay = 1e5};
    const struct pl_optim optax = {ADAM, .nadam_form = PL_NADAM_OPTAX};
    ck_assert_double_le(apart(&vector, "nadamw", &torch, "nadamw", &optax), 1e-6);
    torch.momentum_decay = 4e-3;
    ck_assert_double_gt(apart(&vector, "nadamw", &torch, "nadamw", &optax), 1e-3);
}
END_TEST

/* P = mu_1 ... mu_t far from the start: torch's factors become those of b1 alone. */
START_TEST(nadam_far_from_the_start)
{
    struct pl_optim o = {ADAM, .momentum_decay = 4e-3};
    o.type = pl_optim_find("nadamw");
    o.decay = 0;
    const struct pl_param p = {.rows = 1, .cols = 1};
    float g = .25f, w = 0, state[2] = {.25f, .0625f}, u = 0;
    ck_assert_int_eq(pl_optim_step(&o, dev, &p, &g, &w, state, NULL, 1000000, 1, &u),
                     0);
    ck_assert_double_eq_tol(u, .1, 1e-6); /* (1 - b1) g/d + b1 m/d = 1 */
}
END_TEST

/* Elements where step and gradient disagree move by c, all by 1 / mean. */
START_TEST(cautious_lion)
{
    struct optim_case c = vector;
    const double first[2] = {.5, -.25};
    struct pl_optim o = {.lr = .1, .beta1 = .9, .beta2 = .5, .cautious = .25};
    float got[CASE_STEPS][CASE_SIZE];
    c.name = "lion";
    c.g[1][0] = -.01; /* momentum .25: the step keeps its sign */
    c.g[1][1] = -.25;
    optim_case_run(&c, &o, 1, 2, NULL, got);
    ck_assert_double_eq_tol(got[0][0], 1 - .1 * copysign(1, first[0]), 1e-6);
    ck_assert_double_eq_tol(got[0][1], -2 - .1 * copysign(1, first[1]), 1e-6);
    const double mean = (.25 + 1) / 2;
    ck_assert_double_eq_tol(got[1][0] - got[0][0], -.1 * .25 / mean, 1e-6);
    ck_assert_double_eq_tol(got[1][1] - got[0][1], .1 / mean, 1e-6);
    o.cautious = 0;
    optim_case_run(&c, &o, 1, 2, NULL, got);
    ck_assert_double_eq_tol(got[1][0] - got[0][0], 0, 1e-6);
    ck_assert_double_eq_tol(got[1][1] - got[0][1], .2, 1e-6);
}
END_TEST

/* Constrained Scion with exact oracles stays in the ball: ||W|| <= rho at every step,
 * in the norm of each oracle, from a start inside; an unconstrained one leaves it. */
static double ball_norm(enum pl_lmo lmo, int m, int n, const float *W)
{
    double largest = 0, square = 0;
    for (int i = 0; i < m * n; i++) square += (double)W[i] * W[i];
    if (lmo == PL_LMO_RMS) return sqrt(square / (m * n));
    if (lmo == PL_LMO_SIGN) {
        for (int i = 0; i < m * n; i++) largest = fmax(largest, n * fabs((double)W[i]));
        return largest;
    }
    /* RMS of columns times n (colnorm), norms of rows times sqrt(n) */
    const bool columns = lmo == PL_LMO_COLUMN;
    for (int k = 0; k < (columns ? n : m); k++) {
        double sum = 0;
        for (int l = 0; l < (columns ? m : n); l++) {
            double e = columns ? W[l * n + k] : W[k * n + l];
            sum += e * e;
        }
        double norm = columns             ? n * sqrt(sum / m)
                      : lmo == PL_LMO_ROW ? sqrt(n * sum)
                                          : m * sqrt(sum / n);
        largest = fmax(largest, norm);
    }
    return largest;
}

static double walk(enum pl_lmo lmo, double decay)
{
    enum { M = 4, N = 3, SIZE = M * N, STEPS = 200 };
    struct pl_optim o = optim_defaults("scion");
    o.lr = .05;
    o.decay = decay;
    o.lmo[0] = lmo;
    o.radius[0] = 2;
    struct pl_param p = {.rows = M, .cols = N, .kind = PL_PARAM_MATRIX};
    float w[SIZE] = {0}, g[SIZE], u[SIZE], state[SIZE] = {0}, scratch[64];
    double worst = 0;
    for (int t = 1; t <= STEPS; t++) {
        random_matrix(M, N, (uint64_t)t, g);
        for (int i = 0; i < SIZE; i++) g[i] -= 3 + (float)(i % 2); /* always outwards */
        ck_assert_int_eq(pl_optim_step(&o, dev, &p, g, w, state, scratch, t, 1, u), 0);
        for (int i = 0; i < SIZE; i++) w[i] -= u[i];
        worst = fmax(worst, ball_norm(lmo, M, N, w));
    }
    return worst;
}

START_TEST(scion_stays_in_its_ball)
{
    static const enum pl_lmo lmos[] = {PL_LMO_SIGN, PL_LMO_COLUMN, PL_LMO_ROW,
                                       PL_LMO_TOKEN, PL_LMO_RMS};
    ck_assert_double_le(walk(lmos[_i], 1), 2 * (1 + 1e-5));
    ck_assert_double_gt(walk(lmos[_i], 1), 1.5);
    ck_assert_double_gt(walk(lmos[_i], 0), 3);
}
END_TEST

/* NorMuon without memory: rows of the polar factor (m >= n) at equal size, its norm
 * unchanged. */
START_TEST(normuon_levels_rows)
{
    struct optim_case c = matrix;
    struct pl_optim o = {.lr = 1, .ema = true, .scale = PL_SCALE_NONE}, muon = o;
    float a[CASE_STEPS][CASE_SIZE], b[CASE_STEPS][CASE_SIZE];
    double rows[3] = {0}, norm = 0, want = 0;
    c.name = "normuon";
    optim_case_run(&c, &o, 1, 1, NULL, a);
    c.name = "muon";
    optim_case_run(&c, &muon, 1, 1, NULL, b);
    for (int i = 0; i < 6; i++) {
        double u = c.w0[i] - a[0][i], v = c.w0[i] - b[0][i];
        rows[i / 2] += u * u;
        norm += u * u;
        want += v * v;
    }
    ck_assert_double_eq_tol(norm, want, 1e-5);
    for (int i = 0; i < 3; i++) ck_assert_double_eq_tol(rows[i], norm / 3, 1e-5);
    o.beta2 = .95; /* no bias correction: the factor is common to all rows */
    c.name = "normuon";
    optim_case_run(&c, &o, 1, 1, NULL, b);
    ck_assert_double_le(relative(b[0], a[0], 6), 1e-5);
}
END_TEST

/* A vector with a basis is a matrix of one row, whose other basis turns nothing. */
START_TEST(soap_of_a_vector)
{
    struct pl_optim o = optim_defaults("soap");
    struct optim_case row = vector, v = vector;
    float a[CASE_STEPS][CASE_SIZE], b[CASE_STEPS][CASE_SIZE];
    o.lr = .1;
    o.refresh = 1;
    row.name = v.name = "soap";
    v.kind = PL_PARAM_VECTOR;
    optim_case_run(&row, &o, 1, 3, NULL, a);
    optim_case_run(&v, &o, 1, 3, NULL, b);
    ck_assert_double_gt(relative(b[2], a[2], 2), 1e-3); /* plain Adam */
    o.precondition_1d = true;
    optim_case_run(&v, &o, 1, 3, NULL, b);
    ck_assert_double_le(relative(b[2], a[2], 2), 1e-6);
}
END_TEST

/* Queries, keys and values as one matrix or as three: muon steps on a block. */
static void qkv(bool fused, float w[36])
{
    enum { N = 3 };
    struct pl_param p[3] = {
        {"layers.0.self_attn.q_proj.weight", 0, 6, N, 0, PL_PARAM_MATRIX},
        {"layers.0.self_attn.k_proj.weight", 0, 3, N, 18, PL_PARAM_MATRIX},
        {"layers.0.self_attn.v_proj.weight", 0, 3, N, 27, PL_PARAM_MATRIX}};
    struct pl_optim o = optim_defaults("muon");
    o.fused_qkv = fused;
    float g[36], u[36], state[36] = {0}, scratch[128];
    size_t at = 0;
    random_matrix(12, N, 9, w);
    for (int t = 1; t <= 2; t++, at = 0) {
        random_matrix(12, N, (uint64_t)t, g);
        for (int i = 0; i < 3; i++) {
            ck_assert_uint_le(pl_optim_scratch(&o, &p[i]), 128);
            ck_assert_int_eq(pl_optim_step(&o, dev, &p[i], g + p[i].offset,
                                           w + p[i].offset, state + at, scratch, t, 1,
                                           u + p[i].offset),
                             0);
            at += pl_optim_state(&o, &p[i]);
        }
        ck_assert_uint_eq(at, 36);
        dev->axpby(36, -1, u, 1, w);
    }
}

START_TEST(fused_qkv)
{
    float whole[36], parts[36], w[36], g[36], u[36], state[36] = {0}, scratch[128];
    struct pl_optim o = optim_defaults("muon");
    const struct pl_param p = {.rows = 12, .cols = 3, .kind = PL_PARAM_MATRIX};
    qkv(true, whole);
    qkv(false, parts);
    random_matrix(12, 3, 9, w);
    for (int t = 1; t <= 2; t++) {
        random_matrix(12, 3, (uint64_t)t, g);
        pl_optim_step(&o, dev, &p, g, w, state, scratch, t, 1, u);
        dev->axpby(36, -1, u, 1, w);
    }
    ck_assert_mem_eq(whole, w, sizeof w); /* as one matrix of 12 rows */
    ck_assert_double_gt(relative(parts, w, 36), 1e-3);
}
END_TEST

/* Which tensors take muon and mars, which AdamW. */
START_TEST(tensors_that_take_the_rule)
{
    static const enum pl_param_kind kinds[] = {PL_PARAM_MATRIX, PL_PARAM_EMBED,
                                               PL_PARAM_HEAD, PL_PARAM_VECTOR};
    static const bool takes[3][4] = {{1, 0, 0, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    const struct pl_optim_type *muon = pl_optim_find("muon");
    for (int set = PL_TENSORS_HIDDEN; set <= PL_TENSORS_ALL; set++)
        for (int k = 0; k < 4; k++) {
            struct pl_optim o = optim_defaults("muon");
            const struct pl_param p = {.rows = 2, .cols = 3, .kind = kinds[k]};
            o.tensors = (enum pl_tensors)set;
            ck_assert(pl_optim_takes(&o, &p) == takes[set][k]);
            ck_assert_uint_eq(pl_optim_state(&o, &p), takes[set][k] ? 6 : 12);
        }
    ck_assert_int_eq(muon->defaults.tensors, PL_TENSORS_HIDDEN);
    ck_assert_int_eq(pl_optim_find("mars")->defaults.tensors, PL_TENSORS_MATRICES);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, adan_without_difference_is_adamw);
    tcase_add_test(t, mars_without_correction_is_adamw);
    tcase_add_test(t, mars_clips_each_tensor);
    tcase_add_test(t, lion_with_one_beta_is_signum);
    tcase_add_test(t, muon_ema_is_sum_form);
    tcase_add_loop_test(t, signum_ema_is_sum_form, 0, 2);
    tcase_add_loop_test(t, sgd_forms, 0, 2);
    tcase_add_test(t, nadam_with_constant_momentum_is_optax);
    tcase_add_test(t, nadam_far_from_the_start);
    tcase_add_test(t, cautious_lion);
    tcase_add_loop_test(t, scion_stays_in_its_ball, 0, 5);
    tcase_add_test(t, normuon_levels_rows);
    tcase_add_test(t, soap_of_a_vector);
    tcase_add_test(t, fused_qkv);
    tcase_add_test(t, tensors_that_take_the_rule);
}

int main(void)
{
    return run_tests("optim_identities", fill);
}
