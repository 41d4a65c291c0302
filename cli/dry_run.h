/* `pipelag run --dry-run`: what a run would be and take; nothing is written. */
#ifndef PL_CLI_DRY_RUN_H
#define PL_CLI_DRY_RUN_H

#include "cli/session.h"

/* With config set: check everything, the output and the folder of weights where they
 * are given, and print the keys
 * given, each arm's schedule, delays and sequences at once, and its memory by part.
 * Errors: as pl_session_open; PL_EMEM after printing when the memory is not there. */
int pl_dry_run(struct pl_session *s, bool as_json, FILE *out);

#endif
