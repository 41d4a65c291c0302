/* Round numbers and units for axes. Nothing to own. */
#ifndef PL_TRACES_AXIS_H
#define PL_TRACES_AXIS_H

/* Smallest of {1, 2, 5} x 10^k that divides span into at most n steps; span > 0, n
 * >= 1. */
double pl_axis_step(double span, int n);

/* Unit in which a duration of ps picoseconds is at least 1: "ps" ... "s"; *per_unit is
 * its length in ps. Constant. */
const char *pl_axis_unit(double ps, double *per_unit);

#endif
