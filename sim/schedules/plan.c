/* Decisions in order of time. An idle device runs the next op of its base order when
 * its input is there; while it waits, a W, or a later op of the base order whose input
 * is there. When all slots are taken, a W comes before the next F. Ideas: Qi et al.
 * (arXiv 2401.10241), section 3.1: W fills waits, W frees memory, no more waiting than
 * the worst device. */
#include "sim/schedules/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/heap.h"
#include "sim/schedules/emit.h"

enum { BUDGET = 20000000 }; /* ops to plan: some 5 s on a large shape */
enum { NONE = -1, SORTS = 4 /* F and B of at most two chunks a device */ };

struct plan_device {
    int64_t head;                /* first op of the base order still to run, or NONE */
    int64_t balance, slots;      /* F less B, F less W */
    int64_t first_w, behind_w;   /* of `pending`: next W to run; one past the last */
    int64_t n_done, left[SORTS]; /* F and B still to run */
    pl_tick free_at, first, waited, work;
};

struct plan_state {
    struct plan_device *device; /* [P] */
    int64_t *next;              /* [P * n] linked list over the base order */
    pl_tick *f_end, *b_end;     /* [C * m] NONE: not begun */
    struct pl_op *pending;      /* [P * n / 2] W of each B done, in order of the B */
    struct pl_op *done;         /* [P * 3 n / 2] */
    struct heap heap;
    pl_tick most_waited;
    bool hopeless; /* a device already takes longer than the best plan */
    const struct pl_plan_policy *policy;
};

void pl_plan_begin(struct pl_plan *plan, const struct pl_cost *cost, int64_t limit,
                   struct pl_schedule *out)
{
    int P = out->shape.P, C = out->layout.C;
    int64_t n = 2 * (int64_t)out->shape.m * out->shape.v, each = n + n / 2;
    assert(2 * out->shape.v <= SORTS);
    *plan = (struct pl_plan){.out = out,
                             .cost = cost,
                             .limit = limit,
                             .n = n,
                             .span = INT64_MAX,
                             .budget = BUDGET};
    plan->base = PL_NEW(P * each, struct pl_op);
    plan->filled = PL_NEW(P, int64_t);
    plan->best = PL_NEW(P * each, struct pl_op);
    struct plan_state *s = plan->state = PL_NEW(1, struct plan_state);
    s->device = PL_NEW(P, struct plan_device);
    s->next = PL_NEW(P * each, int64_t);
    s->f_end = PL_NEW((int64_t)C * out->shape.m, pl_tick);
    s->b_end = PL_NEW((int64_t)C * out->shape.m, pl_tick);
    s->pending = PL_NEW(P * (n / 2), struct pl_op);
    s->done = PL_NEW(P * each, struct pl_op);
    s->heap.room = 8 * (int64_t)P;
    s->heap.item = PL_NEW(s->heap.room, struct event);
}

void pl_plan_end(struct pl_plan *plan)
{
    struct plan_state *s = plan->state;
    free(s->device);
    free(s->next);
    free(s->f_end);
    free(s->b_end);
    free(s->pending);
    free(s->done);
    free(s->heap.item);
    free(s);
    free(plan->base);
    free(plan->filled);
    free(plan->best);
    *plan = (struct pl_plan){0};
}

static int64_t *next_of(const struct pl_plan *plan, int device)
{
    return plan->state->next + device * (plan->n + plan->n / 2);
}

/* When the input of an F or B is on its device: 0 for the first chunk's F, NONE when
 * its producer has not begun. */
static pl_tick input_at(const struct pl_plan *plan, const struct pl_op *op)
{
    const struct pl_layout *layout = &plan->out->layout;
    const struct plan_state *s = plan->state;
    int64_t m = plan->out->shape.m;
    int c = op->chunk, from = op->kind == PL_OP_F ? c - 1 : c + 1;
    if (op->kind == PL_OP_W) return s->b_end[c * m + op->micro];
    if (op->kind == PL_OP_B && s->f_end[c * m + op->micro] < 0) return NONE;
    if (from < 0) return 0;
    if (from == layout->C) return s->f_end[c * m + op->micro];
    pl_tick end = (op->kind == PL_OP_F ? s->f_end : s->b_end)[from * m + op->micro];
    if (end < 0 || layout->device[from] == layout->device[c]) return end;
    return end + pl_cost_flight(plan->cost, layout->device[from], layout->device[c]);
}

static void wake(struct plan_state *s, int device, pl_tick time)
{
    heap_push(&s->heap, (struct event){time, 0, 0, device, 0});
}

