/* What `pipelag sim` prints about delays beside the table of stages: another unit, the
 * histograms, the horizons of predictors. */
#ifndef PL_CLI_PRINT_DELAY_H
#define PL_CLI_PRINT_DELAY_H

#include "base/json.h"
#include "cli/print_sim.h"

void pl_print_delay_text(const struct pl_sim_view *view, FILE *out);
/* "delay_unit" of the whole run. */
void pl_print_delay_json(const struct pl_sim_view *view, struct pl_json *json);
/* Members of one instance: "delay_counts", "horizon". */
void pl_print_stage_delay_json(const struct pl_sim_view *view, int instance,
                               struct pl_json *json);

/* "3" of the first replica, "3'" of the second, "3'2" of the third and so on. */
const char *pl_instance_name(const struct pl_metrics *m, int instance, char name[32]);

#endif
