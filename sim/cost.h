/* What things take: a cluster of P equal devices in a line and the cost of each op on
 * it. Owned by the caller; released with pl_cost_free. */
#ifndef PL_SIM_COST_H
#define PL_SIM_COST_H

#include "base/units.h"

struct pl_cost {
    int P;
    pl_tick *forward;  /* [P] per microbatch, all chunks of the stage together */
    pl_tick *backward; /* [P] input gradient */
    pl_tick *weight;   /* [P] weight gradient */
    pl_tick *update;   /* [P] optimizer step, per update */
    pl_tick *link; /* [P-1] one transfer between stage s and s+1, either direction */
};

/* Each source array has 1 entry (for all) or the full number. Errors: PL_ECONFIG naming
 * the key (cost.forward, ...) and both lengths. On error *out is untouched. */
int pl_cost_new(int P, const pl_tick *forward, int n_forward, const pl_tick *backward,
                int n_backward, const pl_tick *weight, int n_weight,
                const pl_tick *update, int n_update, const pl_tick *link, int n_link,
                struct pl_cost *out);
/* A microbatch that is factor times larger: F, B, W and transfers (its bytes) times
 * factor, the update stays. Errors: PL_ECONFIG on tick overflow; nothing is changed
 * then. */
int pl_cost_scale(struct pl_cost *cost, int64_t factor);
void pl_cost_free(struct pl_cost *cost);

#endif
