/* pl_run on small problems against the theory of delay: stability limits, stationary
 * noise, rotation; stages, fused batches, fidelities. Sources: papers.md 2.2 and 2.3
 * are theory/stability.h here. */
#include "tests/problem_case.h"

#include <stdlib.h>

#include "base/mem.h"
#include "theory/stability.h"
#include "tests/runner.h"

/* Largest training loss of updates [from, to); infinite when it diverged before. */
static double largest(const struct pl_run_result *r, int64_t from, int64_t to)
{
    double top = 0;
    for (int64_t n = from; n < to; n++)
        top = fmax(top, n < r->n_rows ? r->rows[n].loss : INFINITY);
    return top;
}

/* Limits of a = lr h: 2 % below the run shrinks, 2 % above it grows. The run is as long
 * as the slower root needs for a factor e^10 between its second and its last quarter.
 */
static void bracket(double beta, int tau, double c, bool nesterov, double published)
{
    const enum pl_momentum momentum = nesterov ? PL_NESTEROV : PL_HEAVY_BALL;
    const double limit = pl_stability_limit(beta, tau, c, momentum);
    ck_assert_double_eq_tol(limit, published, 0.0051 * (published < 1 ? 0.1 : 1));
    struct pl_problem_spec spec = small_problem("quadratic");
    spec.size = 1;
    spec.rotation = 0;
    spec.spectrum.kind = PL_SPECTRUM_CONSTANT;
    struct pl_problem *p = open_problem(&spec, 1);
    for (int side = -1; side <= 1; side += 2) {
        const double a = limit * (1 + 0.02 * side);
        const double radius = pl_stability_radius(a, beta, tau, c, momentum);
        ck_assert_int_eq(radius > 1, side > 0);
        struct setting s = {.optimizer = "sgd",
                            .corrector = c != 0 ? "custom" : "none",
                            .c = c,
                            .lr = a,
                            .beta = beta,
                            .tau = tau,
                            .nesterov = nesterov,
                            .updates = 8 + (int64_t)(20 / fabs(log(radius)))};
        struct pl_run_result r = run_with(p, &s);
        double before = largest(&r, s.updates / 4, s.updates / 2);
        double after = largest(&r, 3 * s.updates / 4, s.updates);
        ck_assert_msg(side < 0 ? after < before : after > before,
                      "beta %g tau %d c %g%s: at %.3f of the limit %.4g the largest "
                      "loss went from %g to %g",
                      beta, tau, c, nesterov ? " Nesterov" : "", 1 + 0.02 * side, limit,
                      before, after);
        pl_run_free(&r);
    }
    pl_problem_free(p);
}

static const double betas[] = {0, 0.5, 0.9, 0.95, 0.99};
static const int taus[] = {0, 1, 2, 4};
static const double plain[][5] = {{2, 6, 38, 78, 398},
                                  {1, 1, 1, 1, 1},
                                  {.618, .562, .512, .506, .501},
                                  {.347, .312, .265, .258, .252}};
static const double ahead[][5] = {{0, 0, 0, 0, 0}, /* c = tau */
                                  {.618, 1, 2.702, 4, 9.512},
                                  {.371, .5, 1.21, 1.779, 4.23},
                                  {.207, .24, .494, .718, 1.706}};

START_TEST(stability_limits)
{
    const int b = _i % 5, t = _i / 5;
    bracket(betas[b], taus[t], 0, false, plain[t][b]);
    if (t > 0) bracket(betas[b], taus[t], taus[t], false, ahead[t][b]);
}
END_TEST

START_TEST(nesterov_limits)
{
    static const double published[] = {2.531, 3.75, 9.137}; /* beta .9 .95 .99, tau 1 */
    static const double fed_back[] = {3.45, 6.78, 33.4};    /* with c = 1 */
    for (int k = 0; k < 3; k++) {
        double beta = betas[k + 2];
        bracket(beta, 1, 0, true, published[k]);
        bracket(beta, 1, beta, false, published[k]); /* the same recursion in x */
        ck_assert_double_eq_tol(pl_stability_limit(beta, 1, 1, PL_NESTEROV),
                                fed_back[k], k == 2 ? 0.051 : 0.0051);
        bracket(beta, 1, 1, true, pl_stability_limit(beta, 1, 1, PL_NESTEROV));
    }
    bracket(0.9, 0, 0, true, 2 * 1.9 / (0.1 * 2.8));
}
END_TEST

