/* Measured costs of a pipeline: a CSV file with one row a stage (or a model chunk, or
 * one row for all) and the columns forward, backward, weight, update and link, or a
 * trace, whose first arm's costs are taken. A column's name may end in its unit,
 * "forward [ms]"; otherwise each cell has one, "18.5 ms". Missing columns are 0; a line
 * that starts with # is a comment; other columns are passed over. */
#ifndef PL_CLI_PROFILE_H
#define PL_CLI_PROFILE_H

#include "sim/cost.h"

enum { PL_N_PROFILE = 5 };
extern const char *const pl_profile_columns[PL_N_PROFILE]; /* in that order */

struct pl_profile {
    int n;     /* rows */
    int links; /* entries of the last column: of a trace, its ring */
    pl_tick *column[PL_N_PROFILE]; /* owned: pl_profile_free */
};

/* Errors: PL_EINPUT and PL_ECONFIG naming path:line, column and cause. */
int pl_profile_read(const char *path, struct pl_profile *out);
void pl_profile_free(struct pl_profile *profile);

#endif
