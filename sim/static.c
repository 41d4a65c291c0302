/* Longest-path sweep: each device runs through its issue order as far as the inputs are
 * known, then the next device does. A result is written where its consumer looks for
 * it; consuming clears the place, so that the room is clean for the next run.
 *
 * What an event queue would add is one decision, U or the next op: a U whose own
 * gradients are complete while those of other devices are not known yet might come
 * first. The device is then left alone; when nothing else can go on, the device with
 * the earliest known choice takes it: what is not known yet ends later than that, since
 * gradients take time to make (Chandy and Misra, 1979, the lower bound on time stamps).
 */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/static_parts.h"

/* All own gradients of group g are made; the last one ends now. */
static void complete(struct sweep *s, struct instance *q, int64_t g, pl_tick now)
{
    struct group *group = group_of(s, q, g);
    if (group->latest < now) group->latest = now;
    if (q->updated == g) s->device[q->device].waiting++;
    if (--group->left) return;
    for (int i = s->barrier ? 0 : q->chunk; i < s->Q; i += s->barrier ? 1 : s->C) {
        struct device *d = &s->device[s->instance[i].device];
        if (!d->parked) continue;
        d->parked = false;
        d->wait = NULL;
        s->ready[s->n_ready++] = s->instance[i].device;
    }
}

static inline void count_gradient(struct sweep *s, struct instance *q, int64_t micro,
                                  pl_tick now)
{
    if ((uint64_t)(micro - q->done_from) >= (uint64_t)s->m) {
        int64_t g = micro / s->m;
        q->done_from = g * s->m;
        q->own = own_of(s, q, g);
    }
    if (--*q->own == 0) complete(s, q, q->done_from / s->m, now);
}

/* Does the version that a forward reads still wait for a U of its device? */
static inline bool gated(const struct sweep *s, struct instance *q, int64_t micro)
{
    if ((uint64_t)(micro - q->from) >= (uint64_t)s->m) {
        int64_t g = micro / s->m;
        q->from = g * s->m;
        q->version = s->sched->type->reads(&s->sched->shape, q->chunk, g);
    }
    return q->version > q->updated;
}

static const pl_tick known = 1; /* the input of an op that has none: at 0 */

/* Where the arrival of op's input is written. */
static inline const pl_tick *input_of(const struct instance *q, const struct pl_op *op)
{
    if (op->kind == PL_OP_F) return q->chunk ? &q->activation[op->micro] : &known;
    return op->kind == PL_OP_W ? &known : &q->gradient[op->micro];
}

/* A result arrives; its consumer goes on when that is what it was left alone for. */
static inline void deliver(struct sweep *s, pl_tick *input, int device, pl_tick arrival)
{
    struct device *to = &s->device[device];
    *input = arrival + 1;
    if (to->wait != input) return;
    to->wait = NULL;
    to->parked = false;
    s->ready[s->n_ready++] = device;
}

/* op ends at `end`: its result is known to whom it concerns. */
static inline void settle(struct sweep *s, struct instance *q, const struct pl_op *op,
                          pl_tick end)
{
    int64_t i = op->micro;
    if (op->kind == PL_OP_F) {
        q->activation[i] = 0;
        if (q->next_input)
            deliver(s, &q->next_input[i], q->ahead_device, end + q->ahead);
        else
            q->gradient[i] = end + 1;
        return;
    }
    if (op->kind != PL_OP_W) {
        q->gradient[i] = 0;
        if (q->prev_input)
            deliver(s, &q->prev_input[i], q->behind_device, end + q->behind);
    }
    if (op->kind != PL_OP_B) count_gradient(s, q, i, end);
}

static inline pl_tick duration(const struct sweep *s, const struct pl_op *op)
{
    return s->instance[op->chunk].time[op->kind];
}

