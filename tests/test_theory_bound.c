/* The a-priori bound: hand evaluation, properties, its minimiser, and runs of the
 * method on noisy matrix quadratics with an exact LMO, which must stay below it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>

#include "base/err.h"
#include "base/rng.h"
#include "theory/bound.h"
#include "tests/runner.h"

static const struct pl_bound_input plain = {
    .delta = 2,
    .L = 3,
    .sigma = .5,
    .rho = 4,
    .eta = .01,
    .alpha = .1,
    .T = 1000,
    .tau = 1,
    .c = 1,
    .s_lo = 1,
    .s_hi = 1,
    .A = NAN,
    .B = NAN,
};

static struct pl_bound_terms terms_of(struct pl_bound_input in)
{
    struct pl_bound_terms t;
    ck_assert_msg(pl_bound(&in, &t) == 0, "%s", pl_error_text());
    ck_assert_double_eq_tol(t.total, t.start + t.drift + t.noise, 1e-12 * t.total);
    return t;
}

static void are(struct pl_bound_terms t, double start, double drift, double noise)
{
    ck_assert_double_eq_tol(t.start, start, 1e-12);
    ck_assert_double_eq_tol(t.drift, drift, 1e-12);
    ck_assert_double_eq_tol(t.noise, noise, 1e-12);
}

START_TEST(by_hand)
{
    struct pl_bound_input in = plain;
    struct pl_bound_terms t = terms_of(in);
    are(t, .2, .03 * (.5 + 4 + 2 * 3 * 9), 4 * (sqrt(.1 / 1.9) + .01));
    ck_assert(t.A == 2 && t.B == 3);
    in.c = 0; /* the plain case: A = tau, B = 1 */
    t = terms_of(in);
    are(t, .2, .03 * (.5 + 2 + 2 * 9), 4 * (sqrt(.1 / 1.9) + .01));
    ck_assert(t.A == 1 && t.B == 1);
    in.nesterov = true;
    are(terms_of(in), .2, .03 * (.5 + 2 + 2 * 8.1),
        4 * (sqrt(.01 * 1.9 * 1.9 + .01 * .6561 / (1 - .81)) + .01));
    in.nesterov = false;
    in.A = .7;
    in.B = 1.3;
    are(terms_of(in), .2, .03 * (.5 + 1.4 + 2.6 * 9), 4 * (sqrt(.1 / 1.9) + .01));
    in.s_lo = .8;
    in.s_hi = 1.2;
    are(terms_of(in), .2 / .8, .03 * (.72 + 2 * .84 + 2 * 1.56 * 9) / .8,
        4 * (sqrt(.1 / 1.9) + .01) / .8);
    in = plain;
    in.decay = .1;
    are(terms_of(in), 2, .3 * (2 + 8 + 2 * 6 * 9), 40 * (sqrt(.1 / 1.9) + .01));
    in = plain;
    in.alpha = 1; /* no momentum: neither memory nor averaging */
    are(terms_of(in), .2, .03 * 4.5, 4 * (1 + .001));
    in.nesterov = true;
    are(terms_of(in), .2, .03 * 4.5, 4 * (1 + .001));
}
END_TEST

START_TEST(monotone)
{
    for (uint32_t i = 0; i < 200; i++) {
        struct pl_bound_input in = plain;
        in.alpha = pl_rng_uniform(3, PL_RNG_TEST, 1, i);
        in.eta = .2 * pl_rng_uniform(3, PL_RNG_TEST, 2, i);
        in.tau = (double)pl_rng_below(3, PL_RNG_TEST, 3, i, 10);
        in.c = i % 2 ? in.tau : 0;
        in.nesterov = i % 3 == 0;
        double total = terms_of(in).total;
        struct pl_bound_input more[7];
        for (int k = 0; k < 7; k++) more[k] = in;
        more[0].tau += 1;
        more[1].L *= 1.5;
        more[2].sigma *= 1.5;
        more[3].c += .5;
        more[4].rho *= 1.5;
        more[5].delta *= 1.5;
        more[6].T *= .5;
        for (int k = 0; k < 7; k++)
            ck_assert_msg(terms_of(more[k]).total > total, "case %u change %d", i, k);
        in.nesterov = !in.nesterov;
        double other = terms_of(in).drift, self = terms_of(more[6]).drift;
        ck_assert(in.nesterov ? other <= self : other >= self);
    }
}
END_TEST

/* Relative price of delay at c = 0 is 1 + tau/(1/alpha - 3/4). */
START_TEST(price_of_delay)
{
    struct pl_bound_input in = plain;
    in.c = 0;
    for (in.alpha = .01; in.alpha <= 1; in.alpha *= 1.7) {
        in.tau = 0;
        double sync = terms_of(in).drift;
        for (in.tau = 1; in.tau < 40; in.tau *= 3)
            ck_assert_double_eq_tol(terms_of(in).drift / sync,
                                    1 + in.tau / (1 / in.alpha - .75), 1e-10);
    }
}
END_TEST

