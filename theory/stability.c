/* Linear stability of momentum methods with delay tau and look-ahead c, q = 1/z:
 *
 *   (1-q)(1-beta q) + a (1-beta) q^(tau+1) N(q) [(1+c) - c q] = 0,
 *   N = 1 (heavy ball) or (1+beta) - beta q (Nesterov).
 *
 * At a -> 0+ the root z = 1 moves inside, so the limit is the least a > 0 with a root
 * on the circle. With q = exp(-i w) the equation gives a(w) explicitly; a root is there
 * where the phase of a(w) is a multiple of 2 pi. Source: derived for this project
 * (D-partition; for beta = c = 0 the stability lemma of PipeMare, arXiv 1910.05124). */
#include "theory/stability.h"

#include <assert.h>
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <gsl/gsl_complex.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_math.h>

#include "base/mem.h"

int pl_stability_polynomial(double a, double beta, int tau, double c,
                            enum pl_momentum momentum, double *coefficients)
{
    assert(tau >= 0);
    double n1 = momentum == PL_NESTEROV ? beta : 0.0; /* N = (1+n1) - n1 q */
    double k = a * (1.0 - beta);
    double *p = coefficients;
    int degree = tau + 3;
    for (int i = 0; i <= degree; i++) p[i] = 0.0;
    p[0] = 1.0;
    p[1] = -(1.0 + beta);
    p[2] = beta;
    p[tau + 1] += k * (1.0 + n1) * (1.0 + c);
    p[tau + 2] -= k * ((1.0 + n1) * c + n1 * (1.0 + c));
    p[tau + 3] += k * n1 * c;
    while (degree > 1 && p[degree] == 0.0) degree--; /* roots z = 0 */
    return degree;
}

/* Value and derivative of sum p[k] x^(n-k), or with reversed of sum p[k] x^k, and the
 * sum of the terms' sizes (the scale of the value's rounding). */
static double complex polynomial_at(const double *p, int n, bool reversed,
                                    double complex x, double complex *slope,
                                    double *scale)
{
    double complex value = 0.0, d = 0.0;
    double s = 0.0, r = cabs(x);
    for (int k = 0; k <= n; k++) {
        double coefficient = p[reversed ? n - k : k];
        d = d * x + value;
        value = value * x + coefficient;
        s = s * r + fabs(coefficient);
    }
    *slope = d;
    *scale = s;
    return value;
}

/* Modulus of the root near z after one Newton step if that lowers the residual; outside
 * the circle in q = 1/z, so that powers do not overflow. *residual is relative. */
static double polish(const double *p, int n, double complex z, double *residual)
{
    bool outside = cabs(z) > 1.0;
    double complex x = outside ? 1.0 / z : z, slope, dummy;
    double scale, scale_next;
    double complex value = polynomial_at(p, n, outside, x, &slope, &scale);
    *residual = scale > 0.0 ? cabs(value) / scale : 0.0;
    if (cabs(slope) > 0.0) {
        double complex next = x - value / slope;
        double moved = cabs(polynomial_at(p, n, outside, next, &dummy, &scale_next));
        if (moved < cabs(value)) {
            x = next;
            *residual = moved / scale_next;
        }
    }
    return outside ? 1.0 / cabs(x) : cabs(x);
}

/* Eigenvalues of the companion matrix, balanced; false when QR does not converge. */
static bool companion_roots(const double *p, int n, gsl_vector_complex *roots)
{
    gsl_matrix *companion = gsl_matrix_calloc((size_t)n, (size_t)n);
    gsl_eigen_nonsymm_workspace *work = gsl_eigen_nonsymm_alloc((size_t)n);
    for (int k = 0; k < n; k++)
        gsl_matrix_set(companion, 0, (size_t)k, -p[k + 1] / p[0]);
    for (int k = 1; k < n; k++)
        gsl_matrix_set(companion, (size_t)k, (size_t)(k - 1), 1.0);
    gsl_eigen_nonsymm_params(0, 1, work);
    gsl_error_handler_t *old = gsl_set_error_handler_off();
    int status = gsl_eigen_nonsymm(companion, roots, work);
    gsl_set_error_handler(old);
    gsl_eigen_nonsymm_free(work);
    gsl_matrix_free(companion);
    return status == GSL_SUCCESS;
}

