/* The checker of executed runs: everything is recomputed from the columns, the schedule
 * and the costs, nothing is taken from the engine. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/network_check.h"

/* Where every op is: by kind, instance and number. */
struct index {
    const struct pl_timeline *t;
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    int64_t n_micro;
    int C, Q;             /* model chunks, instances */
    int64_t *at[PL_N_OP]; /* row of the op in the timeline, -1: not executed */
};

static int64_t limit_of(const struct index *x, int kind)
{
    return kind == PL_OP_U ? x->sched->shape.updates : x->n_micro;
}

static int64_t row_of(const struct index *x, int kind, int instance, int64_t number)
{
    return x->at[kind] ? x->at[kind][instance * limit_of(x, kind) + number] : -1;
}

static int complain(const struct index *x, int64_t row, const char *what)
{
    const struct pl_timeline *t = x->t;
    return pl_fail(PL_ECHECK, "stage %d: %s %lld (row %lld): %s", t->device[row],
                   pl_op_names[t->kind[row]], (long long)t->micro[row], (long long)row,
                   what);
}

static pl_tick cost_of(const struct index *x, int64_t row)
{
    const struct pl_timeline *t = x->t;
    return pl_cost_op(x->cost, t->kind[row], t->chunk[row], t->device[row],
                      t->micro[row]);
}

/* Does the row last as long as its device needs for `work`? */
static bool lasts(const struct index *x, int64_t row, pl_tick work)
{
    const struct pl_timeline *t = x->t;
    return t->end[row] == pl_cost_end(x->cost, t->device[row], t->start[row], work);
}

static int index_row(struct index *x, int64_t i)
{
    const struct pl_timeline *t = x->t;
    int kind = t->kind[i], device = t->device[i], q = t->chunk[i];
    if (kind < 0 || kind >= PL_N_OP || device < 0 || device >= x->sched->shape.P)
        return pl_fail(PL_ECHECK, "row %lld: no such op kind %d or stage %d",
                       (long long)i, kind, device);
    if (t->micro[i] < 0 || t->micro[i] >= limit_of(x, kind))
        return complain(x, i, "microbatch or update out of range");
    if (q < 0 || q >= x->Q || x->sched->layout.device[q] != device)
        return complain(x, i, "chunk on the wrong device");
    if (!x->at[kind]) {
        int64_t n = x->Q * limit_of(x, kind);
        x->at[kind] = PL_NEW(n, int64_t);
        for (int64_t k = 0; k < n; k++) x->at[kind][k] = -1;
    }
    int64_t *at = &x->at[kind][q * limit_of(x, kind) + t->micro[i]];
    if (*at >= 0) return complain(x, i, "executed twice");
    *at = i;
    if (i && t->start[i] < t->start[i - 1])
        return complain(x, i, "rows out of order of start");
    return PL_OK;
}

/* Each op once, on its device; rows in order of start. */
static int index_rows(struct index *x)
{
    int64_t expected = x->sched->n_ops + x->Q * x->sched->shape.updates;
    if (x->t->n_ops != expected)
        return pl_fail(PL_ECHECK, "%lld ops executed, the schedule has %lld",
                       (long long)x->t->n_ops, (long long)expected);
    int rc = PL_OK;
    for (int64_t i = 0; i < x->t->n_ops && !rc; i++) rc = index_row(x, i);
    return rc;
}

/* What one device has done so far. */
struct progress {
    int64_t cursor; /* next op of the issue order */
    pl_tick free_at;
    int64_t pair; /* row of the F that the next row must share its time with, or -1 */
};

