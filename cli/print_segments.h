/* What `pipelag sim` prints about each stretch of a mixed run. */
#ifndef PL_CLI_PRINT_SEGMENTS_H
#define PL_CLI_PRINT_SEGMENTS_H

#include "base/json.h"
#include "cli/print_sim.h"

void pl_print_segments_text(const struct pl_sim_view *view, FILE *out);
void pl_print_segments_json(const struct pl_sim_view *view, struct pl_json *json);

#endif
