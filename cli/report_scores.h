/* Scores of `pipelag run` at the last version: mean over seeds, and the spread. */
#ifndef PL_CLI_REPORT_SCORES_H
#define PL_CLI_REPORT_SCORES_H

#include <stdio.h>

#include "base/json.h"
#include "cli/experiment.h"

/* results: [jobs]. Nothing is printed when there are no scores. */
void pl_scores_print(const struct pl_experiment *e, const struct pl_run_result *results,
                     FILE *out);
void pl_scores_json(const struct pl_experiment *e, const struct pl_run_result *results,
                    struct pl_json *json);

#endif
