/* The checker of executed runs: everything is recomputed from the columns, the schedule
 * and the costs, nothing is taken from the engine. */
#include "sim/timeline.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

/* Where every op is: by kind, stage and number. */
struct index {
    const struct pl_timeline *t;
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    int64_t n_micro;
    int64_t *at[PL_N_OP]; /* row of the op in the timeline, -1: not executed */
};

static int64_t limit_of(const struct index *x, int kind)
{
    return kind == PL_OP_U ? x->sched->shape.updates : x->n_micro;
}

static int64_t row_of(const struct index *x, int kind, int stage, int64_t number)
{
    return x->at[kind] ? x->at[kind][stage * limit_of(x, kind) + number] : -1;
}

static int complain(const struct index *x, int64_t row, const char *what)
{
    const struct pl_timeline *t = x->t;
    return pl_fail(PL_ECHECK, "stage %d: %s %lld (row %lld): %s", t->device[row],
                   pl_op_names[t->kind[row]], (long long)t->micro[row], (long long)row,
                   what);
}

static pl_tick cost_of(const struct index *x, int kind, int stage)
{
    const struct pl_cost *c = x->cost;
    const pl_tick by_kind[PL_N_OP] = {
        c->forward[stage], c->backward[stage], c->weight[stage],
        c->backward[stage] + c->weight[stage], c->update[stage]};
    return by_kind[kind];
}

/* Each op once, on its stage, with its duration; rows in order of start. */
static int index_rows(struct index *x)
{
    const struct pl_timeline *t = x->t;
    int P = x->sched->shape.P;
    if (t->n_ops != x->sched->n_ops)
        return pl_fail(PL_ECHECK, "%lld ops executed, the schedule has %lld",
                       (long long)t->n_ops, (long long)x->sched->n_ops);
    for (int64_t i = 0; i < t->n_ops; i++) {
        int kind = t->kind[i], stage = t->device[i];
        if (kind < 0 || kind >= PL_N_OP || stage < 0 || stage >= P)
            return pl_fail(PL_ECHECK, "row %lld: no such op kind %d or stage %d",
                           (long long)i, kind, stage);
        if (t->micro[i] < 0 || t->micro[i] >= limit_of(x, kind))
            return complain(x, i, "microbatch or update out of range");
        if (t->chunk[i] != stage) return complain(x, i, "chunk on the wrong device");
        if (!x->at[kind]) {
            int64_t n = P * limit_of(x, kind);
            x->at[kind] = PL_NEW(n, int64_t);
            for (int64_t k = 0; k < n; k++) x->at[kind][k] = -1;
        }
        int64_t *at = &x->at[kind][stage * limit_of(x, kind) + t->micro[i]];
        if (*at >= 0) return complain(x, i, "executed twice");
        *at = i;
        if (t->end[i] - t->start[i] != cost_of(x, kind, stage))
            return complain(x, i, "duration differs from its cost");
        if (i && t->start[i] < t->start[i - 1])
            return complain(x, i, "rows out of order of start");
    }
    return PL_OK;
}

/* No overlap; F, B and W as issued; nothing of the schedule missing. */
static int check_devices(const struct index *x)
{
    const struct pl_timeline *t = x->t;
    const struct pl_schedule *sched = x->sched;
    int P = sched->shape.P, rc = PL_OK;
    pl_tick *free_at = PL_NEW(P, pl_tick);
    int64_t *cursor = PL_NEW(P, int64_t);
    for (int s = 0; s < P; s++) cursor[s] = sched->first[s];
    for (int64_t i = 0; i < t->n_ops && !rc; i++) {
        int s = t->device[i];
        if (t->start[i] < free_at[s]) rc = complain(x, i, "overlap on the device");
        free_at[s] = t->end[i];
        if (rc || t->kind[i] == PL_OP_U) continue;
        int64_t end = sched->first[s + 1];
        while (cursor[s] < end && sched->ops[cursor[s]].kind == PL_OP_U) cursor[s]++;
        const struct pl_op *op = cursor[s] < end ? &sched->ops[cursor[s]] : NULL;
        if (!op || op->kind != t->kind[i] || op->micro != t->micro[i])
            rc = complain(x, i, "not in the issue order of the schedule");
        cursor[s]++;
    }
    free(free_at);
    free(cursor);
    return rc;
}

/* row starts no sooner than the op `before` of the same stage has ended. */
static int check_after(const struct index *x, int64_t row, int before, int64_t number,
                       const char *what)
{
    int64_t other = row_of(x, before, x->t->device[row], number);
    if (other < 0 || x->t->end[other] > x->t->start[row]) return complain(x, row, what);
    return PL_OK;
}

