/* Fit configuration keys to measured times: least squares of log(predicted / measured)
 * by Levenberg-Marquardt (Marquardt 1963) with numerical derivatives, started from the
 * best of a coarse scan of each key's range. Keys whose range starts above 0, and
 * durations, vary on a log scale. */
#ifndef PL_CLI_FIT_H
#define PL_CLI_FIT_H

#include "cli/measured.h"

enum { PL_MAX_FIT = 8 };

struct pl_fit_key {
    const struct pl_key *key;
    double before; /* NaN: rows differ */
    double value;
    double min, max;
    bool log;
    bool edge; /* the best value is an end of the range */
};

/* One measured time of a row. */
struct pl_fit_entry {
    int row, what; /* PL_STEP, ... */
    double measured, before, fitted;
    double left_out; /* predicted by a fit to the others; NaN: fewer than 4 entries */
};

struct pl_fit {                     /* owned: pl_fit_free */
    const struct pl_measured *data; /* borrowed */
    int n_keys, n;
    struct pl_fit_key key[PL_MAX_FIT];
    struct pl_fit_entry *entry; /* [n] */
    /* means of |predicted / measured - 1| */
    double error_before, error_fitted, error_left_out;
    double bias_before, bias_fitted; /* means of predicted / measured - 1 */
    int64_t evaluations;             /* of all rows */
};

/* keys: names, separated by commas; NULL fits nothing: fitted is then before. Leaves
 * the fitted values in the rows' configurations. left_out: by the leverage of an entry
 * at the solution (exact for a linear model: Allen's PRESS, 1974), not by a new fit.
 * Errors: PL_EUSAGE (keys), PL_ECONFIG (no row depends on a key), the simulator's. */
int pl_fit_new(struct pl_measured *data, const char *keys, struct pl_fit *out);
void pl_fit_free(struct pl_fit *fit);

#endif
