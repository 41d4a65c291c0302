/* When the sweep applies, and its room. */
#include <stdlib.h>

#include "base/mem.h"
#include "sim/static_parts.h"

/* Every op and every transfer once after the other is the longest that a run can take.
 */
static bool fits(const struct pl_schedule *sched, const struct pl_cost *cost)
{
    pl_tick longest = 0;
    for (int i = 0; i < PL_N_OP * cost->chunks; i++)
        if (cost->time[i] > longest) longest = cost->time[i];
    for (int d = 0; d < cost->devices; d++) {
        if (cost->next[d] > longest) longest = cost->next[d];
        if (cost->prev[d] > longest) longest = cost->prev[d];
    }
    double n = 2 * (double)sched->n_ops +
               (double)cost->chunks * sched->layout.R * (double)sched->shape.updates;
    return n * (double)longest < (double)INT64_MAX / 2;
}

bool pl_static_can(const struct pl_schedule *sched, const struct pl_cost *cost)
{
    if (cost->semantics != PL_LATENCY || pl_cost_varies(cost)) return false;
    for (int d = 0; d < cost->devices; d++)
        if (cost->send_next[d] || cost->send_prev[d]) return false;
    bool used[PL_N_OP] = {false};
    for (int64_t i = 0; i < sched->n_ops; i++) used[sched->ops[i].kind] = true;
    for (int k = 0; k < PL_OP_U; k++)
        for (int c = 0; c < cost->chunks && used[k]; c++)
            if (pl_cost_time(cost, k, c) == 0) return false;
    return fits(sched, cost);
}

/* At least n entries; new ones are zero. */
static void *room_for(void *old, size_t *have, size_t n, size_t width)
{
    if (*have >= n && old) return old;
    free(old);
    *have = n;
    return pl_alloc(n, width);
}

static void prepare_instance(struct sweep *s, int at)
{
    const int *device = s->sched->layout.device;
    struct instance *q = &s->instance[at];
    struct device *d = &s->device[device[at]];
    int64_t n = s->n_micro;
    *q = (struct instance){.chunk = at % s->C, .device = device[at]};
    q->activation = s->room->activation + at * n;
    q->gradient = s->room->gradient + at * n;
    q->from = q->done_from = -s->m;
    q->next = d->first;
    d->first = at;
    for (int k = 0; k < PL_N_OP; k++) q->time[k] = pl_cost_time(s->cost, k, q->chunk);
    if (q->chunk + 1 < s->C) {
        q->next_input = q->activation + n;
        q->ahead_device = device[at + 1];
        if (device[at + 1] != device[at])
            q->ahead = pl_cost_flight(s->cost, device[at], device[at + 1]);
    }
    if (q->chunk > 0) {
        q->prev_input = q->gradient - n;
        q->behind_device = device[at - 1];
        if (device[at - 1] != device[at])
            q->behind = pl_cost_flight(s->cost, device[at], device[at - 1]);
    }
}

/* Weight gradients per instance and group: m, or counted where replicas share them. */
static void count_own(struct sweep *s)
{
    int32_t *own = s->room->own;
    int64_t n = s->Q * s->updates;
    for (int64_t i = 0; i < n; i++) own[i] = s->Q == s->C ? (int32_t)s->m : 0;
    for (int64_t i = 0; i < s->sched->n_ops && s->Q > s->C; i++) {
        const struct pl_op *op = &s->sched->ops[i];
        if (op->kind == PL_OP_W || op->kind == PL_OP_BW)
            own[op->chunk * s->updates + op->micro / s->m]++;
    }
}

static void count_groups(struct sweep *s)
{
    int64_t n = (s->barrier ? 1 : s->C) * s->updates;
    for (int64_t i = 0; i < n; i++) s->room->group[i] = (struct group){0, 0};
    for (int i = 0; i < s->Q; i++) {
        struct instance *q = &s->instance[i];
        for (int64_t g = 0; g < s->updates; g++)
            if (*own_of(s, q, g)) group_of(s, q, g)->left++;
        if (*own_of(s, q, 0) == 0) s->device[q->device].waiting++;
    }
}

void pl_static_prepare(struct sweep *s, struct pl_ends *ends)
{
    const struct pl_schedule *sched = s->sched;
    s->P = sched->layout.P;
    s->C = sched->layout.C;
    s->Q = sched->layout.C * sched->layout.R;
    s->m = sched->shape.m;
    s->updates = sched->shape.updates;
    s->n_micro = s->m * s->updates;
    if (!ends->room) ends->room = PL_NEW(1, struct pl_static_room);
    struct pl_static_room *r = s->room = ends->room;
    size_t P = (size_t)s->P, Q = (size_t)s->Q, updates = (size_t)s->updates, had;
    size_t inputs = Q * (size_t)s->n_micro;
    size_t groups = (s->barrier ? 1 : (size_t)s->C) * updates;
    r->device = room_for(r->device, &r->devices, P, sizeof *r->device);
    r->instance = room_for(r->instance, &r->instances, Q, sizeof *r->instance);
    had = r->inputs;
    r->activation = room_for(r->activation, &had, inputs, sizeof *r->activation);
    r->gradient = room_for(r->gradient, &r->inputs, inputs, sizeof *r->gradient);
    r->group = room_for(r->group, &r->groups, groups, sizeof *r->group);
    r->own = room_for(r->own, &r->owns, Q * updates, sizeof *r->own);
    r->ready = room_for(r->ready, &r->readies, P, sizeof *r->ready);
    ends->op = room_for(ends->op, &r->ops, (size_t)sched->n_ops, sizeof *ends->op);
    had = r->updates;
    ends->update = room_for(ends->update, &had, Q * updates, sizeof *ends->update);
    ends->who = room_for(ends->who, &r->updates, Q * updates, sizeof *ends->who);
    s->device = r->device;
    s->instance = r->instance;
    s->end = ends->op;
    s->ops = sched->ops;
    s->ready = r->ready;
    s->ends = ends;
    for (int d = 0; d < s->P; d++)
        s->device[d] = (struct device){.next = sched->ops + sched->first[d],
                                       .stop = sched->ops + sched->first[d + 1],
                                       .first = -1};
    for (int q = s->Q - 1; q >= 0; q--) prepare_instance(s, q);
    int64_t update = 0;
    for (int d = 0; d < s->P; d++) {
        s->device[d].update = update;
        for (int q = s->device[d].first; q >= 0; q = s->instance[q].next)
            update += s->updates;
    }
    count_own(s);
    count_groups(s);
}

void pl_static_room_free(struct pl_ends *ends)
{
    struct pl_static_room *r = ends->room;
    if (r) {
        free(r->device);
        free(r->instance);
        free(r->activation);
        free(r->gradient);
        free(r->group);
        free(r->own);
        free(r->ready);
    }
    free(r);
    ends->room = NULL;
}

void pl_ends_free(struct pl_ends *ends)
{
    pl_static_room_free(ends);
    free(ends->op);
    free(ends->update);
    free(ends->who);
    *ends = (struct pl_ends){0};
}