static void wake_reader(const struct pl_plan *plan, const struct pl_op *op)
{
    const struct pl_layout *layout = &plan->out->layout;
    struct pl_op reader = *op;
    reader.chunk += op->kind == PL_OP_F ? 1 : -1;
    if (reader.chunk < 0 || reader.chunk == layout->C) return;
    int device = layout->device[reader.chunk];
    pl_tick input = input_at(plan, &reader);
    /* a device still busy then decides at its own end */
    if (plan->state->device[device].free_at <= input) wake(plan->state, device, input);
}

/* F or B and which chunk of the device; ops of one sort run in the order of the base.
 */
static int sort_of(const struct pl_plan *plan, const struct pl_op *op)
{
    return 2 * (op->chunk / plan->out->shape.P) + (op->kind == PL_OP_B);
}

static void run(const struct pl_plan *plan, int device, const struct pl_op *op,
                pl_tick now)
{
    struct plan_state *s = plan->state;
    struct plan_device *d = &s->device[device];
    int64_t m = plan->out->shape.m, half = plan->n / 2;
    pl_tick end = now + pl_cost_time(plan->cost, op->kind, op->chunk);
    if (d->n_done == 0) d->first = now;
    if (d->n_done > 0) d->waited += now - d->free_at;
    if (d->waited > s->most_waited) s->most_waited = d->waited;
    if (d->waited > plan->span - d->work) s->hopeless = true;
    s->done[device * 3 * half + d->n_done++] = *op;
    d->free_at = end;
    if (op->kind != PL_OP_W) d->left[sort_of(plan, op)]--;
    if (op->kind == PL_OP_F) {
        d->balance++;
        d->slots++;
        s->f_end[op->chunk * m + op->micro] = end;
    } else if (op->kind == PL_OP_B) {
        d->balance--;
        s->b_end[op->chunk * m + op->micro] = end;
        struct pl_op w = {op->micro, op->chunk, PL_OP_W, 0};
        if (!plan->fixed) s->pending[device * half + d->behind_w++] = w;
    } else {
        d->slots--;
    }
    wake(s, device, end);
    if (op->kind != PL_OP_W) wake_reader(plan, op);
}

/* Room for one more F now? */
static bool has_room(const struct pl_plan *plan, const struct plan_device *d)
{
    double waiting = (double)(d->slots - d->balance); /* for their W */
    return (double)d->balance + (1 - plan->out->shape.released) * waiting + 1 <=
           (double)plan->limit + 1e-9;
}

static bool run_weight(const struct pl_plan *plan, int device, pl_tick now)
{
    struct plan_device *d = &plan->state->device[device];
    if (d->first_w == d->behind_w) return false;
    run(plan, device, &plan->state->pending[device * (plan->n / 2) + d->first_w++],
        now);
    return true;
}

/* A W while waiting until `until` (NONE: nobody knows). */
static bool fill(const struct pl_plan *plan, int device, pl_tick now, pl_tick until)
{
    const struct plan_state *s = plan->state;
    const struct plan_device *d = &s->device[device];
    if (d->first_w == d->behind_w) return false;
    const struct pl_op *w = &s->pending[device * (plan->n / 2) + d->first_w];
    pl_tick took = pl_cost_time(plan->cost, PL_OP_W, w->chunk);
    bool fits = until == NONE || took <= until - now;
    if (!fits && s->policy->fill == PL_FILL_NEVER) return false;
    if (!fits && s->policy->fill == PL_FILL_BEHIND &&
        d->waited + until - d->free_at <= s->most_waited)
        return false;
    return run_weight(plan, device, now);
}

/* An op from behind the head, the first that has its input and leaves room for what it
 * overtakes. */
static bool run_ahead(const struct pl_plan *plan, int device, pl_tick now,
                      pl_tick until)
{
    struct plan_state *s = plan->state;
    struct plan_device *d = &s->device[device];
    const struct pl_op *base = pl_plan_base(plan, device);
    int64_t *next = next_of(plan, device);
    int64_t balance = d->balance, most = d->balance;
    int64_t room = s->policy->ahead[device];
    unsigned seen = 1u << sort_of(plan, &base[d->head]), all = 0;
    if (room > plan->limit) room = plan->limit;
    for (int k = 0; k < SORTS; k++) all |= (unsigned)(d->left[k] > 0) << k;
    for (int64_t before = d->head, at; seen != all && (at = next[before]) != NONE;
         before = at) {
        const struct pl_op *op = &base[at];
        unsigned sort = 1u << sort_of(plan, op);
        bool first = !(seen & sort);
        seen |= sort;
        balance += base[before].kind == PL_OP_F ? 1 : -1;
        if (balance > most) most = balance;
        if (!first || (op->kind == PL_OP_F && most >= room)) continue;
        pl_tick input = input_at(plan, op);
        if (input < 0 || input > now) continue;
        if (op->kind == PL_OP_F && !has_room(plan, d))
            return run_weight(plan, device, now);
        pl_tick took = pl_cost_time(plan->cost, op->kind, op->chunk);
        if (until != NONE && !s->policy->stretch && took > until - now) continue;
        next[before] = next[at];
        run(plan, device, op, now);
        return true;
    }
    return false;
}