double pl_stability_radius(double a, double beta, int tau, double c,
                           enum pl_momentum momentum)
{
    const double tolerance = 1e-10; /* QR is backward stable: about n eps is seen */
    double *p = PL_NEW(tau + 5, double);
    int n = pl_stability_polynomial(a, beta, tau, c, momentum, p);
    gsl_vector_complex *roots = gsl_vector_complex_alloc((size_t)n);
    double radius = companion_roots(p, n, roots) ? 0.0 : NAN;
    for (int k = 0; k < n && !isnan(radius); k++) {
        gsl_complex z = gsl_vector_complex_get(roots, (size_t)k);
        double residual;
        double modulus = polish(p, n, GSL_REAL(z) + I * GSL_IMAG(z), &residual);
        radius = residual < tolerance ? fmax(radius, modulus) : NAN;
    }
    gsl_vector_complex_free(roots);
    free(p);
    return radius;
}

/* The curve a(w) = -(1-q)(1-beta q) / ((1-beta) q^(tau+1) (1+n1(1-q)) (1+c(1-q))). */
struct curve {
    double beta, c, n1;
    int tau;
};

/* Argument of 1 + b (1-q), continuous on (0, pi), and its slope in w; 1 - beta q has
 * the same form with b = beta/(1-beta). */
static double factor_phase(double b, double w, double *slope)
{
    double half = sin(w / 2.0), one_minus_cos = 2.0 * half * half;
    double re = 1.0 + b * one_minus_cos, im = b * sin(w);
    *slope = (b * cos(w) * re - im * im) / (re * re + im * im);
    return atan2(im, re);
}

static double factor_modulus(double b, double w)
{
    double half = sin(w / 2.0), one_minus_cos = 2.0 * half * half;
    return hypot(1.0 + b * one_minus_cos, b * sin(w));
}

/* Phase of a(w) over 2 pi, continuous in w; *slope its derivative. */
static double curve_turns(const struct curve *f, double w, double *slope)
{
    double d_beta, d_c, d_n;
    double phase = factor_phase(f->beta / (1.0 - f->beta), w, &d_beta) -
                   factor_phase(f->c, w, &d_c) - factor_phase(f->n1, w, &d_n);
    *slope = (f->tau + 0.5 + d_beta - d_c - d_n) / (2.0 * M_PI);
    return (phase + (f->tau + 0.5) * w) / (2.0 * M_PI) + 0.75;
}

static double curve_modulus(const struct curve *f, double w)
{
    return 2.0 * sin(w / 2.0) * factor_modulus(f->beta / (1.0 - f->beta), w) /
           (factor_modulus(f->c, w) * factor_modulus(f->n1, w));
}

/* Zero in [lo, hi] of slope (target NaN) or of turns - target, by bisection. */
static double curve_bisect(const struct curve *f, double lo, double hi, double target)
{
    double slope, turns = curve_turns(f, lo, &slope);
    bool sign = isnan(target) ? slope > 0.0 : turns > target;
    for (int i = 0; i < 200; i++) {
        double mid = 0.5 * (lo + hi);
        if (mid <= lo || mid >= hi) break;
        turns = curve_turns(f, mid, &slope);
        if ((isnan(target) ? slope > 0.0 : turns > target) == sign)
            lo = mid;
        else
            hi = mid;
    }
    return 0.5 * (lo + hi);
}