/* The next op of the device, or pair, begins at `at`. */
static inline void run_op(struct sweep *s, struct device *d, pl_tick at)
{
    const struct pl_op *op = d->next;
    struct instance *q = &s->instance[op->chunk];
    pl_tick *end = &s->end[op - s->ops];
    pl_tick took = q->time[op->kind];
    if (op->pair) took = pl_cost_pair(s->cost, took, duration(s, op + 1));
    d->free_at = *end = at + took;
    d->next = op + 1 + op->pair;
    settle(s, q, op, at + took);
    if (!op->pair) return;
    end[1] = at + took;
    settle(s, &s->instance[op[1].chunk], op + 1, at + took);
}

/* Earliest time of a known U of the device; *unknown: some U might be earlier. */
static pl_tick earliest_update(const struct sweep *s, const struct device *d,
                               bool *unknown, int *who)
{
    pl_tick best = PL_NEVER;
    *unknown = false;
    for (int i = d->first; i >= 0; i = s->instance[i].next) {
        struct instance *q = &s->instance[i];
        if (q->updated == s->updates || *own_of(s, q, q->updated)) continue;
        struct group *group = group_of(s, q, q->updated);
        pl_tick at = group->latest > d->free_at ? group->latest : d->free_at;
        if (group->left) {
            *unknown = true;
        } else if (at < best) {
            best = at;
            *who = i;
        }
    }
    return best;
}

static void run_update(struct sweep *s, struct device *d, int who, pl_tick at)
{
    struct instance *q = &s->instance[who];
    d->free_at = at + q->time[PL_OP_U];
    s->ends->update[d->update] = d->free_at;
    s->ends->who[d->update++] = who;
    q->updated++;
    if (q->updated == s->updates || *own_of(s, q, q->updated)) d->waiting--;
}

enum { GATED, BLOCKED, OPEN };

/* When the next op of the device, or pair, could begin. GATED: there is none, or it
 * waits for a U of its own device; BLOCKED: for *missing. */
static inline int op_time(const struct sweep *s, const struct device *d, pl_tick *at,
                          const pl_tick **missing)
{
    const struct pl_op *op = d->next;
    if (op == d->stop) return GATED;
    *at = d->free_at;
    for (int n = 1 + op->pair; n > 0; n--, op++) {
        struct instance *q = &s->instance[op->chunk];
        if (op->kind == PL_OP_F && gated(s, q, op->micro)) return GATED;
        const pl_tick *input = input_of(q, op);
        *missing = input;
        if (*input == 0) return BLOCKED;
        if (*input - 1 > *at) *at = *input - 1;
    }
    return OPEN;
}

/* A choice between a U and the next op; false when it cannot be made yet. Forced: what
 * is known is taken. */
static bool choose(struct sweep *s, struct device *d, bool forced)
{
    bool unknown;
    int who = -1;
    const pl_tick *missing = NULL;
    pl_tick update = earliest_update(s, d, &unknown, &who), op = PL_NEVER;
    int state = op_time(s, d, &op, &missing);
    if (state != OPEN) op = PL_NEVER;
    bool wait = unknown || (state == BLOCKED && update > d->free_at);
    if ((wait && !forced) || (op == PL_NEVER && update == PL_NEVER)) {
        d->parked = true;
        if (state == BLOCKED) d->wait = missing;
        return false;
    }
    if (update <= op)
        run_update(s, d, who, update);
    else
        run_op(s, d, op);
    return true;
}

/* The common case of op_time and run_op, a single F or BW; false: not that, or blocked,
 * as *missing tells. */
