/* Compilation runs the schedule without a clock: each device goes on while what its
 * next op waits for has a step already. A U follows the last gradient of its group on
 * its instance at once, since it goes before any other op; with a barrier all U of a
 * group follow the last op of the group on all devices, which a flush makes the next
 * thing that can run. */
#include "sim/program.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

struct compiler {
    const struct pl_schedule *sched;
    bool barrier;
    int P, C, Q;
    int64_t n_micro, m, updates;
    int64_t *cursor;           /* [P] */
    int32_t *forward, *input;  /* [Q * n_micro] steps of F, and of B or BW; -1 */
    int32_t *left;             /* [Q * updates] weight gradients missing */
    int64_t *updated;          /* [Q] U so far */
    int64_t ops_left, stopped; /* with a barrier: of the group; groups stopped at */
    int32_t *ready, n_ready;
    bool *queued; /* [P] */
    struct pl_program out;
};

static int unsupported(const char *why)
{
    return pl_fail(PL_EUNSUP, "no fixed order: %s", why);
}

static void count_left(struct compiler *c)
{
    for (int64_t i = 0; i < c->sched->n_ops; i++) {
        const struct pl_op *op = &c->sched->ops[i];
        if (op->kind == PL_OP_W || op->kind == PL_OP_BW)
            c->left[op->chunk * c->updates + op->micro / c->m]++;
    }
}

static void wake(struct compiler *c, int device)
{
    if (c->queued[device]) return;
    c->queued[device] = true;
    c->ready[c->n_ready++] = device;
}

static int32_t put(struct compiler *c, struct pl_step step, int64_t op)
{
    int64_t i = c->out.n++;
    c->out.step[i] = step;
    c->out.op[i] = op;
    return (int32_t)i;
}

static void put_update(struct compiler *c, int q)
{
    int device = c->sched->layout.device[q];
    put(c, (struct pl_step){-1, device, PL_OP_U * c->C + q % c->C, -1}, -1 - q);
    c->updated[q]++;
}

/* All devices have run all ops of the group: its updates, everywhere. */
static void stop(struct compiler *c)
{
    c->out.stop[c->out.n_stops++] = c->out.n;
    for (int q = 0; q < c->Q; q++) put_update(c, q);
    for (int d = 0; d < c->P; d++) wake(c, d);
    c->stopped++;
}

/* Step whose result op waits for: -1 none, -2 not there yet. */
static int32_t input_of(const struct compiler *c, const struct pl_op *op)
{
    int q = op->chunk, chunk = q % c->C;
    int64_t i = op->micro;
    if (op->kind == PL_OP_F) {
        if (chunk == 0) return -1;
        int32_t from = c->forward[(q - 1) * c->n_micro + i];
        return from < 0 ? -2 : from;
    }
    if (op->kind == PL_OP_W) return -1;
    if (chunk == c->C - 1) return -1;
    int32_t from = c->input[(q + 1) * c->n_micro + i];
    return from < 0 ? -2 : from;
}

/* May op run as far as versions and the barrier go? */
static bool allowed(const struct compiler *c, const struct pl_op *op)
{
    int64_t g = op->micro / c->m;
    if (c->barrier && g > c->stopped) return false;
    if (op->kind != PL_OP_F) return true;
    return c->sched->type->reads(&c->sched->shape, op->chunk % c->C, g) <=
           c->updated[op->chunk];
}

static int32_t transfer_of(const struct compiler *c, int32_t input, int device)
{
    if (input < 0) return -1;
    int from = c->out.step[input].device;
    if (from == device) return -1;
    if ((from + 1) % c->P == device && !(c->P == 2 && from == 1)) return 2 * from;
    return 2 * from + 1;
}

static void run_op(struct compiler *c, const struct pl_op *op, int device,
                   int32_t input)
{
    int q = op->chunk;
    int32_t at = put(c,
                     (struct pl_step){input, device, op->kind * c->C + q % c->C,
                                      transfer_of(c, input, device)},
                     op - c->sched->ops);
    if (op->kind == PL_OP_F) {
        c->forward[q * c->n_micro + op->micro] = at;
        if (q % c->C < c->C - 1) wake(c, c->sched->layout.device[q + 1]);
    } else if (op->kind != PL_OP_W) {
        c->input[q * c->n_micro + op->micro] = at;
        if (q % c->C > 0) wake(c, c->sched->layout.device[q - 1]);
    }
    if (c->barrier && --c->ops_left == 0) {
        c->ops_left = c->sched->n_ops / c->updates;
        stop(c);
    }
    if (op->kind != PL_OP_W && op->kind != PL_OP_BW) return;
    int64_t g = op->micro / c->m;
    if (--c->left[q * c->updates + g] == 0 && !c->barrier) put_update(c, q);
}

static void advance(struct compiler *c, int device)
{
    while (c->cursor[device] < c->sched->first[device + 1]) {
        const struct pl_op *op = &c->sched->ops[c->cursor[device]];
        int32_t input = input_of(c, op);
        if (input == -2 || !allowed(c, op)) return;
        c->cursor[device]++;
        run_op(c, op, device, input);
    }
}

/* What the schedule must be for its order to be fixed. Transfers are between
 * neighbours in the ring. */
