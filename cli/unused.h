/* Keys that were given and that nothing reads. */
#ifndef PL_CLI_UNUSED_H
#define PL_CLI_UNUSED_H

#include "base/config.h"

/* One warning for each key schedule.* that no schedule of the run takes, and one when a
 * model, a cluster or a parallelism is given beside given costs. Part of `pipelag sim`;
 * a sweep crosses keys with schedules on purpose. */
void pl_unused_warn(const struct pl_config *config);

#endif
