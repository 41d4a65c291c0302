/* The messages of an executed run against the semantics of its links. */
#ifndef PL_SIM_NETWORK_CHECK_H
#define PL_SIM_NETWORK_CHECK_H

#include "sim/timeline.h"

/* rows[i]: row of the op whose result message i is. All links: not sent before the op
 * ended and the sender had done its part.
 *   latency     sent then, arrived one transfer later
 *   occupancy   sent as soon as the links on the way are free; no two on one link
 *   rendezvous  arrived one transfer later; neither side runs anything meanwhile, nor
 *               the sender since its op (but a backward that communicates together with
 * it) contention  sent then, arrived one transfer later or more PL_ECHECK with the
 * named complaint. */
int pl_network_check(const struct pl_timeline *timeline,
                     const struct pl_schedule *schedule, const struct pl_cost *cost,
                     const int64_t *rows);

#endif
