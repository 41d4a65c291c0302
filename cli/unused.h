/* Keys that were given and that nothing reads. */
#ifndef PL_CLI_UNUSED_H
#define PL_CLI_UNUSED_H

#include "cli/experiment.h"

/* One warning for each key schedule.* that no schedule of the run takes, and one when a
 * model, a cluster or a parallelism is given beside given costs. Part of `pipelag sim`;
 * a sweep crosses keys with schedules on purpose. */
void pl_unused_warn(const struct pl_config *config);
/* One warning where simulated times lack the second gradient of optimizer.exact. */
void pl_unused_warn_twice(const struct pl_config *config);

/* One warning for each key problem.*, optimizer.* and corrector.* that was given and
 * that no arm's kind, rule or corrector reads, for keys of models and data beside arms
 * that train none, and for those that wait for the value of another. read_too: the
 * beginning of keys that the caller reads for something else, or NULL. Part of `pipelag
 * run` and `pipelag profile`. */
void pl_unused_warn_run(const struct pl_experiment *experiment, const char *read_too);

#endif
