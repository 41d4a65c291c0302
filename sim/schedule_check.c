/* The checker of a schedule: every op where it belongs, once, nothing missing. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/schedule.h"

enum { F = 1 << PL_OP_F, B = 1 << PL_OP_B, W = 1 << PL_OP_W };

static int complain(const struct pl_op *op, int device, const char *what)
{
    return pl_fail(PL_ECHECK, "stage %d: %s %lld %s", device, pl_op_names[op->kind],
                   (long long)op->micro, what);
}

static int check_op(const struct pl_schedule *sched, const struct pl_op *op, int device,
                    unsigned char *seen)
{
    const struct pl_layout *layout = &sched->layout;
    int64_t n_micro = sched->shape.m * sched->shape.updates;
    static const unsigned char sets[] = {F, B, W, B | W}, needs[] = {0, F, F | B, F};
    if (op->kind < 0 || op->kind >= PL_OP_U)
        return pl_fail(PL_ECHECK, "stage %d: unknown op kind %d", device, op->kind);
    if (op->micro < 0 || op->micro >= n_micro)
        return complain(op, device, "out of range");
    if (op->chunk < 0 || op->chunk >= layout->C * layout->R ||
        layout->device[op->chunk] != device)
        return complain(op, device, "belongs to another stage");
    unsigned char *done = &seen[op->chunk * n_micro + op->micro];
    if (*done & sets[op->kind]) return complain(op, device, "issued twice");
    if ((*done & needs[op->kind]) != needs[op->kind])
        return complain(op, device,
                        op->kind == PL_OP_W ? "before its B" : "before its F");
    *done |= sets[op->kind];
    return PL_OK;
}

static int check_pair(const struct pl_schedule *sched, int64_t i, int device)
{
    const struct pl_op *op = &sched->ops[i];
    if (!op->pair) return PL_OK;
    if (op->kind != PL_OP_F || i + 1 >= sched->first[device + 1] ||
        op[1].kind != PL_OP_BW || op[1].pair)
        return complain(op, device, "is paired, but no BW follows it");
    return PL_OK;
}

/* All chunks of one replica, and nothing of the other. */
static int check_whole(const struct pl_schedule *sched, const unsigned char *seen)
{
    const struct pl_layout *layout = &sched->layout;
    int64_t n_micro = sched->shape.m * sched->shape.updates;
    for (int64_t i = 0; i < n_micro; i++) {
        int owner = 0;
        for (int r = 0; r < layout->R; r++)
            if (seen[(int64_t)r * layout->C * n_micro + i]) owner = r;
        for (int q = 0; q < layout->C * layout->R; q++) {
            int done = seen[q * n_micro + i], want = q / layout->C == owner;
            const char *missing = !(done & F) ? "F" : !(done & B) ? "B" : "W";
            if (!want && done)
                return pl_fail(PL_ECHECK, "microbatch %lld runs in both directions",
                               (long long)i);
            if (want && done != (F | B | W))
                return pl_fail(PL_ECHECK, "stage %d: %s %lld missing",
                               layout->device[q], missing, (long long)i);
        }
    }
    return PL_OK;
}

int pl_schedule_check(const struct pl_schedule *sched)
{
    const struct pl_layout *layout = &sched->layout;
    int64_t n_micro = sched->shape.m * sched->shape.updates;
    unsigned char *seen =
        PL_NEW((int64_t)layout->C * layout->R * n_micro, unsigned char);
    int rc = PL_OK;
    for (int d = 0; d < layout->P && !rc; d++)
        for (int64_t i = sched->first[d]; i < sched->first[d + 1] && !rc; i++) {
            rc = check_op(sched, &sched->ops[i], d, seen);
            if (!rc) rc = check_pair(sched, i, d);
        }
    if (!rc) rc = check_whole(sched, seen);
    free(seen);
    return rc;
}
