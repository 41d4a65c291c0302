/* Linear stability of delayed momentum methods on curvature h, a = eta h.
 * Pure functions of numbers. */
#ifndef PL_THEORY_STABILITY_H
#define PL_THEORY_STABILITY_H

/* How the momentum enters: EMA heavy ball m = b m + (1-b) g, u = eta m; or Nesterov,
 * u = eta ((1-b) g + b m). */
enum pl_momentum { PL_HEAVY_BALL, PL_NESTEROV };

/* Coefficients, highest power first, of
 * (1-q)(1-beta q) + a (1-beta) q^(tau+1) N(q) [(1+c) - c q] = 0 in z = 1/q, with N = 1
 * (heavy ball) or (1+beta) - beta q (Nesterov). Returns the degree; room for tau + 5.
 */
int pl_stability_polynomial(double a, double beta, int tau, double c,
                            enum pl_momentum momentum, double *coefficients);

/* Largest root modulus of that polynomial (companion matrix eigenvalues); NaN when they
 * do not converge or leave a relative residual over 1e-10. */
double pl_stability_radius(double a, double beta, int tau, double c,
                           enum pl_momentum momentum);

/* Largest a such that every smaller a > 0 is stable, to 1e-12 relative. */
double pl_stability_limit(double beta, int tau, double c, enum pl_momentum momentum);

/* Closed form of the limit where one is known, else NaN; *formula (may be NULL) its
 * text. */
double pl_stability_closed(double beta, int tau, double c, enum pl_momentum momentum,
                           const char **formula);

/* Variance of the stationary noise with delay 1 over that of the synchronous run at
 * equal a: closed form. NaN outside its range. */
double pl_noise_ratio(double a, double beta);
/* Stationary variance of x for unit gradient noise and h = 1, any tau and c, from the
 * recursion's impulse response; infinite when unstable. */
double pl_noise_variance(double a, double beta, int tau, double c,
                         enum pl_momentum momentum);

#endif
