/* Output of `pipelag model`. */
#ifndef PL_CLI_PRINT_MODEL_H
#define PL_CLI_PRINT_MODEL_H

#include <stdio.h>

#include "sim/split.h"

struct pl_model_view {
    const char *name; /* as the user gave it */
    struct pl_model model;
    struct pl_parallel parallel;
    struct pl_microbatch batch;
    const char *optimizer, *split;
    int P, C;               /* P 0: no stages asked for; C = P times chunks */
    struct pl_chunk *chunk; /* [C] */
};

/* Errors: those of pl_work_block. Nothing is printed then. */
int pl_print_model_text(const struct pl_model_view *view, FILE *out);
int pl_print_model_json(const struct pl_model_view *view, FILE *out);

#endif