static int check_forward(const struct index *x, int64_t row)
{
    const struct pl_shape *shape = &x->sched->shape;
    int64_t version = x->sched->type->reads(shape, x->t->micro[row] / shape->m);
    if (version <= 0) return PL_OK; /* the live version, or the initial one */
    return check_after(x, row, PL_OP_U, version - 1, "reads a version not yet written");
}

static int check_update(const struct index *x, int64_t row)
{
    int64_t m = x->sched->shape.m, g = x->t->micro[row];
    int rc = g ? check_after(x, row, PL_OP_U, g - 1, "before the update before it") : 0;
    for (int64_t i = g * m; i < (g + 1) * m && !rc; i++) {
        int last = row_of(x, PL_OP_BW, x->t->device[row], i) >= 0 ? PL_OP_BW : PL_OP_W;
        rc = check_after(x, row, last, i, "before a gradient of its group");
    }
    return rc;
}

/* F before B before W before U, and versions written before they are read. */
static int check_order(const struct index *x)
{
    int rc = PL_OK;
    for (int64_t i = 0; i < x->t->n_ops && !rc; i++) {
        int64_t micro = x->t->micro[i];
        switch (x->t->kind[i]) {
        case PL_OP_F:
            rc = check_forward(x, i);
            break;
        case PL_OP_U:
            rc = check_update(x, i);
            break;
        case PL_OP_W:
            rc = check_after(x, i, PL_OP_B, micro, "before its B");
            break;
        default:
            rc = check_after(x, i, PL_OP_F, micro, "before its F");
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

static int64_t either_backward(const struct index *x, int stage, int64_t micro)
{
    int64_t row = row_of(x, PL_OP_BW, stage, micro);
    return row >= 0 ? row : row_of(x, PL_OP_B, stage, micro);
}

static int check_message(const struct index *x, int64_t i, unsigned char *seen)
{
    const struct pl_timeline *t = x->t;
    int P = x->sched->shape.P, src = t->src[i], dst = t->dst[i];
    bool forward = t->msg_kind[i] == PL_OP_F;
    int64_t micro = t->msg_micro[i];
    if ((!forward && t->msg_kind[i] != PL_OP_B) || micro < 0 || micro >= x->n_micro)
        return bad_message(x, i, "no such message");
    if (src < 0 || dst < 0 || src >= P || dst >= P || dst != src + (forward ? 1 : -1))
        return bad_message(x, i, "not between neighbours");
    unsigned char *mark = &seen[dst * x->n_micro + micro], bit = forward ? 1 : 2;
    if (*mark & bit) return bad_message(x, i, "sent twice");
    *mark |= bit;
    int64_t from =
        forward ? row_of(x, PL_OP_F, src, micro) : either_backward(x, src, micro);
    int64_t to =
        forward ? row_of(x, PL_OP_F, dst, micro) : either_backward(x, dst, micro);
    if (from < 0 || to < 0) return bad_message(x, i, "without its ops");
    if (t->sent[i] < t->end[from]) return bad_message(x, i, "sent before its op ended");
    if (t->arrived[i] - t->sent[i] != x->cost->link[src < dst ? src : dst])
        return bad_message(x, i, "flight time differs from link.time");
    if (t->start[to] < t->arrived[i])
        return bad_message(x, i, "used before it arrived");
    return PL_OK;
}

static int check_messages(const struct index *x)
{
    int P = x->sched->shape.P, rc = PL_OK;
    int64_t expected = 2 * (P - 1) * x->n_micro;
    if (x->t->n_messages != expected)
        return pl_fail(PL_ECHECK,
                       "%lld messages, expected %lld: one missing or too many",
                       (long long)x->t->n_messages, (long long)expected);
    unsigned char *seen = PL_NEW(P * x->n_micro, unsigned char);
    for (int64_t i = 0; i < x->t->n_messages && !rc; i++)
        rc = check_message(x, i, seen);
    free(seen);
    return rc;
}

int pl_timeline_check(const struct pl_timeline *timeline,
                      const struct pl_schedule *schedule, const struct pl_cost *cost)
{
    const struct pl_shape *shape = &schedule->shape;
    struct index x = {.t = timeline, .sched = schedule, .cost = cost};
    x.n_micro = shape->m * shape->updates;
    int rc = index_rows(&x);
    if (!rc) rc = check_devices(&x);
    if (!rc) rc = check_order(&x);
    if (!rc) rc = check_messages(&x);
    for (int k = 0; k < PL_N_OP; k++) free(x.at[k]);
    return rc;
}

void pl_timeline_free(struct pl_timeline *t)
{
    if (!t) return;
    free(t->kind);
    free(t->device);
    free(t->chunk);
    free(t->micro);
    free(t->start);
    free(t->end);
    free(t->src);
    free(t->dst);
    free(t->msg_micro);
    free(t->msg_kind);
    free(t->sent);
    free(t->arrived);
    *t = (struct pl_timeline){0};
}
