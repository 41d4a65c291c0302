/* The table of schedules, generation with its guards, and the checker of a schedule. */
#include "sim/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/schedules/emit.h"

const char *const pl_op_names[PL_N_OP] = {"F", "B", "W", "BW", "U"};

const struct pl_schedule_type *const pl_schedule_types[] = {
    &pl_schedule_gpipe, &pl_schedule_1f1b, &pl_schedule_pipedream, &pl_schedule_2bw,
    NULL};

/* Names of the table, in its order. */
static const char *const names[] = {"gpipe", "1f1b", "pipedream", "2bw", NULL};

enum { MAX_OPS = 200000000 };
enum { OP_BYTES = 90 }; /* schedule, timeline and version map while simulating */

const char *const *pl_schedule_names(void)
{
    return names;
}

const struct pl_schedule_type *pl_schedule_find(const char *name)
{
    for (int i = 0; pl_schedule_types[i]; i++)
        if (!strcmp(pl_schedule_types[i]->name, name)) return pl_schedule_types[i];
    return NULL;
}

int64_t pl_schedule_default_updates(const struct pl_schedule_type *type, int P, int m)
{
    return type->async ? (2 * (int64_t)P + m - 1) / m + 8 : 1;
}

static int check_shape(const struct pl_shape *shape)
{
    if (shape->P < 1)
        return pl_fail(PL_ECONFIG, "schedule.stages is %d, expected at least 1",
                       shape->P);
    if (shape->m < 1)
        return pl_fail(PL_ECONFIG, "schedule.microbatches is %d, expected at least 1",
                       shape->m);
    if (shape->updates < 1)
        return pl_fail(PL_ECONFIG, "schedule.updates is %lld, expected at least 1",
                       (long long)shape->updates);
    double ops = (2.0 * shape->m + 1) * shape->P * (double)shape->updates;
    if (ops > MAX_OPS)
        return pl_fail(
            PL_ECONFIG,
            "P = %d, m = %d and %lld updates make %.0f ops, at most %d fit in "
            "memory: run fewer updates and extrapolate from the step time",
            shape->P, shape->m, (long long)shape->updates, ops, MAX_OPS);
    char what[120];
    snprintf(what, sizeof what, "a simulation of P = %d, m = %d and %lld updates",
             shape->P, shape->m, (long long)shape->updates);
    return pl_memory_check(ops * OP_BYTES, what);
}

int pl_schedule_new(const struct pl_schedule_type *type, const struct pl_shape *shape,
                    struct pl_schedule *out)
{
    int rc = check_shape(shape);
    if (!rc && type->check) rc = type->check(shape);
    if (rc) return rc;
    struct pl_schedule made = {.type = type, .shape = *shape};
    rc = type->emit(shape, &made);
    if (rc) {
        pl_schedule_free(&made);
        return rc;
    }
    *out = made;
    return PL_OK;
}

/* What one stage has issued so far. */
struct issued {
    unsigned char *micro; /* [n_micro] bits of op kinds */
    int64_t *left;        /* [updates] weight gradients missing */
    int64_t updates;      /* issued */
};

static int complain(const struct pl_op *op, int stage, const char *what)
{
    return pl_fail(PL_ECHECK, "stage %d: %s %lld %s", stage, pl_op_names[op->kind],
                   (long long)op->micro, what);
}

static int check_op(const struct pl_schedule *sched, const struct pl_op *op, int stage,
                    struct issued *seen)
{
    const struct pl_shape *shape = &sched->shape;
    if (op->kind < 0 || op->kind >= PL_N_OP)
        return pl_fail(PL_ECHECK, "stage %d: unknown op kind %d", stage, op->kind);
    int64_t limit = op->kind == PL_OP_U ? shape->updates : shape->m * shape->updates;
    if (op->micro < 0 || op->micro >= limit) return complain(op, stage, "out of range");
    if (op->chunk != stage) return complain(op, stage, "belongs to another stage");
    if (op->kind == PL_OP_U) {
        if (op->micro < seen->updates) return complain(op, stage, "issued twice");
        if (op->micro > seen->updates)
            return complain(op, stage, "out of update order");
        if (seen->left[op->micro]) return complain(op, stage, "before its group ended");
        seen->updates++;
        return PL_OK;
    }
    enum { F = 1 << PL_OP_F, B = 1 << PL_OP_B, W = 1 << PL_OP_W };
    static const unsigned char sets[] = {F, B, W, B | W}, needs[] = {0, F, F | B, F};
    unsigned char *done = &seen->micro[op->micro];
    if (*done & sets[op->kind]) return complain(op, stage, "issued twice");
    if ((*done & needs[op->kind]) != needs[op->kind])
        return complain(op, stage,
                        op->kind == PL_OP_W ? "before its B" : "before its F");
    *done |= sets[op->kind];
    if (sets[op->kind] & W) seen->left[op->micro / shape->m]--;
    return PL_OK;
}

static int check_stage(const struct pl_schedule *sched, int stage, struct issued *seen)
{
    const struct pl_shape *shape = &sched->shape;
    memset(seen->micro, 0, (size_t)(shape->m * shape->updates));
    for (int64_t g = 0; g < shape->updates; g++) seen->left[g] = shape->m;
    seen->updates = 0;
    for (int64_t i = sched->first[stage]; i < sched->first[stage + 1]; i++) {
        int rc = check_op(sched, &sched->ops[i], stage, seen);
        if (rc) return rc;
    }
    if (seen->updates != shape->updates)
        return pl_fail(PL_ECHECK, "stage %d: U %lld missing", stage,
                       (long long)seen->updates);
    return PL_OK; /* every U had its whole group, so no F, B or W is missing */
}

int pl_schedule_check(const struct pl_schedule *schedule)
{
    const struct pl_shape *shape = &schedule->shape;
    struct issued seen = {PL_NEW(shape->m * shape->updates, unsigned char),
                          PL_NEW(shape->updates, int64_t), 0};
    int rc = PL_OK;
    for (int s = 0; s < shape->P && !rc; s++) rc = check_stage(schedule, s, &seen);
    free(seen.micro);
    free(seen.left);
    return rc;
}

void pl_schedule_free(struct pl_schedule *schedule)
{
    if (!schedule) return;
    free(schedule->first);
    free(schedule->ops);
    *schedule = (struct pl_schedule){0};
}
