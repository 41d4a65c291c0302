/* The cells of a schedule table, between its reader, its checks and its writer.
 * Internal to sim/. */
#ifndef PL_SIM_CUSTOM_CELL_H
#define PL_SIM_CUSTOM_CELL_H

#include "sim/custom.h"

enum pl_act {
    PL_ACT_F,
    PL_ACT_I,
    PL_ACT_B,
    PL_ACT_W,
    PL_ACT_SEND_F,
    PL_ACT_RECV_F,
    PL_ACT_SEND_B,
    PL_ACT_RECV_B,
    PL_ACT_UNSHARD,
    PL_ACT_RESHARD,
    PL_ACT_REDUCE_GRAD,
    PL_N_ACT
};
extern const char *const pl_act_names[]; /* NULL-terminated */

struct pl_cell {
    int act, row, column; /* from 0 */
    int stage, micro;     /* micro -1: the act has none */
    bool pair;            /* overlapped with the next cell, which shares its column */
};

struct pl_table {
    const char *path;
    int rows;
    int64_t n, room;
    struct pl_cell *cell; /* row by row, in order of columns */
    int C, m;             /* set by the checks */
    int *device;          /* [C] */
};

/* "path:line:cell: " and the message; PL_EINPUT. */
int pl_table_fail(const struct pl_table *t, const struct pl_cell *cell,
                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Every op once and in order on one row, every message with both ends; sets C, m and
 * device. PL_EINPUT. */
int pl_table_check(struct pl_table *t);
/* The messages alone, of a table whose ops are right; op: its F, I, B, W sorted by
 * stage, microbatch and act. */
int pl_table_check_messages(const struct pl_table *t, const struct pl_cell **op,
                            int64_t n);

#endif
