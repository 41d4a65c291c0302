/* A-priori bound of an LMO method y_(t+1) = y_t + eta LMO(m_(t-tau)), gradients taken
 * at x_t = y_t + c (y_t - y_(t-1)), alpha = 1 - beta, after T applied updates:
 *
 *   mean E||grad f(y_t)||_* <= Delta/(eta T) + L eta [1/2 + 2 A + 2 B (1-alpha)/alpha]
 *                              + 2 rho sigma [sqrt(alpha/(2-alpha)) + 1/(alpha T)],
 *   A = tau + c, B = 1 + 2 c.
 *
 * Derived for this project along Kovalev 2025 (arXiv 2503.12645); the published theorem
 * for delayed LMO methods (arXiv 2606.30634) may have other constants. Variants:
 *  - Nesterov direction (1-alpha) m + alpha g: bias (1-alpha)^2/alpha, noise
 *    sqrt(alpha^2 (2-alpha)^2 + alpha^2 (1-alpha)^4/(1-(1-alpha)^2));
 *  - inexact LMO, -<m,d> >= s_lo ||m||_*, ||d|| <= s_hi (Shulgin et al. 2025, arXiv
 *    2510.19933): left side times s_lo, 1/2 times s_hi^2, every 2 becomes s_lo + s_hi,
 *    A and B times s_hi;
 *  - decoupled decay lambda: Frank-Wolfe with radius R = 1/lambda and step eta lambda;
 *    1/2 becomes 2, A and B double, and the left side is the mean of the gap
 *    <grad f(y), y> + R ||grad f(y)||_*, so everything is multiplied by R.
 * m_0 = g_0 is assumed. With zero initialisation read m/(1-beta^(s+1)), which has the
 * same LMO; the initial noise term is then at most
 * 2.27/(alpha T) sqrt(alpha/(2-alpha)). */
#include "theory/bound.h"

#include <assert.h>
#include <math.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>

#include "base/err.h"

static int check(const char *name, double value, double min, double max)
{
    if (value >= min && value <= max) return 0; /* NaN fails */
    return pl_fail(PL_ECONFIG, "%s is %g, expected %g to %g", name, value, min, max);
}

static int check_input(const struct pl_bound_input *in)
{
    const double big = 1e300, tiny = 1e-300;
    const struct {
        const char *name;
        double value, min, max;
    } range[] = {
        {"delta", in->delta, 0, big},      {"smoothness", in->L, 0, big},
        {"sigma", in->sigma, 0, big},      {"rho", in->rho, 0, big},
        {"eta", in->eta, tiny, big},       {"alpha (1 - beta)", in->alpha, tiny, 1},
        {"updates", in->T, 1, big},        {"delay", in->tau, 0, big},
        {"lookahead", in->c, 0, big},      {"s_lo", in->s_lo, tiny, big},
        {"s_hi", in->s_hi, in->s_lo, big}, {"decay", in->decay, 0, big},
    };
    for (unsigned i = 0; i < sizeof range / sizeof *range; i++) {
        int code = check(range[i].name, range[i].value, range[i].min, range[i].max);
        if (code) return code;
    }
    if (!isnan(in->A) && check("A", in->A, 0, big)) return PL_ECONFIG;
    if (!isnan(in->B) && check("B", in->B, 0, big)) return PL_ECONFIG;
    if (in->decay > 0.0 && (in->s_lo != 1.0 || in->s_hi != 1.0))
        return pl_fail(PL_ECONFIG,
                       "decay is %g with an inexact LMO, expected 0: the "
                       "Frank-Wolfe form needs the exact one",
                       in->decay);
    if (in->eta * in->decay > 1.0)
        return pl_fail(PL_ECONFIG, "eta * decay is %g, expected at most 1",
                       in->eta * in->decay);
    return 0;
}

/* Factor of L eta: what drift costs. */
static double drift_factor(const struct pl_bound_input *in, double alpha, double A,
                           double B)
{
    double memory = (1.0 - alpha) / alpha * (in->nesterov ? 1.0 - alpha : 1.0);
    double two = in->s_lo + in->s_hi;
    double step = in->decay > 0.0 ? 2.0 : 0.5 * in->s_hi * in->s_hi;
    double moved = (in->decay > 0.0 ? 2.0 : 1.0) * in->s_hi;
    return step + two * moved * (A + B * memory);
}