static void decide(const struct pl_plan *plan, int device, pl_tick now)
{
    struct plan_state *s = plan->state;
    struct plan_device *d = &s->device[device];
    if (d->free_at > now) return;
    if (d->head == NONE) {
        run_weight(plan, device, now);
        return;
    }
    const struct pl_op *op = &pl_plan_base(plan, device)[d->head];
    pl_tick input = input_at(plan, op);
    if (input >= 0 && input <= now) {
        if (op->kind == PL_OP_F && !plan->fixed && !has_room(plan, d)) {
            run_weight(plan, device, now);
            return;
        }
        d->head = next_of(plan, device)[d->head];
        run(plan, device, op, now);
        return;
    }
    if (plan->fixed) return;
    if (s->policy->weight_first && fill(plan, device, now, input)) return;
    if (run_ahead(plan, device, now, input)) return;
    if (!s->policy->weight_first) fill(plan, device, now, input);
}

static pl_tick work_of(const struct pl_plan *plan, int device)
{
    const struct pl_op *base = pl_plan_base(plan, device);
    pl_tick work = 0;
    for (int64_t i = 0; i < plan->filled[device]; i++) {
        work += pl_cost_time(plan->cost, base[i].kind, base[i].chunk);
        if (base[i].kind == PL_OP_B && !plan->fixed)
            work += pl_cost_time(plan->cost, PL_OP_W, base[i].chunk);
    }
    return work;
}

static void reset(struct pl_plan *plan, const struct pl_plan_policy *policy)
{
    struct plan_state *s = plan->state;
    int P = plan->out->shape.P;
    int64_t cells = (int64_t)plan->out->layout.C * plan->out->shape.m;
    for (int d = 0; d < P; d++) {
        int64_t n = plan->filled[d];
        assert(n == (plan->fixed ? plan->n + plan->n / 2 : plan->n));
        s->device[d] = (struct plan_device){.work = work_of(plan, d)};
        if (s->device[d].work > plan->work) plan->work = s->device[d].work;
        for (int k = 0; k < SORTS; k++)
            s->device[d].left[k] = k < 2 * plan->out->shape.v ? plan->out->shape.m : 0;
        for (int64_t i = 0; i < n; i++) next_of(plan, d)[i] = i + 1 < n ? i + 1 : NONE;
    }
    for (int64_t i = 0; i < cells; i++) s->f_end[i] = s->b_end[i] = NONE;
    s->heap.n = 0;
    s->heap.sequence = 0;
    s->most_waited = 0;
    s->hopeless = false;
    s->policy = policy;
}

bool pl_plan_try(struct pl_plan *plan, const struct pl_plan_policy *policy)
{
    struct plan_state *s = plan->state;
    int P = plan->out->shape.P;
    int64_t each = plan->n + plan->n / 2;
    if (plan->span == plan->work) return false; /* no bubble: as short as can be */
    if (plan->span != INT64_MAX && plan->budget < P * each) return false;
    plan->budget -= P * each;
    reset(plan, policy);
    for (int d = 0; d < P; d++) wake(s, d, 0);
    while (s->heap.n && !s->hopeless) {
        struct event event = heap_pop(&s->heap);
        decide(plan, event.device, event.time);
    }
    if (s->hopeless) return false;
    pl_tick span = 0, makespan = 0;
    for (int d = 0; d < P; d++) {
        const struct plan_device *device = &s->device[d];
        assert(device->n_done == each);
        if (device->free_at - device->first > span)
            span = device->free_at - device->first;
        if (device->free_at > makespan) makespan = device->free_at;
    }
    if (span > plan->span || (span == plan->span && makespan >= plan->makespan))
        return false;
    plan->span = span;
    plan->makespan = makespan;
    memcpy(plan->best, s->done, (size_t)(P * each) * sizeof *plan->best);
    return true;
}
