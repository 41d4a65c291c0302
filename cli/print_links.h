/* What `pipelag sim` says of links and of times that vary. */
#ifndef PL_CLI_PRINT_LINKS_H
#define PL_CLI_PRINT_LINKS_H

#include <stdio.h>

#include "base/json.h"
#include "sim/cost.h"

/* A line on what varies; nothing when nothing does. */
void pl_print_jitter_text(const struct pl_cost *cost, FILE *out);
/* link_semantics and jitter (null when nothing varies) of the open object. */
void pl_print_links_json(const struct pl_cost *cost, struct pl_json *json);

#endif
