/* Stability limits and stationary noise: published tables, closed forms, the recursion
 * itself. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "theory/stability.h"
#include "tests/runner.h"

#define HB PL_HEAVY_BALL
#define NV PL_NESTEROV

static double limit(double beta, int tau, double c, enum pl_momentum momentum)
{
    return pl_stability_limit(beta, tau, c, momentum);
}

/* value agrees with a number printed with these decimals */
static void printed(double value, double shown, int decimals)
{
    double half = 0.5 * pow(10.0, -decimals) * (1.0 + 1e-9);
    ck_assert_msg(fabs(value - shown) <= half, "%.12g is not %.*f", value, decimals,
                  shown);
}

static const int taus[] = {1, 2, 4, 8, 16};
static const struct {
    double beta, plain[5], ahead[5];
} table[] = {
    {0, {1.000, .618, .347, .185, .095}, {0.618, .371, .207, .110, .057}},
    {.5, {1.000, .562, .312, .170, .090}, {1.000, .500, .240, .116, .058}},
    {.9, {1.000, .512, .265, .139, .075}, {2.702, 1.210, .494, .194, .077}},
    {.95, {1.000, .506, .258, .133, .070}, {4.000, 1.779, .718, .273, .102}},
    {.99, {1.000, .501, .252, .127, .064}, {9.512, 4.230, 1.706, .643, .233}},
};

START_TEST(limit_table)
{
    for (int i = 0; i < 5; i++) {
        printed(limit(table[_i].beta, taus[i], 0, HB), table[_i].plain[i], 3);
        printed(limit(table[_i].beta, taus[i], taus[i], HB), table[_i].ahead[i], 3);
    }
}
END_TEST

START_TEST(limit_nesterov)
{
    static const double beta[] = {.9, .95, .99}, plain[] = {2.531, 3.750, 9.137};
    for (int i = 0; i < 3; i++) printed(limit(beta[i], 1, 0, NV), plain[i], 3);
    printed(limit(.9, 1, 1, NV), 3.45, 2);
    printed(limit(.95, 1, 1, NV), 6.78, 2);
    printed(limit(.99, 1, 1, NV), 33.4, 1);
}
END_TEST

/* The best look-ahead, to the published grid of 0.1 and printed digits. At beta .9, tau
 * 1 the grid of .01 gives 3.03, its first unstable point: the limit is
 * 3.0249 (and z^3 - 1.9 z^2 + 1.65625 z - .45375, a = 3.025, c = 1.5, has radius >
 * 1). */
static const struct {
    double beta;
    int tau;
    double c, a;
    int decimals;
} best[] = {
    {.9, 1, 1.5, 3.02, 2}, {.95, 1, 1.7, 5.51, 2}, {.9, 2, 2.5, 1.25, 2},
    {.9, 4, 3.8, .495, 3}, {.9, 8, 5.6, .207, 3},  {.95, 8, 8.0, .273, 3},
    {0, 1, 0, 1.000, 3},
};

START_TEST(limit_best)
{
    double beta = best[_i].beta, found = 0, at = -1;
    for (int k = 0; k <= 10 * best[_i].tau + 10; k++) {
        double a = limit(beta, best[_i].tau, k / 10.0, HB);
        if (a > found) {
            found = a;
            at = k / 10.0;
        }
    }
    printed(found, best[_i].a, best[_i].decimals);
    /* flat optima: the published grid point may be a neighbour */
    ck_assert_msg(fabs(at - best[_i].c) < 0.25, "best c %g, published %g", at,
                  best[_i].c);
}
END_TEST

static void near(double value, double expected, double relative)
{
    ck_assert_msg(fabs(value - expected) <= relative * fabs(expected),
                  "%.17g, not %.17g", value, expected);
}

START_TEST(limit_closed)
{
    static const double beta[] = {0, .1, .5, .9, .95, .99, .999};
    static const int delay[] = {0, 1, 2, 3, 7, 16, 33, 64};
    static const double ahead[] = {0, .3, .5, .9, 1, 2, 64};
    const char *text;
    int known = 0;
    for (int b = 0; b < 7; b++)
        for (int t = 0; t < 8; t++)
            for (int c = 0; c < 7; c++)
                for (int m = 0; m < 2; m++) {
                    double closed =
                        pl_stability_closed(beta[b], delay[t], ahead[c], m, &text);
                    ck_assert(isnan(closed) == (text == NULL));
                    if (isnan(closed)) continue;
                    known++;
                    near(limit(beta[b], delay[t], ahead[c], m), closed, 1e-10);
                }
    ck_assert_int_eq(known, 90);
    near(pl_stability_closed(0, 5, 0, NV, NULL), 2 * sin(acos(-1) / 22), 1e-15);
    near(pl_stability_closed(.9, 0, 0, HB, NULL), 38, 1e-14);
    near(pl_stability_closed(.95, 1, 1, HB, NULL), 4, 1e-14);
    ck_assert(isnan(pl_stability_closed(.9, 2, 1, HB, NULL)));
    ck_assert(isnan(pl_stability_closed(.9, 1, 0, NV, NULL)));
}
END_TEST

