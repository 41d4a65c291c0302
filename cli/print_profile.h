/* Output of `pipelag profile`: the table of stages and operations, the same as JSON,
 * and the cost table that `pipelag sim` reads (cli/profile.h). */
#ifndef PL_CLI_PRINT_PROFILE_H
#define PL_CLI_PRINT_PROFILE_H

#include <stdio.h>

#include "cli/experiment.h"
#include "train/profile.h"

struct pl_profile_view {
    const struct pl_arm *arm;
    const struct pl_run_profile *profile;
    const struct pl_machine *machine;
    const char *device, *precision;      /* in words; as computed */
    double n_matmul, flops;              /* N of 6 N; 6 N + 12 L d T of a token */
    double flops_per_s, bytes_per_s;     /* peaks that floors and MFU are taken of */
    const char *flops_from, *bytes_from; /* "cluster.gpu.bf16" or "measured" */
};

void pl_print_profile_text(const struct pl_profile_view *view, FILE *out);
void pl_print_profile_json(const struct pl_profile_view *view, FILE *out);
void pl_print_profile_csv(const struct pl_profile_view *view, FILE *out);

#endif