START_TEST(best_is_least)
{
    for (uint32_t i = 0; i < 40; i++) {
        struct pl_bound_input in = plain;
        in.T = pow(10, 1 + 5 * pl_rng_uniform(5, PL_RNG_TEST, 1, i));
        in.sigma = i % 8 ? pow(10, 2 - 4 * pl_rng_uniform(5, PL_RNG_TEST, 2, i)) : 0;
        in.tau = (double)pl_rng_below(5, PL_RNG_TEST, 3, i, 17);
        in.c = i % 2 ? in.tau : 0;
        in.nesterov = i % 3 == 0;
        in.decay = i % 5 == 0 ? .5 : 0;
        struct pl_bound_terms t, there;
        ck_assert_int_eq(pl_bound_best(&in, &in.eta, &in.alpha, &t), 0);
        there = terms_of(in);
        ck_assert(memcmp(&t, &there, sizeof t) == 0);
        if (in.sigma == 0) ck_assert(in.alpha == 1);
        if (in.eta * in.decay < 1) ck_assert_double_eq_tol(t.start / t.drift, 1, 1e-9);
        for (uint32_t k = 0; k < 300; k++) { /* far and near */
            struct pl_bound_input other = in;
            double size = k % 2 ? 5 : .02;
            other.eta *= exp(size * pl_rng_normal(6, PL_RNG_TEST, i, k));
            other.alpha *= exp(size * pl_rng_normal(7, PL_RNG_TEST, i, k));
            if (other.alpha > 1 || other.eta * other.decay > 1) continue;
            ck_assert_msg(terms_of(other).total >= t.total * (1 - 1e-12),
                          "case %u: eta %g alpha %g beat eta %g alpha %g", i, other.eta,
                          other.alpha, in.eta, in.alpha);
        }
    }
}
END_TEST

START_TEST(best_with_delay)
{
    double eta[3], alpha[3];
    struct pl_bound_terms t;
    for (int i = 0; i < 3; i++) {
        struct pl_bound_input in = plain;
        in.c = 0;
        in.tau = 4.0 * i;
        ck_assert_int_eq(pl_bound_best(&in, &eta[i], &alpha[i], &t), 0);
    }
    /* delay: smaller steps, and no reason for longer momentum in this bound */
    ck_assert(eta[0] > eta[1] && eta[1] > eta[2]);
}
END_TEST

static void refused(struct pl_bound_input in, const char *name)
{
    struct pl_bound_terms t = {.total = -7};
    ck_assert_int_eq(pl_bound(&in, &t), PL_ECONFIG);
    ck_assert_msg(strstr(pl_error_text(), name) != NULL, "%s lacks %s", pl_error_text(),
                  name);
    ck_assert(t.total == -7);
}

START_TEST(bad_input)
{
#define REFUSED(field, value, name)       \
    do {                                  \
        struct pl_bound_input in = plain; \
        in.field = value;                 \
        refused(in, name);                \
    } while (0)
    REFUSED(delta, -1, "delta");
    REFUSED(L, NAN, "smoothness");
    REFUSED(sigma, INFINITY, "sigma");
    REFUSED(rho, -1, "rho");
    REFUSED(eta, 0, "eta");
    REFUSED(alpha, 1.01, "alpha");
    REFUSED(alpha, 0, "alpha");
    REFUSED(T, 0, "updates");
    REFUSED(tau, -1, "delay");
    REFUSED(c, -.1, "lookahead");
    REFUSED(s_lo, 0, "s_lo");
    REFUSED(s_hi, .5, "s_hi");
    REFUSED(A, -1, "A");
    REFUSED(decay, 101, "decay");
    struct pl_bound_input in = plain;
    in.decay = .1;
    in.s_hi = 1.2;
    refused(in, "inexact");
    in = plain;
    in.L = 0; /* no finite best rate */
    double eta = -7, alpha = -7;
    struct pl_bound_terms t;
    ck_assert_int_eq(pl_bound_best(&in, &eta, &alpha, &t), PL_ECONFIG);
    ck_assert(eta == -7 && alpha == -7);
}
END_TEST

/* ---- the method itself on f(X) = 1/2 tr (X - X*)^T H (X - X*), H = diag(1/(1+i)) ----
 * In the spectral norm L = tr H exactly: ||H D||_* <= tr H ||D||. */
enum { N = 6, NN = N * N, STEPS = 400 };

static double curvature(int row)
{
    return 1.0 / (1 + row);
}

/* -polar(M) into d unless NULL; returns the nuclear norm. */
static double polar(const double *M, double *d)
{
    double u[NN], v[NN], s[N];
    memcpy(u, M, sizeof u);
    gsl_matrix_view U = gsl_matrix_view_array(u, N, N),
                    V = gsl_matrix_view_array(v, N, N);
    gsl_vector_view S = gsl_vector_view_array(s, N);
    gsl_linalg_SV_decomp_jacobi(&U.matrix, &V.matrix, &S.vector);
    if (d) {
        gsl_matrix_view D = gsl_matrix_view_array(d, N, N);
        gsl_blas_dgemm(CblasNoTrans, CblasTrans, -1, &U.matrix, &V.matrix, 0,
                       &D.matrix);
    }
    double sum = 0;
    for (int i = 0; i < N; i++) sum += s[i];
    return sum;
}

