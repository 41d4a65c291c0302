/* What `pipelag sim` prints: text with the closed form beside each number, or JSON. */
#ifndef PL_CLI_PRINT_SIM_H
#define PL_CLI_PRINT_SIM_H

#include <stdio.h>

#include "base/json.h"
#include "cli/setup.h"
#include "sim/delay_unit.h"
#include "sim/estimate.h"

struct pl_sim_view {
    const struct pl_setup *run;
    int gantt_width;                  /* columns; 0: no Gantt */
    const struct pl_delay_unit *unit; /* NULL: updates alone */
};

/* The part that a roofline adds; the JSON is a few members of the object. */
void pl_print_estimate_text(const struct pl_sim_view *view, FILE *out);
void pl_print_estimate_json(const struct pl_sim_view *view, struct pl_json *json);

void pl_print_sim_text(const struct pl_sim_view *view, FILE *out);
void pl_print_sim_json(const struct pl_sim_view *view, FILE *out);

#endif
