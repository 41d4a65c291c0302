/* Runs: the engine set up and released; ops in issue order, or each device free to take
 * what is there. Free: the next backward when its input has come, else the next forward
 * when its has and the device holds fewer activations than the issue order ever lets
 * it; forwards keep their order, backwards theirs. Then delays follow from times. */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/engine.h"

struct free_device {
    struct pl_op *seen; /* ops before it are counted in held */
    int held, most;     /* activations now, and at most */
};

static struct lane lane_to(const struct engine *e, int from, int to)
{
    const int *device = e->sched->layout.device;
    struct lane lane = {device[to], 0};
    if (device[from] != device[to])
        lane.flight = pl_cost_flight(e->cost, device[from], device[to]);
    return lane;
}

static void prepare_instance(struct engine *e, int at)
{
    struct instance *q = &e->instance[at];
    int *first = &e->first_instance[e->sched->layout.device[at]];
    q->chunk = at % e->C;
    q->device = e->sched->layout.device[at];
    q->from = q->done_from = -e->sched->shape.m;
    if (q->chunk + 1 < e->C) q->ahead = lane_to(e, at, at + 1);
    if (q->chunk > 0) q->behind = lane_to(e, at, at - 1);
    for (int k = 0; k < PL_N_OP; k++) q->time[k] = pl_cost_time(e->cost, k, q->chunk);
    q->next = *first;
    *first = at;
}

void pl_engine_prepare(struct engine *e)
{
    const struct pl_schedule *sched = e->sched;
    e->P = sched->layout.P;
    e->C = sched->layout.C;
    e->Q = sched->layout.C * sched->layout.R;
    e->device = PL_NEW(e->P, struct device);
    e->first_instance = PL_NEW(e->P, int);
    e->instance = PL_NEW(e->Q, struct instance);
    e->dirty = PL_NEW((e->P + 63) / 64, uint64_t);
    e->dirty_from = (e->P - 1) / 64;
    for (int d = 0; d < e->P; d++) {
        e->first_instance[d] = -1;
        if (e->stream) continue;
        e->device[d].next = sched->ops + sched->first[d];
        e->device[d].stop = sched->ops + sched->first[d + 1];
    }
    for (int q = e->Q - 1; q >= 0; q--) prepare_instance(e, q);
    turns_new(&e->turns, e->P + (e->cost->semantics == PL_CONTENTION));
    e->varies = pl_cost_varies(e->cost);
    e->network = pl_network_new(e);
    pl_window_new(e);
}

void pl_engine_release(struct engine *e)
{
    free(e->device);
    free(e->instance);
    free(e->first_instance);
    free(e->dirty);
    turns_free(&e->turns);
    pl_window_free(&e->window);
    pl_network_free(e->network);
}

static int run(const struct pl_schedule *schedule, const struct pl_cost *cost,
               bool barrier, struct free_device *free_order, struct pl_timeline *out)
{
    assert(cost->devices == schedule->shape.P && cost->chunks == schedule->layout.C);
    struct engine e = {
        .sched = schedule, .cost = cost, .barrier = barrier, .free = free_order};
    pl_engine_prepare(&e);
    pl_timeline_new(schedule, &e.out);
    int rc = pl_engine_loop(&e);
    if (!rc && e.n_ops < e.out.n_ops) rc = pl_engine_stuck(&e);
    if (!rc && e.network) pl_rows_sort_messages(&e.out);
    pl_engine_release(&e);
    if (rc)
        pl_timeline_free(&e.out);
    else
        *out = e.out;
    return rc;
}

int pl_engine_run(const struct pl_schedule *schedule, const struct pl_cost *cost,
                  bool barrier, struct pl_timeline *out)
{
    return run(schedule, cost, barrier, NULL, out);
}

static pl_tick later(const struct engine *e, pl_tick time)
{
    return time > e->now ? time : e->now;
}

/* The op that the device takes up next becomes its next one. */
void pl_free_choose(struct engine *e, int device)
{
    struct free_device *f = &e->free[device];
    struct device *d = &e->device[device];
    for (; f->seen < d->next; f->seen++) f->held += f->seen->kind == PL_OP_F ? 1 : -1;
    struct pl_op *first = f->seen, *other = first + 1;
    while (other < d->stop && other->kind == first->kind) other++;
    if (other == d->stop) return;
    bool forward = first->kind == PL_OP_F;
    pl_tick f_at = PL_NEVER,
            b_at = later(e, pl_engine_ready(e, forward ? other : first));
    if (f->held < f->most) f_at = later(e, pl_engine_ready(e, forward ? first : other));
    if (forward == (f_at < b_at)) return;
    struct pl_op taken = *other;
    for (; other > first; other--) *other = other[-1];
    *first = taken;
}

static int check_free(const struct pl_schedule *s, const struct pl_cost *cost)
{
    bool plain = s->type->async && s->layout.C == s->layout.P && s->layout.R == 1;
    for (int64_t i = 0; i < s->n_ops; i++)
        plain &= !s->ops[i].pair &&
                 (s->ops[i].kind == PL_OP_F || s->ops[i].kind == PL_OP_BW);
    if (!plain)
        return pl_fail(PL_EUNSUP,
                       "schedule.order free with %s: expected an asynchronous schedule "
                       "with one chunk a device, such as pipedream",
                       s->type->name);
    if (cost->semantics == PL_RENDEZVOUS)
        return pl_fail(PL_EUNSUP,
                       "schedule.order free with link.semantics rendezvous: a "
                       "blocking exchange needs an order, expected latency, "
                       "occupancy or contention");
    return PL_OK;
}

int pl_engine_run_free(struct pl_schedule *schedule, const struct pl_cost *cost,
                       bool barrier, struct pl_timeline *out)
{
    int rc = check_free(schedule, cost);
    if (rc) return rc;
    struct free_device *devices = PL_NEW(schedule->layout.P, struct free_device);
    for (int d = 0; d < schedule->layout.P; d++) {
        int held = 0;
        devices[d].seen = &schedule->ops[schedule->first[d]];
        for (int64_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
            held += schedule->ops[i].kind == PL_OP_F ? 1 : -1;
            if (held > devices[d].most) devices[d].most = held;
        }
    }
    rc = run(schedule, cost, barrier, devices, out);
    free(devices);
    return rc;
}
