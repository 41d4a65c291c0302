/* Rows of a sweep as text, CSV and JSON. */
#ifndef PL_CLI_SWEEP_PRINT_H
#define PL_CLI_SWEEP_PRINT_H

#include <stdio.h>

#include "cli/sweep_query.h"

/* What is printed: n of the matching rows of view. */
struct pl_sweep_answer {
    const struct pl_sweep_view *view;
    const int64_t *rows;
    int64_t n, matching;
};

/* An aligned table of the shown columns, and what they mean. */
void pl_sweep_print_text(const struct pl_sweep_answer *answer, FILE *out);
/* All columns, as `pipelag trace dump` writes a table. */
void pl_sweep_print_csv(const struct pl_sweep_answer *answer, FILE *out);
void pl_sweep_print_json(const struct pl_sweep_answer *answer, FILE *out);

#endif
