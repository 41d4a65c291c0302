/* The keys of a fit: which can be fitted, and the scale from 0 to 1 that the solver
 * moves them on. Private to cli/fit.c. */
#ifndef PL_CLI_FIT_KEYS_H
#define PL_CLI_FIT_KEYS_H

#include "cli/fit.h"

/* Add the keys of a list, separated by commas, with their ranges and values before.
 * Errors: PL_EUSAGE naming the key. */
int pl_fit_keys_add(struct pl_fit *fit, const char *list);
/* Value at u in [0, 1] of the range, and back (.5: outside of it). */
double pl_fit_key_value(const struct pl_fit_key *k, double u);
double pl_fit_key_place(const struct pl_fit_key *k, double value);
/* Set all keys to their values at u in all rows. Errors: those of the configuration. */
int pl_fit_keys_set(struct pl_fit *fit, const double *u);

#endif
