/* A finished plan as text, CSV and JSON. */
#ifndef PL_CLI_PLAN_PRINT_H
#define PL_CLI_PLAN_PRINT_H

#include <stdio.h>

#include "base/json.h"
#include "cli/plan.h"

/* Table, conventions, why each row loses, what was refused, how the search went.
 * Errors: those of pl_plan_parts; nothing is printed then. */
int pl_plan_print_text(const struct pl_plan *plan, FILE *out);
/* One object. */
int pl_plan_print_json(const struct pl_plan *plan, FILE *out);
/* The table alone. */
int pl_plan_print_csv(const struct pl_plan *plan, FILE *out);
/* The configuration of row number k, from 1, as YAML for `pipelag sim`. Errors:
 * PL_EUSAGE when there is no such row. */
int pl_plan_print_yaml(const struct pl_plan *plan, int64_t k, FILE *out);

/* Parts of the first n printed rows, [n][PL_N_PARTS]; caller frees. NULL: error, set.
 */
double (*pl_plan_all_parts(const struct pl_plan *plan, int n))[PL_N_PARTS];
extern const char *const pl_plan_recompute_names[];
const char *pl_plan_split_name(const struct pl_plan *plan,
                               const struct pl_plan_group *group);

#endif
