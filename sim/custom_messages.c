/* The communication cells of a schedule table: each transfer between two ranks has its
 * SEND after the op whose result it is and its RECV before the op that uses it. A table
 * without any SEND or RECV is one without communication. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/custom_cell.h"

#define ACT "%d%s%d"
#define OF(c) (c)->stage, pl_act_names[(c)->act], (c)->micro

/* One end of a transfer of F (from stage - 1 upwards) or B. */
struct end {
    const struct pl_cell *cell;
    bool backward, receives;
    int from; /* sending stage */
};

static int to_of(const struct end *e)
{
    return e->from + (e->backward ? -1 : 1);
}

static int by_transfer(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->backward != y->backward) return x->backward - y->backward;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->cell->micro != y->cell->micro)
        return x->cell->micro < y->cell->micro ? -1 : 1;
    if (x->receives != y->receives) return x->receives - y->receives;
    return x->cell < y->cell ? -1 : 1;
}

static int check_end(const struct pl_table *t, const struct end *e)
{
    const struct pl_cell *c = e->cell;
    int to = to_of(e);
    if (c->stage >= t->C || e->from < 0 || e->from >= t->C || to < 0 || to >= t->C)
        return pl_table_fail(t, c, ACT ": no stage %d beside it, stages are 0 to %d",
                             OF(c),
                             c->stage >= t->C ? c->stage
                             : e->receives    ? e->from
                                              : to,
                             t->C - 1);
    if (c->micro >= t->m)
        return pl_table_fail(t, c, ACT ": microbatches are 0 to %d", OF(c), t->m - 1);
    if (t->device[e->from] == t->device[to])
        return pl_table_fail(t, c,
                             ACT ": stages %d and %d are both on rank %d, nothing "
                                 "is sent",
                             OF(c), e->from, to, t->device[to]);
    if (t->device[c->stage] != c->row)
        return pl_table_fail(t, c, ACT " on rank %d, but stage %d is on rank %d", OF(c),
                             c->row, c->stage, t->device[c->stage]);
    return PL_OK;
}

/* The F, or the I or B, of a stage and microbatch. */
static const struct pl_cell *find(const struct pl_cell **op, int64_t n, int stage,
                                  int micro, bool backward)
{
    int64_t low = 0, high = n;
    while (low < high) { /* first entry of the group, which F begins */
        int64_t middle = (low + high) / 2;
        const struct pl_cell *c = op[middle];
        if (c->stage < stage || (c->stage == stage && c->micro < micro))
            low = middle + 1;
        else
            high = middle;
    }
    return op[low + backward];
}

static int check_transfer(const struct pl_table *t, const struct pl_cell **op,
                          int64_t n, const struct end *send, const struct end *receive)
{
    const struct pl_cell *s = send->cell, *r = receive->cell;
    const struct pl_cell *made = find(op, n, s->stage, s->micro, send->backward),
                         *used = find(op, n, r->stage, r->micro, send->backward);
    if (s < made)
        return pl_table_fail(t, s, ACT " before " ACT " in cell %d", OF(s), OF(made),
                             made->column + 1);
    if (r > used)
        return pl_table_fail(t, r, ACT " after " ACT " in cell %d, which needs it",
                             OF(r), OF(used), used->column + 1);
    return PL_OK;
}

static int fail_single(const struct pl_table *t, const struct end *e)
{
    static const char *const other[2][2] = {{"RECV_F", "SEND_F"}, {"RECV_B", "SEND_B"}};
    int stage = e->receives ? e->from : to_of(e);
    return pl_table_fail(t, e->cell, ACT " without its %d%s%d on rank %d", OF(e->cell),
                         stage, other[e->backward][e->receives], e->cell->micro,
                         t->device[stage]);
}

static int check_pairs(const struct pl_table *t, const struct pl_cell **op, int64_t n,
                       const struct end *end, int64_t n_ends)
{
    for (int64_t i = 0; i < n_ends; i += 2) {
        const struct end *a = &end[i], *b = i + 1 < n_ends ? &end[i + 1] : NULL;
        bool same = b && a->backward == b->backward && a->from == b->from &&
                    a->cell->micro == b->cell->micro;
        if (same && a->receives == b->receives)
            return pl_table_fail(t, b->cell, ACT " again, it is in cell %d already",
                                 OF(b->cell), a->cell->column + 1);
        if (!same) return fail_single(t, a);
        int rc = check_transfer(t, op, n, a, b);
        if (rc) return rc;
    }
    return PL_OK;
}

/* All transfers are there when as many are as stage boundaries between ranks ask for.
 */
static int check_all(const struct pl_table *t, const struct end *end, int64_t n_ends)
{
    int64_t at = 0;
    for (int backward = 0; backward < 2; backward++)
        for (int from = 0; from < t->C; from++) {
            int to = from + (backward ? -1 : 1);
            if (to < 0 || to >= t->C || t->device[from] == t->device[to]) continue;
            for (int i = 0; i < t->m; i++, at += 2)
                if (at >= n_ends || end[at].backward != backward ||
                    end[at].from != from || end[at].cell->micro != i)
                    return pl_fail(
                        PL_EINPUT,
                        "%s:%d: no %d%s%d, but others are sent: expected all "
                        "or no communication",
                        t->path, t->device[from] + 1, from,
                        backward ? "SEND_B" : "SEND_F", i);
        }
    return PL_OK;
}

int pl_table_check_messages(const struct pl_table *t, const struct pl_cell **op,
                            int64_t n)
{
    struct end *end = PL_NEW(t->n, struct end);
    int64_t n_ends = 0;
    int rc = PL_OK;
    for (int64_t i = 0; i < t->n && !rc; i++) {
        const struct pl_cell *c = &t->cell[i];
        if (c->act >= PL_ACT_UNSHARD) {
            if (c->stage >= t->C || t->device[c->stage] != c->row)
                rc = pl_table_fail(t, c, "%d%s: stage %d is not on rank %d", c->stage,
                                   pl_act_names[c->act], c->stage, c->row);
        } else if (c->act > PL_ACT_W) {
            bool backward = c->act >= PL_ACT_SEND_B,
                 receives = c->act == PL_ACT_RECV_F || c->act == PL_ACT_RECV_B;
            int from = !receives ? c->stage : c->stage + (backward ? 1 : -1);
            end[n_ends] = (struct end){c, backward, receives, from};
            rc = check_end(t, &end[n_ends++]);
        }
    }
    qsort(end, (size_t)n_ends, sizeof *end, by_transfer);
    if (!rc) rc = check_pairs(t, op, n, end, n_ends);
    if (!rc && n_ends) rc = check_all(t, end, n_ends);
    free(end);
    return rc;
}
