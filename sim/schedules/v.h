/* What the schedules on two chunks in a V share: chunk c < P on device c, then back,
 * chunk 2P-1-c. Internal to sim/. */
#ifndef PL_SIM_SCHEDULES_V_H
#define PL_SIM_SCHEDULES_V_H

#include "sim/schedules/plan.h"

/* Base orders by the memory they take, most first. */
enum pl_v_base { PL_V_ZERO, PL_V_HALF, PL_V_MIN, PL_V_SERIAL };

/* Plan from the first base order, from `base` on, that keeps to shape.limit (0: what
 * `base` holds) and write it. */
int pl_v_emit(const struct pl_cost *cost, enum pl_v_base base, struct pl_schedule *out);

#endif
