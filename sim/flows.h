/* Messages in flight that share bandwidth. Internal to sim/. */
#ifndef PL_SIM_FLOWS_H
#define PL_SIM_FLOWS_H

#include "sim/network.h"

/* NULL when nothing is shared. */
struct flows *pl_flows_new(const struct engine *e);
void pl_flows_free(struct flows *flows);
/* m is ready to leave at `start`, now or later. */
int pl_flows_add(struct engine *e, const struct message *m, pl_tick start);
/* What leaves or ends now; sets the next turn of the network. */
int pl_flows_turn(struct engine *e);

#endif