static int check_row(const struct index *x, int64_t i, struct progress *p)
{
    const struct pl_timeline *t = x->t;
    int device = t->device[i];
    pl_tick own = cost_of(x, i);
    if (p->pair >= 0) {
        if (t->start[i] != t->start[p->pair] || t->end[i] != t->end[p->pair])
            return complain(x, i, "a pair that does not run together");
        if (!lasts(x, i, pl_cost_pair(x->cost, cost_of(x, p->pair), own)))
            return complain(x, i, "duration differs from its cost");
    } else if (t->start[i] < p->free_at) {
        return complain(x, i, "overlap on the device");
    }
    bool first = false;
    if (t->kind[i] != PL_OP_U) {
        const struct pl_op *op =
            p->cursor < x->sched->first[device + 1] ? &x->sched->ops[p->cursor] : NULL;
        if (!op || op->kind != t->kind[i] || op->micro != t->micro[i] ||
            op->chunk != t->chunk[i])
            return complain(x, i, "not in the issue order of the schedule");
        first = op->pair;
        p->cursor++;
    } else if (p->pair >= 0) {
        return complain(x, i, "an update inside a pair");
    }
    if (p->pair < 0 && !first && !lasts(x, i, own))
        return complain(x, i, "duration differs from its cost");
    p->pair = first ? i : -1;
    p->free_at = t->end[i];
    return PL_OK;
}

/* No overlap; F, B and W as issued and with their duration. */
static int check_devices(const struct index *x)
{
    int P = x->sched->shape.P, rc = PL_OK;
    struct progress *progress = PL_NEW(P, struct progress);
    for (int d = 0; d < P; d++)
        progress[d] = (struct progress){x->sched->first[d], 0, -1};
    for (int64_t i = 0; i < x->t->n_ops && !rc; i++)
        rc = check_row(x, i, &progress[x->t->device[i]]);
    free(progress);
    return rc;
}

/* row starts no sooner than the op `before` of an instance has ended. */
static int check_after(const struct index *x, int64_t row, int before, int instance,
                       int64_t number, const char *what)
{
    int64_t other = row_of(x, before, instance, number);
    if (other < 0 || x->t->end[other] > x->t->start[row]) return complain(x, row, what);
    return PL_OK;
}

static int64_t backward_of(const struct index *x, int instance, int64_t micro)
{
    int64_t row = row_of(x, PL_OP_BW, instance, micro);
    return row >= 0 ? row : row_of(x, PL_OP_B, instance, micro);
}

/* What the neighbouring chunk sends inside one device has no message. */
static int check_local(const struct index *x, int64_t row, int64_t from)
{
    if (from < 0 || x->t->device[from] != x->t->device[row]) return PL_OK;
    if (x->t->end[from] > x->t->start[row])
        return complain(x, row, "before the neighbouring chunk on its device");
    return PL_OK;
}

static int check_forward(const struct index *x, int64_t row)
{
    const struct pl_shape *shape = &x->sched->shape;
    int q = x->t->chunk[row];
    int64_t micro = x->t->micro[row];
    int64_t version = x->sched->type->reads(shape, q % x->C, micro / shape->m);
    int rc = q % x->C ? check_local(x, row, row_of(x, PL_OP_F, q - 1, micro)) : 0;
    if (rc || version <= 0) return rc; /* a live version, or the initial one */
    return check_after(x, row, PL_OP_U, q, version - 1,
                       "reads a version not yet written");
}

static int check_backward(const struct index *x, int64_t row)
{
    int q = x->t->chunk[row];
    int64_t micro = x->t->micro[row];
    int rc = check_after(x, row, PL_OP_F, q, micro, "before its F");
    if (!rc && q % x->C < x->C - 1)
        rc = check_local(x, row, backward_of(x, q + 1, micro));
    return rc;
}

/* All gradients of the group on all copies of the chunk. */
static int check_update(const struct index *x, int64_t row)
{
    int64_t m = x->sched->shape.m, g = x->t->micro[row];
    int q = x->t->chunk[row];
    int rc =
        g ? check_after(x, row, PL_OP_U, q, g - 1, "before the update before it") : 0;
    for (int r = 0; r < x->Q / x->C; r++)
        for (int64_t i = g * m; i < (g + 1) * m && !rc; i++) {
            int at = r * x->C + q % x->C;
            if (row_of(x, PL_OP_F, at, i) < 0) continue; /* the other replica's */
            int last = row_of(x, PL_OP_BW, at, i) >= 0 ? PL_OP_BW : PL_OP_W;
            rc = check_after(x, row, last, at, i, "before a gradient of its group");
        }
    return rc;
}

