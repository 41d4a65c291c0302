/* What `sim` and `run` both read from the configuration of one schedule. */
#ifndef PL_CLI_SETUP_H
#define PL_CLI_SETUP_H

#include "base/config.h"
#include "sim/schedule.h"

/* schedule.microbatches, or the schedule's default. */
int pl_setup_microbatches(const struct pl_config *config,
                          const struct pl_schedule_type *type, int P);
/* The cost.* and link.time keys. Errors: as pl_cost_new. */
int pl_setup_cost(const struct pl_config *config, int P, struct pl_cost *cost);
/* clip.scope, resolved: is one norm taken over all stages, so that every U waits for
 * all of them? Errors: PL_EUNSUP when that is asked of a schedule whose stages differ.
 */
int pl_setup_barrier(const struct pl_config *config,
                     const struct pl_schedule_type *type, bool *barrier);

#endif