/* Heavy ball with look-ahead c = beta is the Nesterov form with none. */
START_TEST(limit_equivalence)
{
    for (int tau = 0; tau <= 64; tau += 7) {
        near(limit(.9, tau, .9, HB), limit(.9, tau, 0, NV), 1e-12);
        near(limit(.6, tau, .6, HB), limit(.6, tau, 0, NV), 1e-12);
        near(pl_noise_variance(.01, .9, tau, .9, HB),
             pl_noise_variance(.01, .9, tau, 0, NV), 1e-9);
    }
}
END_TEST

START_TEST(limit_monotone)
{
    static const double beta[] = {0, .3, .9, .99, .999};
    double before = INFINITY;
    for (int tau = 0; tau <= 64; tau++) {
        double a = limit(beta[_i], tau, 0, HB);
        ck_assert_msg(a < before, "beta %g tau %d: %g >= %g", beta[_i], tau, a, before);
        before = a;
    }
}
END_TEST

/* Analytic limit against the companion matrix, over the whole promised range. */
START_TEST(limit_random)
{
    for (uint32_t i = 0; i < 150; i++) {
        double beta = .999 * pl_rng_uniform(1, PL_RNG_TEST, 1, i);
        if (i % 3 == 0) beta = 1 - pow(10, -3 * beta);
        int tau = (int)pl_rng_below(1, PL_RNG_TEST, 2, i, i % 2 ? 8 : 65);
        double c = i % 5 == 0 ? -2 + 66 * pl_rng_uniform(1, PL_RNG_TEST, 3, i)
                              : tau * 1.5 * pl_rng_uniform(1, PL_RNG_TEST, 3, i);
        enum pl_momentum m = i % 2 ? NV : HB;
        double a = limit(beta, tau, c, m);
        ck_assert_msg(isfinite(a) && a > 0, "beta %g tau %d c %g: limit %g", beta, tau,
                      c, a);
        double in = pl_stability_radius(.999 * a, beta, tau, c, m);
        double half = pl_stability_radius(.5 * a, beta, tau, c, m);
        double out = pl_stability_radius(1.001 * a, beta, tau, c, m);
        double on = pl_stability_radius(a, beta, tau, c, m);
        ck_assert_msg(
            in < 1 && half < 1 && out > 1,
            "beta %.17g tau %d c %.17g m %d limit %.17g: radii %.17g %.17g %.17g", beta,
            tau, c, (int)m, a, half, in, out);
        ck_assert_msg(fabs(on - 1) < 1e-9,
                      "beta %g tau %d c %g: radius %.17g at the limit", beta, tau, c,
                      on);
    }
}
END_TEST

/* Largest |x| over the last quarter of a run of the recursion itself (not the
 * polynomial): momentum, update history and look-ahead as the trainer applies them. */
static double simulate(double a, double beta, int tau, double c,
                       enum pl_momentum momentum, int steps, double noise,
                       double *mean_square)
{
    double x = 1, m = 0, late = 0, sum = 0;
    double *u = calloc((size_t)steps, sizeof *u);
    for (int t = 0; t < steps; t++) { /* h = 1: eta = a */
        double g = x + noise * pl_rng_normal(9, PL_RNG_TEST, 0, (uint32_t)t);
        m = beta * m + (1 - beta) * g;
        u[t] = a * (momentum == NV ? (1 - beta) * g + beta * m : m);
        double last = t >= tau ? u[t - tau] : 0, before = t > tau ? u[t - tau - 1] : 0;
        x += -(1 + c) * last + c * before;
        if (fabs(x) > 1e6) {
            late = INFINITY;
            break;
        }
        if (t >= steps - steps / 4) late = fmax(late, fabs(x));
        if (t >= steps / 10) sum += x * x / (steps - steps / 10);
    }
    free(u);
    if (mean_square) *mean_square = sum;
    return late;
}

START_TEST(limit_recursion)
{
    static const int delay[] = {0, 1, 2, 4, 16};
    for (int i = 0; i < 5; i++)
        for (int m = 0; m < 2; m++)
            for (int k = 0; k < 3; k++) {
                int tau = delay[i];
                double c = k == 0 ? 0 : k == 1 ? 1 : tau;
                double a = limit(.9, tau, c, m);
                ck_assert_double_lt(simulate(.99 * a, .9, tau, c, m, 40000, 0, NULL),
                                    1e-3);
                ck_assert_double_gt(simulate(1.01 * a, .9, tau, c, m, 40000, 0, NULL),
                                    1e3);
            }
}
END_TEST

