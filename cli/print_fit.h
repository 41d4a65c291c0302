/* What `pipelag calibrate` prints. */
#ifndef PL_CLI_PRINT_FIT_H
#define PL_CLI_PRINT_FIT_H

#include <stdio.h>

#include "cli/fit.h"

void pl_print_fit_text(const struct pl_fit *fit, FILE *out);
void pl_print_fit_json(const struct pl_fit *fit, FILE *out);
/* The fitted keys, as a configuration file; before each: "", or "# " for a comment. */
void pl_print_fit_yaml(const struct pl_fit *fit, const char *before, FILE *out);

#endif