/* F before B before W before U, and versions written before they are read. */
static int check_order(const struct index *x)
{
    int rc = PL_OK;
    for (int64_t i = 0; i < x->t->n_ops && !rc; i++) {
        switch (x->t->kind[i]) {
        case PL_OP_F:
            rc = check_forward(x, i);
            break;
        case PL_OP_U:
            rc = check_update(x, i);
            break;
        case PL_OP_W:
            rc = check_after(x, i, PL_OP_B, x->t->chunk[i], x->t->micro[i],
                             "before its B");
            break;
        default:
            rc = check_backward(x, i);
        }
    }
    return rc;
}

static int bad_message(const struct index *x, int64_t i, const char *what)
{
    const struct pl_timeline *t = x->t;
    return pl_fail(PL_ECHECK, "message %lld (%s %lld, stage %d to %d): %s",
                   (long long)i, t->msg_kind[i] == PL_OP_F ? "activation" : "gradient",
                   (long long)t->msg_micro[i], t->src[i], t->dst[i], what);
}

/* *row: of the op that it is the result of. */
static int check_message(const struct index *x, int64_t i, unsigned char *seen,
                         int64_t *row)
{
    const struct pl_timeline *t = x->t;
    bool forward = t->msg_kind[i] == PL_OP_F;
    int q = t->msg_chunk[i], to = q + (forward ? 1 : -1);
    int64_t micro = t->msg_micro[i];
    if ((!forward && t->msg_kind[i] != PL_OP_B) || micro < 0 || micro >= x->n_micro ||
        q < 0 || q >= x->Q)
        return bad_message(x, i, "no such message");
    if (to < 0 || to >= x->Q || to / x->C != q / x->C ||
        t->src[i] != x->sched->layout.device[q] ||
        t->dst[i] != x->sched->layout.device[to])
        return bad_message(x, i, "not between neighbouring chunks");
    unsigned char *mark = &seen[to * x->n_micro + micro], bit = forward ? 1 : 2;
    if (*mark & bit) return bad_message(x, i, "sent twice");
    *mark |= bit;
    int64_t from = forward ? row_of(x, PL_OP_F, q, micro) : backward_of(x, q, micro);
    int64_t use = forward ? row_of(x, PL_OP_F, to, micro) : backward_of(x, to, micro);
    if (from < 0 || use < 0) return bad_message(x, i, "without its ops");
    if (t->start[use] < t->arrived[i])
        return bad_message(x, i, "used before it arrived");
    *row = from;
    return PL_OK;
}

/* Results of F and of BW or B that cross to another device. */
static int64_t count_crossings(const struct index *x)
{
    const int *device = x->sched->layout.device;
    int64_t n = 0;
    for (int64_t i = 0; i < x->t->n_ops; i++) {
        int q = x->t->chunk[i], c = q % x->C, kind = x->t->kind[i];
        if (kind == PL_OP_F) n += c + 1 < x->C && device[q + 1] != device[q];
        if (kind == PL_OP_B || kind == PL_OP_BW)
            n += c > 0 && device[q - 1] != device[q];
    }
    return n;
}

static int check_messages(const struct index *x)
{
    int64_t expected = count_crossings(x);
    int rc = PL_OK;
    if (x->t->n_messages != expected)
        return pl_fail(PL_ECHECK,
                       "%lld messages, expected %lld: one missing or too many",
                       (long long)x->t->n_messages, (long long)expected);
    unsigned char *seen = PL_NEW(x->Q * x->n_micro, unsigned char);
    int64_t *rows = PL_NEW(expected, int64_t);
    for (int64_t i = 0; i < expected && !rc; i++)
        rc = check_message(x, i, seen, &rows[i]);
    if (!rc) rc = pl_network_check(x->t, x->sched, x->cost, rows);
    free(rows);
    free(seen);
    return rc;
}

int pl_timeline_check(const struct pl_timeline *timeline,
                      const struct pl_schedule *schedule, const struct pl_cost *cost)
{
    const struct pl_shape *shape = &schedule->shape;
    struct index x = {.t = timeline, .sched = schedule, .cost = cost};
    x.n_micro = shape->m * shape->updates;
    x.C = schedule->layout.C;
    x.Q = x.C * schedule->layout.R;
    int rc = index_rows(&x);
    if (!rc) rc = check_devices(&x);
    if (!rc) rc = check_order(&x);
    if (!rc) rc = check_messages(&x);
    for (int k = 0; k < PL_N_OP; k++) free(x.at[k]);
    return rc;
}
