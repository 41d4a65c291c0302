/* What a schedule table must be: every stage on one row, every op of every microbatch
 * once and in order, every message with both of its ends. The ops are sorted by stage,
 * microbatch and act, so that one pass meets what is missing. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/custom_cell.h"

/* "2F0" and the like. */
#define ACT "%d%s%d"
#define OF(c) (c)->stage, pl_act_names[(c)->act], (c)->micro

static int compare(int a, int b)
{
    return (a > b) - (a < b);
}

/* By stage, microbatch, act, place. */
static int by_op(const void *a, const void *b)
{
    const struct pl_cell *x = *(const struct pl_cell *const *)a,
                         *y = *(const struct pl_cell *const *)b;
    int order = compare(x->stage, y->stage);
    if (!order) order = compare(x->micro, y->micro);
    if (!order) order = compare(x->act, y->act);
    return order ? order : x < y ? -1 : 1;
}

/* C, m and the row of every stage. */
static int find_stages(struct pl_table *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        const struct pl_cell *c = &t->cell[i];
        if (c->act > PL_ACT_W) continue;
        if (c->stage >= t->C) t->C = c->stage + 1;
        if (c->micro >= t->m) t->m = c->micro + 1;
    }
    t->device = PL_NEW(t->C, int);
    for (int s = 0; s < t->C; s++) t->device[s] = -1;
    for (int64_t i = 0; i < t->n; i++) {
        const struct pl_cell *c = &t->cell[i];
        if (c->act > PL_ACT_W) continue;
        if (t->device[c->stage] < 0) t->device[c->stage] = c->row;
        if (t->device[c->stage] != c->row)
            return pl_table_fail(
                t, c, ACT " on rank %d, but stage %d is on rank %d (line %d)", OF(c),
                c->row, c->stage, t->device[c->stage], t->device[c->stage] + 1);
    }
    return PL_OK;
}

/* No stage missing, the same number on every rank. */
static int check_stages(const struct pl_table *t)
{
    int rc = PL_OK;
    int *held = PL_NEW(t->rows, int);
    for (int s = 0; s < t->C && !rc; s++) {
        if (t->device[s] < 0)
            rc = pl_fail(PL_EINPUT, "%s: no op of stage %d, but stages go up to %d",
                         t->path, s, t->C - 1);
        else
            held[t->device[s]]++;
    }
    for (int d = 0; d < t->rows && !rc; d++)
        if (held[d] != held[0])
            rc = pl_fail(PL_EINPUT,
                         "%s:%d: rank %d has %d stage%s, expected %d as on rank 0",
                         t->path, d + 1, d, held[d], held[d] == 1 ? "" : "s", held[0]);
    free(held);
    return rc;
}

/* The ops of one stage and microbatch, group[0 .. n-1], by act. */
static int check_group(const struct pl_table *t, const struct pl_cell *const *group,
                       int64_t n)
{
    const struct pl_cell *of[4] = {NULL}, *c = group[0];
    for (int64_t i = 0; i < n; i++) {
        int act = group[i]->act;
        if (of[act])
            return pl_table_fail(t, group[i], ACT " again, it is in cell %d already",
                                 OF(group[i]), of[act]->column + 1);
        of[act] = group[i];
    }
    const struct pl_cell *f = of[PL_ACT_F], *in = of[PL_ACT_I], *both = of[PL_ACT_B],
                         *w = of[PL_ACT_W], *back = both ? both : in;
    if (!f)
        return pl_table_fail(t, c, ACT " without its %dF%d", OF(c), c->stage, c->micro);
    if (both && (in || w))
        return pl_table_fail(t, both,
                             ACT
                             " beside %s: B is the full backward, the input gradient "
                             "alone is %dI%d (older files of PyTorch write B)",
                             OF(both), in ? "I" : "W", c->stage, c->micro);
    if (!back)
        return pl_table_fail(
            t, f, ACT " without a backward, expected %dB%d, or %dI%d and %dW%d", OF(f),
            f->stage, f->micro, f->stage, f->micro, f->stage, f->micro);
    if (in && !w)
        return pl_table_fail(t, in, ACT " without its %dW%d", OF(in), c->stage,
                             c->micro);
    if (back < f)
        return pl_table_fail(t, back, ACT " before its F in cell %d", OF(back),
                             f->column + 1);
    if (w && w < back)
        return pl_table_fail(t, w, ACT " before its I in cell %d", OF(w),
                             back->column + 1);
    return PL_OK;
}

static int check_ops(const struct pl_table *t, const struct pl_cell **op, int64_t n)
{
    int64_t at = 0;
    for (int s = 0; s < t->C; s++)
        for (int i = 0; i < t->m; i++) {
            int64_t end = at;
            while (end < n && op[end]->stage == s && op[end]->micro == i) end++;
            if (end == at)
                return pl_fail(
                    PL_EINPUT,
                    "%s:%d: no %dF%d on rank %d, but microbatches go up to %d", t->path,
                    t->device[s] + 1, s, i, t->device[s], t->m - 1);
            int rc = check_group(t, op + at, end - at);
            if (rc) return rc;
            at = end;
        }
    return PL_OK;
}

int pl_table_check(struct pl_table *t)
{
    int64_t n = 0;
    int rc = find_stages(t);
    if (!rc && !t->C) rc = pl_fail(PL_EINPUT, "%s: communication only, no op", t->path);
    if (!rc) rc = check_stages(t);
    if (rc) return rc;
    const struct pl_cell **op = PL_NEW(t->n, const struct pl_cell *);
    for (int64_t i = 0; i < t->n; i++)
        if (t->cell[i].act <= PL_ACT_W) op[n++] = &t->cell[i];
    qsort(op, (size_t)n, sizeof *op, by_op);
    rc = check_ops(t, op, n);
    if (!rc) rc = pl_table_check_messages(t, op, n);
    free(op);
    return rc;
}