static double noise_term(const struct pl_bound_input *in, double alpha)
{
    double keep = 1.0 - alpha, variance = alpha / (2.0 - alpha);
    if (in->nesterov) /* 1 - keep^2 = alpha (2 - alpha) */
        variance = alpha * alpha * (2.0 - alpha) * (2.0 - alpha) +
                   alpha * keep * keep * keep * keep / (2.0 - alpha);
    return (in->s_lo + in->s_hi) * in->rho * in->sigma *
           (sqrt(variance) + 1.0 / (alpha * in->T));
}

int pl_bound(const struct pl_bound_input *in, struct pl_bound_terms *out)
{
    int code = check_input(in);
    if (code) return code;
    struct pl_bound_terms t = {.A = in->A, .B = in->B};
    if (isnan(t.A)) t.A = in->tau + in->c;
    if (isnan(t.B)) t.B = 1.0 + 2.0 * in->c;
    double unit = (in->decay > 0.0 ? 1.0 / in->decay : 1.0) / in->s_lo;
    t.start = unit * in->delta / (in->eta * in->T);
    t.drift = unit * in->L * in->eta * drift_factor(in, in->alpha, t.A, t.B);
    t.noise = unit * noise_term(in, in->alpha);
    t.total = t.start + t.drift + t.noise;
    *out = t;
    return 0;
}

/* The rate that minimises the bound at this alpha: start ~ 1/eta, drift ~ eta. */
static double best_rate(const struct pl_bound_input *in, double alpha)
{
    double A = isnan(in->A) ? in->tau + in->c : in->A;
    double B = isnan(in->B) ? 1.0 + 2.0 * in->c : in->B;
    double eta = sqrt(in->delta / (in->T * in->L * drift_factor(in, alpha, A, B)));
    return in->decay > 0.0 ? fmin(eta, 1.0 / in->decay) : eta;
}

/* Bound at alpha = exp(log_alpha) and its best rate. */
static double total_at(double log_alpha, void *input)
{
    struct pl_bound_input in = *(const struct pl_bound_input *)input;
    struct pl_bound_terms t = {0};
    in.alpha = fmin(exp(log_alpha), 1.0);
    in.eta = best_rate(&in, in.alpha);
    int code = pl_bound(&in, &t);
    assert(code == 0); /* checked by the caller */
    (void)code;
    return t.total;
}

/* Golden section with parabolic steps (Brent) inside a bracket found on a grid. */
static double best_log_alpha(struct pl_bound_input *in, double lo, double mid,
                             double hi)
{
    gsl_function f = {total_at, in};
    gsl_min_fminimizer *search = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
    gsl_error_handler_t *old = gsl_set_error_handler_off();
    if (gsl_min_fminimizer_set(search, &f, mid, lo, hi) == GSL_SUCCESS) {
        for (int i = 0; i < 200; i++) {
            if (gsl_min_fminimizer_iterate(search) != GSL_SUCCESS) break;
            if (gsl_min_fminimizer_x_upper(search) -
                    gsl_min_fminimizer_x_lower(search) <
                1e-9)
                break;
        }
        mid = gsl_min_fminimizer_x_minimum(search);
    }
    gsl_set_error_handler(old);
    gsl_min_fminimizer_free(search);
    return mid;
}

int pl_bound_best(const struct pl_bound_input *input, double *eta, double *alpha,
                  struct pl_bound_terms *out)
{
    enum { GRID = 600 };
    const double lowest = log(1e-9);
    struct pl_bound_input in = *input;
    in.alpha = 1.0;
    in.eta = 1e-300; /* both are to be found; the rest is checked */
    int code = check_input(&in);
    if (!code) code = check("delta", in.delta, 1e-300, 1e300);
    if (!code) code = check("smoothness", in.L, 1e-300, 1e300);
    if (code) return code;
    int best = GRID;
    double least = total_at(0.0, &in);
    for (int i = 0; i < GRID; i++) {
        double total = total_at(lowest * (1.0 - (double)i / GRID), &in);
        if (total >= least) continue;
        least = total;
        best = i;
    }
    double step = -lowest / GRID, at = best == GRID ? 0.0 : lowest + best * step;
    if (best > 0 && best < GRID) at = best_log_alpha(&in, at - step, at, at + step);
    in.alpha = fmin(exp(at), 1.0);
    in.eta = best_rate(&in, in.alpha);
    code = pl_bound(&in, out);
    if (code) return code;
    *eta = in.eta;
    *alpha = in.alpha;
    return 0;
}
