/* The keys problem.*: what an arm trains. */
#ifndef PL_CLI_SETUP_PROBLEM_H
#define PL_CLI_SETUP_PROBLEM_H

#include "base/config.h"
#include "train/problem.h"

/* problem.name */
const struct pl_problem_type *pl_setup_problem_type(const struct pl_config *config);

/* The problem of a configuration on P stages, for batches of up to max_B sequences of
 * train.seq; model is for the kind that trains one; dry: see struct pl_problem_spec.
 * Errors: those of its open; PL_ECONFIG naming the key. *out is NULL then; released
 * with pl_problem_free. */
int pl_setup_problem(const struct pl_config *config, const struct pl_model *model,
                     const struct pl_device *device, int P, int max_B, bool dry,
                     struct pl_problem **out);

/* What is known exactly of it, without a device; NaN for a model, which is not opened.
 * Errors: those of pl_setup_problem. */
int pl_setup_problem_known(const struct pl_config *config, int P,
                           struct pl_problem_known *known);

#endif