static inline bool run_simple(struct sweep *s, struct device *d,
                              const pl_tick **missing)
{
    const struct pl_op *op = d->next;
    if (op == d->stop || op->pair) return false;
    struct instance *q = &s->instance[op->chunk];
    int64_t i = op->micro;
    pl_tick at = d->free_at, *input;
    if (op->kind == PL_OP_F) {
        if (gated(s, q, i)) return false;
        input = &q->activation[i];
        if (q->chunk == 0) {
            at += q->time[PL_OP_F];
        } else if (*input) {
            at = (at < *input ? *input - 1 : at) + q->time[PL_OP_F];
            *input = 0;
        } else {
            *missing = input;
            return false;
        }
        s->end[op - s->ops] = d->free_at = at;
        d->next = op + 1;
        if (q->next_input)
            deliver(s, &q->next_input[i], q->ahead_device, at + q->ahead);
        else
            q->gradient[i] = at + 1;
        return true;
    }
    if (op->kind != PL_OP_BW) return false;
    input = &q->gradient[i];
    if (!*input) {
        *missing = input;
        return false;
    }
    at = (at < *input ? *input - 1 : at) + q->time[PL_OP_BW];
    *input = 0;
    s->end[op - s->ops] = d->free_at = at;
    d->next = op + 1;
    if (q->prev_input) deliver(s, &q->prev_input[i], q->behind_device, at + q->behind);
    count_gradient(s, q, i, at);
    return true;
}

/* As far as the device can go. */
static void advance(struct sweep *s, struct device *d)
{
    for (;;) {
        const pl_tick *missing = NULL;
        if (d->waiting) {
            if (!choose(s, d, false)) return;
            continue;
        }
        if (run_simple(s, d, &missing)) continue;
        if (missing) {
            d->wait = missing;
            return;
        }
        pl_tick at;
        int state = op_time(s, d, &at, &missing);
        if (state == OPEN) {
            run_op(s, d, at);
            continue;
        }
        if (state == BLOCKED) d->wait = missing;
        return;
    }
}

/* Nobody can choose: the device with the earliest known choice does. */
static bool force(struct sweep *s)
{
    pl_tick best = PL_NEVER;
    int who = -1;
    for (int i = 0; i < s->P; i++) {
        bool unknown;
        int which;
        const pl_tick *missing;
        struct device *d = &s->device[i];
        if (!d->waiting) continue;
        pl_tick first = earliest_update(s, d, &unknown, &which), op;
        if (op_time(s, d, &op, &missing) == OPEN && op < first) first = op;
        if (first >= best) continue;
        best = first;
        who = i;
    }
    if (who < 0) return false;
    s->device[who].parked = false;
    s->device[who].wait = NULL;
    bool ran = choose(s, &s->device[who], true);
    s->ready[s->n_ready++] = who;
    return ran;
}

static void sweep(struct sweep *s)
{
    for (int d = s->P - 1; d >= 0; d--) s->ready[s->n_ready++] = d;
    do {
        while (s->n_ready) {
            struct device *d = &s->device[s->ready[--s->n_ready]];
            advance(s, d);
        }
    } while (force(s));
}

/* The longest run of a device; false when an op or a U has not run. */
static bool finished(const struct sweep *s, pl_tick *makespan)
{
    *makespan = 0;
    for (int d = 0; d < s->P; d++) {
        if (s->device[d].next < s->device[d].stop) return false;
        if (s->device[d].free_at > *makespan) *makespan = s->device[d].free_at;
    }
    for (int q = 0; q < s->Q; q++)
        if (s->instance[q].updated < s->updates) return false;
    return true;
}

int pl_static_ends(const struct pl_schedule *sched, const struct pl_cost *cost,
                   bool barrier, struct pl_ends *ends)
{
    assert(cost->devices == sched->layout.P && cost->chunks == sched->layout.C);
    struct sweep s = {.sched = sched, .cost = cost, .barrier = barrier};
    pl_static_prepare(&s, ends);
    sweep(&s);
    if (finished(&s, &ends->makespan)) return PL_OK;
    /* the engine finds the same and names the op */
    struct pl_timeline none;
    int rc = pl_engine_run(sched, cost, barrier, &none);
    assert(rc);
    pl_ends_free(ends); /* inputs that nobody took are in the room */
    return rc;
}
