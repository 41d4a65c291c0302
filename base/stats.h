/* Small statistics in double. Arrays are borrowed. */
#ifndef PL_BASE_STATS_H
#define PL_BASE_STATS_H

double pl_mean(const double *x, int n); /* n >= 1 */
double pl_sd(const double *x, int n);   /* sample sd (n - 1); 0 for n = 1 */
/* Linear between order statistics. */
double pl_quantile(const double *x, int n, double q);
/* Half width of the two-sided 95 % t interval of the mean; NaN for n < 2. */
double pl_t95(const double *x, int n);

/* First x at which the curve (x ascending, linear between points) falls to level or
 * below; NaN when it never does. */
double pl_crossing(const double *x, const double *y, int n, double level);
/* Value at x0, linear between points, held flat outside; n >= 1. */
double pl_interpolate(const double *x, const double *y, int n, double x0);

#endif
