/* The closed forms that stand beside the numbers of a run, where they apply to it. */
#ifndef PL_CLI_CLOSED_H
#define PL_CLI_CLOSED_H

#include "cli/setup.h"

/* Of times: for uniform costs, latency links and nothing that varies; else NaN. */
struct pl_closed pl_closed_of(const struct pl_setup *run);

/* Of one stage; -1 where there is none. */
struct pl_closed_stage {
    int64_t tau_min, tau_max, versions, peak;
};
/* None where times vary: there a U may slip past an op. */
struct pl_closed_stage pl_closed_stage_of(const struct pl_setup *run, int stage);

#endif