static void gradient(const double *X, const double *target, double *G)
{
    for (int i = 0; i < NN; i++) G[i] = curvature(i / N) * (X[i] - target[i]);
}

struct experiment {
    struct pl_bound_input in;
    double noise; /* sd of an entry of the gradient noise */
    uint64_t seed;
};

/* Mean over the applied updates of ||grad f(y_t)||_* or of the Frank-Wolfe gap; checks
 * gap_t <= 2 ||grad f(y_t) - n_(t-tau)||_* (statement (ii)) on the way without decay.
 */
static double measure(const struct experiment *e)
{
    const struct pl_bound_input *in = &e->in;
    static double d[STEPS + 16][NN], n[STEPS + 16][NN];
    double y[NN] = {0}, before[NN] = {0}, m[NN], target[NN], x[NN], g[NN], sum = 0;
    int tau = (int)in->tau, T = (int)in->T;
    for (int i = 0; i < NN; i++)
        target[i] = .5 * pl_rng_normal(e->seed, PL_RNG_TEST, 1, (uint32_t)i);
    for (int t = 0; t < tau + T; t++) {
        for (int i = 0; i < NN; i++) x[i] = y[i] + in->c * (y[i] - before[i]);
        gradient(x, target, g);
        for (int i = 0; i < NN; i++) {
            uint32_t at = (uint32_t)(t * NN + i);
            g[i] += e->noise * pl_rng_normal(e->seed, PL_RNG_NOISE, 2, at);
            m[i] = t == 0 ? g[i] : (1 - in->alpha) * m[i] + in->alpha * g[i];
            n[t][i] = in->nesterov ? (1 - in->alpha) * m[i] + in->alpha * g[i] : m[i];
        }
        polar(n[t], d[t]);
        if (t < tau) continue; /* nothing delivered yet */
        gradient(y, target, g);
        double dual = polar(g, NULL), along = 0, apart[NN];
        for (int i = 0; i < NN; i++) {
            apart[i] = g[i] - n[t - tau][i];
            along += g[i] * (in->decay > 0 ? y[i] : d[t - tau][i]);
        }
        if (in->decay == 0)
            ck_assert_double_le(dual + along, 2 * polar(apart, NULL) + 1e-9);
        sum += in->decay > 0 ? along + dual / in->decay : dual;
        memcpy(before, y, sizeof y);
        for (int i = 0; i < NN; i++)
            y[i] = (1 - in->eta * in->decay) * y[i] + in->eta * d[t - tau][i];
    }
    return sum / T;
}

static struct experiment experiment_of(uint64_t seed, int tau, double c, bool nesterov,
                                       double decay)
{
    struct experiment e = {.seed = seed, .noise = .05};
    double L = 0, delta = 0;
    for (int i = 0; i < N; i++) L += curvature(i);
    for (int i = 0; i < NN; i++) { /* y_0 = 0, inf f = 0 */
        double x = .5 * pl_rng_normal(seed, PL_RNG_TEST, 1, (uint32_t)i);
        delta += .5 * curvature(i / N) * x * x;
    }
    e.in = (struct pl_bound_input){.delta = delta,
                                   .L = L,
                                   .sigma = e.noise * N,
                                   .rho = sqrt(N),
                                   .eta = .02,
                                   .alpha = .3,
                                   .T = STEPS,
                                   .tau = tau,
                                   .c = c,
                                   .nesterov = nesterov,
                                   .s_lo = 1,
                                   .s_hi = 1,
                                   .A = NAN,
                                   .B = NAN,
                                   .decay = decay};
    return e;
}

START_TEST(runs_stay_below)
{
    static const int delay[] = {0, 1, 4};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 8; k++) {
            double seen = 0, bound = 0;
            for (uint64_t seed = 1; seed <= 3; seed++) {
                struct experiment e =
                    experiment_of(seed, delay[i], k & 1, k & 2, k & 4 ? .25 : 0);
                seen += measure(&e);
                bound += terms_of(e.in).total;
            }
            ck_assert_msg(seen > 0 && seen <= bound, "tau %d case %d: %g > %g",
                          delay[i], k, seen / 3, bound / 3);
        }
}
END_TEST

/* The experiment can tell: too little credit for the start or the noise is noticed. */
START_TEST(wrong_bound_is_seen)
{
    struct experiment e = experiment_of(1, 4, 1, false, 0);
    double seen = measure(&e);
    e.in.delta *= .01;
    e.in.L *= .01;
    e.in.sigma *= .01;
    ck_assert_double_gt(seen, terms_of(e.in).total);
}
END_TEST

static void fill(TCase *test)
{
    tcase_set_timeout(test, 60);
    tcase_add_test(test, by_hand);
    tcase_add_test(test, monotone);
    tcase_add_test(test, price_of_delay);
    tcase_add_test(test, best_is_least);
    tcase_add_test(test, best_with_delay);
    tcase_add_test(test, bad_input);
    tcase_add_test(test, runs_stay_below);
    tcase_add_test(test, wrong_bound_is_seen);
}

int main(void)
{
    return run_tests("theory/bound", fill);
}
