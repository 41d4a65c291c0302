/* A device that measures another one: every operation goes to the device behind it and,
 * while a table is set, its time, flops and bytes (gpu/op_costs.h) are added to a row
 * of the table. Where the memory is the device's own, each operation is waited for, so
 * the times hold its launch too and sum up to more than the operations issued in a row
 * take. One set of them in a process, one thread. */
#ifndef PL_GPU_TIMED_H
#define PL_GPU_TIMED_H

#include "gpu/device.h"
#include "gpu/ops.h"

#define PL_TIMED_ROW(p, name, params, args) p##name,
/* Rows: operations, the other two kinds of products (the first has the operation's
 * row), and memory. */
enum pl_timed_row {
    PL_OPS(PL_TIMED_ROW, PL_TIMED_) PL_TIMED_product_dx,
    PL_TIMED_product_dw,
    PL_TIMED_product_groups_dx,
    PL_TIMED_product_groups_dw,
    PL_TIMED_upload,
    PL_TIMED_prefetch,
    PL_TIMED_download,
    PL_TIMED_copy,
    PL_TIMED_zero,
    PL_TIMED_ROWS
};
extern const char *const pl_timed_names[PL_TIMED_ROWS];

struct pl_timed {
    int64_t calls;
    double seconds, flops, bytes;
};

struct pl_timed_table {
    struct pl_timed row[PL_TIMED_ROWS];
};

/* Two devices of a run: the one that holds weights, and its twin in another precision,
 * which products go to. Opening and closing stay with the device behind. */
enum { PL_TIMED_DEVICES = 2 };
/* The measuring device number i (0 or 1) in front of a device, which must stay open;
 * valid until the next call with that i. */
const struct pl_device *pl_timed_device(int i, const struct pl_device *device);
/* From here on add to *table (borrowed); NULL: measure nothing, which costs two loads
 * an operation. */
void pl_timed_into(struct pl_timed_table *table);

/* Wait for everything issued; nothing to wait for where wait is NULL. */
int pl_timed_wait(const struct pl_device *device);
/* Monotonic seconds; differences have the clock's own resolution. */
double pl_timed_now(void);

#endif