/* Least a over the crossings in [lo, hi], where the phase is monotone. */
static double piece_least(const struct curve *f, double lo, double hi)
{
    double slope, from = curve_turns(f, lo, &slope), to = curve_turns(f, hi, &slope);
    double least = INFINITY;
    for (double k = ceil(fmin(from, to)); k <= fmax(from, to); k += 1.0)
        least = fmin(least, curve_modulus(f, curve_bisect(f, lo, hi, k)));
    return least;
}

/* The same where the phase may have one extremum inside. */
static double cell_least(const struct curve *f, double lo, double hi)
{
    double at_lo, at_hi;
    curve_turns(f, lo, &at_lo);
    curve_turns(f, hi, &at_hi);
    if ((at_lo > 0.0) == (at_hi > 0.0)) return piece_least(f, lo, hi);
    double mid = curve_bisect(f, lo, hi, NAN);
    return fmin(piece_least(f, lo, mid), piece_least(f, mid, hi));
}

double pl_stability_limit(double beta, int tau, double c, enum pl_momentum momentum)
{
    assert(beta >= 0.0 && beta < 1.0 && tau >= 0);
    struct curve f = {beta, c, momentum == PL_NESTEROV ? beta : 0.0, tau};
    /* w = pi: z = -1, where a is real */
    double at_pi = (tau % 2 ? -2.0 : 2.0) * (1.0 + beta) /
                   ((1.0 - beta) * (1.0 + 2.0 * f.n1) * (1.0 + 2.0 * c));
    double least = at_pi > 0.0 ? at_pi : INFINITY;
    /* Features have widths 1 - beta, 1/|c| and 1/tau at w = 0 and |1 + 2c| at pi, so
     * both grids are geometric; below the first point the phase has moved by under
     * 1e-3. */
    const double ratio = 1.01;
    double first = 1e-3 * (1.0 - beta) / (tau + 3.0 + fabs(c));
    double w = first;
    while (w < M_PI / 2.0) {
        double next = fmin(w * ratio, M_PI / 2.0);
        least = fmin(least, cell_least(&f, w, next));
        w = next;
    }
    for (double left = M_PI / 2.0; left > 1e-9; left /= ratio)
        least = fmin(least, cell_least(&f, M_PI - left, M_PI - left / ratio));
    return least;
}

/* The known limits of the heavy-ball form; Nesterov with c = 0 is heavy ball with c =
 * beta and is looked up as such. */
double pl_stability_closed(double beta, int tau, double c, enum pl_momentum momentum,
                           const char **formula)
{
    double value = NAN;
    const char *text = NULL;
    if (momentum == PL_NESTEROV && (c == 0.0 || beta == 0.0)) {
        if (c == 0.0) c = beta;
        momentum = PL_HEAVY_BALL;
    }
    if (momentum == PL_NESTEROV) {
        text = NULL;
    } else if (beta == 0.0 && c == 0.0) {
        value = 2.0 * sin(M_PI / (4.0 * tau + 2.0));
        text = "2 sin(pi/(4 tau + 2))";
    } else if (tau == 0 && c == 0.0) {
        value = 2.0 * (1.0 + beta) / (1.0 - beta);
        text = "2 (1 + beta)/(1 - beta)";
    } else if (tau == 0 && c == beta) {
        value = 2.0 * (1.0 + beta) / ((1.0 - beta) * (1.0 + 2.0 * beta));
        text = "2 (1 + beta)/((1 - beta)(1 + 2 beta))";
    } else if (tau == 0 && c > 0.0) { /* Jury: z = -1 leaves first */
        value = 2.0 * (1.0 + beta) / ((1.0 - beta) * (1.0 + 2.0 * c));
        text = "2 (1 + beta)/((1 - beta)(1 + 2 c))";
    } else if (tau == 1 && c == 0.0) {
        value = 1.0;
        text = "1";
    } else if (tau == 1 && c == 1.0) {
        value = (-1.0 + sqrt(1.0 + 4.0 / (1.0 - beta))) / 2.0;
        text = "(-1 + sqrt(1 + 4/(1 - beta)))/2";
    }
    if (formula) *formula = text;
    return value;
}