/* The checker itself: a wrong polynomial must show. */
START_TEST(radius_roots)
{
    double p[6];
    ck_assert_int_eq(pl_stability_polynomial(.5, 0, 1, 0, HB, p), 2); /* z^2 - z + a */
    ck_assert(p[0] == 1 && p[1] == -1 && p[2] == .5);
    ck_assert_int_eq(pl_stability_polynomial(.5, .5, 1, 2, NV, p), 4);
    near(pl_stability_radius(.5, 0, 1, 0, HB), sqrt(.5), 1e-14);
    near(pl_stability_radius(3, 0, 0, 0, HB), 2, 1e-14);
    near(pl_stability_radius(0, .9, 4, 1, HB), 1, 1e-14);
    near(pl_stability_radius(1e6, 0, 0, 0, HB), 999999, 1e-14);
}
END_TEST

static const struct {
    double a, beta, ratio[4];
} noises[] = {
    {.05, .9, {1.053, 1.014, 1.011, .980}}, {.2, .9, {1.250, 1.062, 1.047, .932}},
    {.5, .9, {1.999, 1.181, 1.141, .885}},  {.9, .9, {9.989, 1.416, 1.327, .889}},
    {.2, .95, {1.250, 1.031, 1.023, .878}}, {.5, .95, {2.000, 1.089, 1.066, .760}},
};

START_TEST(noise_table)
{
    double a = noises[_i].a, beta = noises[_i].beta;
    double sync = pl_noise_variance(a, beta, 0, 0, HB);
    printed(pl_noise_ratio(a, beta), noises[_i].ratio[0], 3);
    near(pl_noise_variance(a, beta, 1, 0, HB) / sync, pl_noise_ratio(a, beta), 1e-12);
    printed(pl_noise_variance(a, beta, 1, 0, NV) / sync, noises[_i].ratio[1], 3);
    printed(pl_noise_variance(a, beta, 1, 1, HB) / sync, noises[_i].ratio[2], 3);
    printed(pl_noise_variance(a, beta, 1, 1, NV) / sync, noises[_i].ratio[3], 3);
}
END_TEST

START_TEST(noise_nesterov_sync)
{
    static const double a[] = {.05, .2, .5, .9}, shown[] = {.966, .878, .753, .647};
    for (int i = 0; i < 4; i++)
        printed(pl_noise_variance(a[i], .9, 0, 0, NV) /
                    pl_noise_variance(a[i], .9, 0, 0, HB),
                shown[i], 3);
    double sync = pl_noise_variance(.2, 0, 0, 0, HB);
    printed(pl_noise_variance(.2, 0, 1, 1, HB) / sync, 1.93, 2);
    printed(pl_noise_variance(.2, 0, 1, 0, HB) / sync, 1.23, 2);
    near(sync, .2 / (2 - .2), 1e-14); /* AR(1): a^2/(1 - (1-a)^2) */
}
END_TEST

START_TEST(noise_range)
{
    ck_assert(isnan(pl_noise_ratio(1, .9)) && isnan(pl_noise_ratio(0, .9)));
    ck_assert(isnan(pl_noise_ratio(.5, 1)) && isnan(pl_noise_ratio(NAN, .5)));
    for (int tau = 0; tau <= 64; tau += 16) {
        double a = limit(.95, tau, tau / 2.0, NV);
        ck_assert(isfinite(pl_noise_variance(.999 * a, .95, tau, tau / 2.0, NV)));
        ck_assert(isinf(pl_noise_variance(1.001 * a, .95, tau, tau / 2.0, NV)));
    }
}
END_TEST

/* Time average over n steps of a process with correlation time under 1/(1 - radius):
 * its relative error is about sqrt(2 / (n (1 - radius))); four of those are allowed. */
START_TEST(noise_monte_carlo)
{
    static const int delay[] = {0, 1, 3};
    for (int i = 0; i < 3; i++)
        for (int m = 0; m < 2; m++) {
            double a = .5 * limit(.8, delay[i], 1, m), seen;
            int n = 200000;
            simulate(a, .8, delay[i], 1, m, n, 1, &seen);
            double slow = 1 - pl_stability_radius(a, .8, delay[i], 1, m);
            near(seen, pl_noise_variance(a, .8, delay[i], 1, m),
                 4 * sqrt(2 / (n * slow)));
        }
}
END_TEST

static void fill(TCase *test)
{
    tcase_set_timeout(test, 60);
    tcase_add_loop_test(test, limit_table, 0, 5);
    tcase_add_test(test, limit_nesterov);
    tcase_add_loop_test(test, limit_best, 0, 7);
    tcase_add_test(test, limit_closed);
    tcase_add_test(test, limit_equivalence);
    tcase_add_loop_test(test, limit_monotone, 0, 5);
    tcase_add_test(test, limit_random);
    tcase_add_test(test, limit_recursion);
    tcase_add_test(test, radius_roots);
    tcase_add_loop_test(test, noise_table, 0, 6);
    tcase_add_test(test, noise_nesterov_sync);
    tcase_add_test(test, noise_range);
    tcase_add_test(test, noise_monte_carlo);
}

int main(void)
{
    return run_tests("theory/stability", fill);
}
