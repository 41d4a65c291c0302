/* A schedule given as a table: the CSV of torch.distributed.pipelining (_load_csv and
 * _dump_csv). One row a rank, one column a time step, a cell is STAGE OP MICROBATCH,
 * such as 2F0, or empty (idle). F forward, I input gradient, W weight gradient, B both;
 * a pair (0F5;7B2)OVERLAP_F_B runs together. Communication, which the engine derives
 * itself, is checked and passed over: SEND_F, RECV_F, SEND_B, RECV_B, and UNSHARD,
 * RESHARD, REDUCE_GRAD, which have no microbatch. A stage is a model chunk. The table
 * is one update between two flushes. */
#ifndef PL_SIM_CUSTOM_H
#define PL_SIM_CUSTOM_H

#include "sim/schedule.h"

struct pl_custom {
    char *path;
    int P, C, m;    /* rows, stages, microbatches */
    int *device;    /* [C] */
    int64_t *first; /* [P+1] device d issues ops[first[d]] .. ops[first[d+1]-1] */
    struct pl_op *ops;
    int references; /* owned by each holder; pl_custom_free drops one */
};

/* Read and check the table; the caller holds one reference. Errors: PL_EINPUT
 * "path:line:cell: cause, what was expected"; *out untouched. Cost: n log n. */
int pl_custom_read(const char *path, struct pl_custom **out);
struct pl_custom *pl_custom_hold(struct pl_custom *custom); /* one more; NULL is fine */
void pl_custom_free(struct pl_custom *custom);              /* NULL is fine */

/* Write the first update of a schedule. Without communication each op is at the first
 * time step at which it can run when every op takes one step; with it rows are compact
 * and SEND and RECV stand where PyTorch's lowering puts them. Errors: PL_EUNSUP for
 * replicas and for schedules without a flush, which the format cannot say; PL_EIO. */
int pl_custom_write(const struct pl_schedule *schedule, bool communication,
                    const char *path);

#endif
