/* From the report to the claims' verdicts, and their print. */
#ifndef PL_CLI_VERDICTS_H
#define PL_CLI_VERDICTS_H

#include "cli/report.h"
#include "theory/claim.h"

/* Judge every claim on the report's arms: groups are optimizers, labels pipelines. The
 * caller frees the array; *n entries. */
struct pl_verdict *pl_verdicts_of(const struct pl_report *report, int *n);
void pl_verdicts_print(const struct pl_verdict *verdicts, int n, FILE *out);
void pl_verdicts_json(const struct pl_verdict *verdicts, int n, struct pl_json *json);

#endif