static int check(const struct pl_schedule *sched, bool barrier)
{
    const struct pl_layout *layout = &sched->layout;
    if (barrier && sched->type->async) return unsupported("a barrier without flush");
    if (!barrier && layout->R > 1) return unsupported("U waits for another replica");
    for (int64_t i = 0; i < sched->n_ops; i++)
        if (sched->ops[i].pair) return unsupported("overlapped pairs");
    for (int q = 0; q + 1 < layout->C * layout->R; q++) {
        int a = layout->device[q], b = layout->device[q + 1], P = layout->P;
        bool near = a == b || (a + 1) % P == b || (b + 1) % P == a;
        if ((q + 1) % layout->C && !near)
            return unsupported("transfers between devices that are no neighbours");
    }
    if (sched->n_ops + layout->C * layout->R * sched->shape.updates >= INT32_MAX)
        return unsupported("more than 2^31 ops");
    return PL_OK;
}

static void prepare(struct compiler *c)
{
    int64_t cells = c->Q * c->n_micro, n = c->sched->n_ops + c->Q * c->updates;
    c->cursor = PL_NEW(c->P, int64_t);
    c->forward = PL_NEW(cells, int32_t);
    c->input = PL_NEW(cells, int32_t);
    memset(c->forward, 0xff, (size_t)cells * sizeof *c->forward);
    memset(c->input, 0xff, (size_t)cells * sizeof *c->input);
    c->left = PL_NEW(c->Q * c->updates, int32_t);
    c->updated = PL_NEW(c->Q, int64_t);
    c->ready = PL_NEW(c->P, int32_t);
    c->queued = PL_NEW(c->P, bool);
    c->out.step = PL_NEW(n, struct pl_step);
    c->out.op = PL_NEW(n, int64_t);
    c->out.stop = PL_NEW(c->updates, int64_t);
    c->ops_left = c->sched->n_ops / c->updates;
    count_left(c);
    for (int d = 0; d < c->P; d++) c->cursor[d] = c->sched->first[d];
    for (int d = c->P - 1; d >= 0; d--) wake(c, d);
}

int pl_program_new(const struct pl_schedule *sched, bool barrier,
                   struct pl_program *out)
{
    const struct pl_layout *layout = &sched->layout;
    struct compiler c = {.sched = sched, .barrier = barrier, .P = layout->P};
    int rc = check(sched, barrier);
    if (rc) return rc;
    c.C = layout->C;
    c.Q = c.C * layout->R;
    c.m = sched->shape.m;
    c.updates = sched->shape.updates;
    c.n_micro = c.m * c.updates;
    c.out.sched = sched;
    prepare(&c);
    while (c.n_ready) {
        int device = c.ready[--c.n_ready];
        c.queued[device] = false;
        advance(&c, device);
    }
    if (c.out.n < sched->n_ops + c.Q * c.updates)
        rc = pl_fail(PL_ECHECK, "schedule %s cannot be executed in its order",
                     sched->type->name);
    free(c.cursor);
    free(c.forward);
    free(c.input);
    free(c.left);
    free(c.updated);
    free(c.ready);
    free(c.queued);
    if (rc)
        pl_program_free(&c.out);
    else
        *out = c.out;
    return rc;
}

static pl_tick largest(const pl_tick *t, int64_t n)
{
    pl_tick most = 0;
    for (int64_t i = 0; i < n; i++)
        if (t[i] > most) most = t[i];
    return most;
}

/* Steps from .. to - 1; everything in locals, so that nothing is read twice. */
static void sweep(const struct pl_program *p, int64_t from, int64_t to,
                  const pl_tick *restrict time, const pl_tick *restrict flight,
                  pl_tick *restrict free_at, pl_tick *end)
{
    const struct pl_step *step = p->step;
    for (int64_t i = from; i < to; i++) {
        pl_tick at = free_at[step[i].device];
        if (step[i].input >= 0) {
            pl_tick arrival = end[step[i].input] + flight[step[i].transfer];
            at = arrival > at ? arrival : at;
        }
        at += time[step[i].duration];
        free_at[step[i].device] = at;
        end[i] = at;
    }
}

int pl_program_run(const struct pl_program *p, const struct pl_cost *cost, pl_tick *end,
                   pl_tick *makespan)
{
    int P = cost->devices;
    pl_tick *flights = PL_NEW(2 * P + 1, pl_tick), *flight = flights + 1; /* -1: 0 */
    pl_tick *free_at = PL_NEW(P, pl_tick);
    for (int d = 0; d < P; d++) {
        flight[2 * d] = cost->next[d] + cost->send_next[d];
        flight[2 * d + 1] = cost->prev[d] + cost->send_prev[d];
    }
    double most = (double)largest(cost->time, (int64_t)PL_N_OP * cost->chunks) +
                  (double)largest(flight, 2 * P);
    int rc = PL_OK;
    if (most * (double)p->n > 9e18)
        rc = pl_fail(PL_ECONFIG, "simulated time may exceed 106 days (int64 "
                                 "picoseconds): run fewer updates");
    int64_t from = 0;
    for (int64_t k = 0; k <= p->n_stops && !rc; k++) {
        int64_t to = k < p->n_stops ? p->stop[k] : p->n;
        sweep(p, from, to, cost->time, flight, free_at, end);
        from = to;
        if (k == p->n_stops) break;
        pl_tick last = largest(free_at, P);
        for (int d = 0; d < P; d++) free_at[d] = last;
    }
    *makespan = largest(free_at, P);
    free(flights);
    free(free_at);
    return rc;
}

void pl_program_free(struct pl_program *p)
{
    free(p->step);
    free(p->op);
    free(p->stop);
    *p = (struct pl_program){.n = 0};
}