/* sum over all k of rho_k^2, rho the autocorrelation of x under white gradient noise:
 * x = -M / (D + M) noise with D = (1-q)(1 - beta q), M = a (1-beta) q^(tau+1) N(q)
 * [(1+c) - c q], N = 1 or (1+beta) - beta q, so psi_j = -M_j - sum_i (D + M)_i
 * psi_(j-i).
 */
static double correlation_sum(const struct setting *s)
{
    enum { J = 4000, TERMS = 8 };
    double *psi = PL_NEW(J, double), rest[TERMS] = {0, -1 - s->beta, s->beta};
    double M[TERMS] = {0}, k0 = s->lr * (1 - s->beta), look[2] = {1 + s->c, -s->c};
    double nesterov[2] = {s->nesterov ? 1 + s->beta : 1, s->nesterov ? -s->beta : 0};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) M[s->tau + 1 + i + j] += k0 * nesterov[i] * look[j];
    for (int i = 0; i < TERMS; i++) rest[i] += M[i];
    for (int j = 0; j < J; j++) {
        psi[j] = j < TERMS ? -M[j] : 0;
        for (int i = 1; i < TERMS && i <= j; i++) psi[j] -= rest[i] * psi[j - i];
    }
    double sum = 0, variance = 0;
    for (int k = 0; k < 400; k++) {
        double gamma = 0;
        for (int j = 0; j + k < J; j++) gamma += psi[j] * psi[j + k];
        if (k == 0) variance = gamma;
        sum += (k ? 2 : 1) * gamma * gamma / (variance * variance);
    }
    free(psi);
    return sum;
}

/* Stationary variance of x on n equal directions: mean of 2 f / (h n) over updates and
 * directions. The mean of N values of x^2 of a gaussian x has variance 2 V^2 / N sum_k
 * rho_k^2 over all k (Bartlett's formula). */
static double variance(const struct setting *s, double *se)
{
    enum { n = 512, T = 1200 };
    struct pl_problem_spec spec = small_problem("quadratic");
    spec.size = n;
    spec.rotation = 0;
    spec.spectrum.kind = PL_SPECTRUM_CONSTANT;
    spec.noise = 1;
    struct pl_problem *p = open_problem(&spec, 2);
    struct setting longer = *s;
    const double r = pl_stability_radius(s->lr, s->beta, s->tau, s->c,
                                         s->nesterov ? PL_NESTEROV : PL_HEAVY_BALL);
    const int64_t burn = (int64_t)(12 / -log(r)); /* x starts at 1: left e^-12 of it */
    longer.updates = burn + T;
    struct pl_run_result run = run_with(p, &longer);
    double sum = 0;
    for (int64_t k = burn; k < run.n_rows; k++) sum += 2 * run.rows[k].loss / n / T;
    *se = sqrt(2. / n / T * correlation_sum(s));
    pl_run_free(&run);
    pl_problem_free(p);
    return sum;
}

/* Ratio to synchronous heavy ball at the same a: plain, Nesterov, error feedback,
 * both. */
START_TEST(stationary_noise)
{
    static const struct {
        double a, beta, published[4];
    } rows[] = {{.2, .9, {1.25, 1.062, 1.047, .932}},
                {.5, .9, {1.999, 1.181, 1.141, .885}}};
    double a = rows[_i].a, beta = rows[_i].beta, se0, se;
    struct setting s = {.optimizer = "sgd", .lr = a, .beta = beta};
    const double sync = variance(&s, &se0);
    ck_assert_double_eq_tol(sync, pl_noise_variance(a, beta, 0, 0, PL_HEAVY_BALL),
                            5 * se0 * sync);
    for (int k = 0; k < 4; k++) {
        s.tau = 1;
        s.nesterov = k & 1;
        s.c = k >= 2;
        s.corrector = k >= 2 ? "feedback" : "none";
        double ratio = variance(&s, &se) / sync, want = rows[_i].published[k];
        double bound = 5 * sqrt(se * se + se0 * se0) * want + 0.0006;
        ck_assert_msg(fabs(ratio - want) < bound, "a %g rule %d: %.4f, %.4f +- %.4f", a,
                      k, ratio, want, bound);
        ck_assert_double_lt(bound, 0.06 * want); /* it can tell plain from corrected */
        if (k == 0) ck_assert_double_eq_tol(pl_noise_ratio(a, beta), want, 0.0006);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, stability_limits, 0, 20);
    tcase_add_test(t, nesterov_limits);
    tcase_add_loop_test(t, stationary_noise, 0, 2);
}

int main(void)
{
    return run_tests("problem_run", fill);
}
