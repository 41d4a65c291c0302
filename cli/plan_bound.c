/* What no simulation of a candidate can beat, from costs alone.
 *
 * Time, synchronous, one update (head: F and transfers before a device's first op;
 * tail: B and transfers after its last backward; work: all its F, B, W): last backward
 * of d  >= head + work + tail          where B and W are fused (BW)
 *                       >= head + max(work, F + B work + tail)   where they are split
 *   step >= max over d of that + the update that follows: chunk 0's, all of d's after
 *           work, or, when U waits for one global norm, the longest after all of them
 * For equal stages without transfers that is (m + P - 1)(F + BW) + U, what 1F1B takes.
 * Asynchronous: between two updates of chunk 0 n apart every device works for all their
 * microbatches but those that were in flight before (P, or 2 P in slots):
 *   step >= (work + U) (1 - P / (n m)), n the length of the steady window.
 * Pairs that overlap save at most half of the overlapped part. With random times,
 * or devices that take what is there, there is no bound.
 *
 * Memory of a device: all that it holds all the time and one microbatch in backward, or
 * as many activations as the schedule's closed form holds (where B and W are split,
 * what each keeps for W). */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/plan.h"

struct device {
    double head, tail;            /* least of its instances */
    double work, no_weight, rule; /* F + B + W; F + B; U */
    double longest;               /* of one U */
};

/* Does the schedule run B and W apart? Asked of a small shape, once. */
static bool splits(const struct pl_schedule_type *type)
{
    enum { UNKNOWN, FUSED, SPLIT };
    static char known[256];
    static const pl_tick one = 1000000000, none = 0;
    int i = 0;
    while (pl_schedule_types[i] != type) i++;
    if (i >= 256) return true;
    if (known[i] != UNKNOWN) return known[i] == SPLIT;
    known[i] = SPLIT; /* the weaker bound, if the shape is refused */
    struct pl_shape shape = {.P = 4, .m = 8, .updates = 1};
    struct pl_cost_spec spec = {.forward = {&one, 1},
                                .backward = {&one, 1},
                                .weight = {&one, 1},
                                .update = {&none, 1},
                                .link = {&none, 1},
                                .send = {&none, 1}};
    struct pl_layout layout;
    struct pl_schedule schedule;
    struct pl_cost cost;
    if (pl_shape_resolve(type, &shape)) shape.m = 1; /* one microbatch an update */
    if (shape.m == 1 && pl_shape_resolve(type, &shape)) return true;
    pl_layout_new(type, &shape, &layout);
    if (!pl_cost_new(&layout, &spec, &cost)) {
        if (!pl_schedule_new(type, &shape, &cost, &schedule)) {
            known[i] = FUSED;
            for (int64_t k = 0; k < schedule.n_ops; k++)
                if (schedule.ops[k].kind != PL_OP_F && schedule.ops[k].kind != PL_OP_BW)
                    known[i] = SPLIT;
            pl_schedule_free(&schedule);
        }
        pl_cost_free(&cost);
    }
    pl_layout_free(&layout);
    return known[i] == SPLIT;
}

/* What every device does for one update, and when at the earliest and latest. */
static void walk_instances(const struct pl_shape *shape, const struct pl_layout *l,
                           const struct pl_cost *cost, bool split, struct device *d)
{
    double micros = shape->m / l->R; /* of a replica, at least */
    for (int i = 0; i < l->P; i++)
        d[i] = (struct device){.head = DBL_MAX, .tail = DBL_MAX};
    for (int r = 0; r < l->R; r++) {
        double head = 0, tail = 0;
        for (int c = 0; c < l->C; c++) {
            int at = l->device[r * l->C + c];
            struct device *x = &d[at];
            if (c) {
                int from = l->device[r * l->C + c - 1];
                if (from != at) head += (double)pl_cost_flight(cost, from, at);
                if (from != at) tail += (double)pl_cost_flight(cost, at, from);
            }
            x->head = fmin(x->head, head);
            x->tail = fmin(x->tail, tail);
            double forward = (double)cost->forward[c],
                   backward = (double)cost->backward[c], both = (double)cost->both[c];
            x->work += micros * (forward + both);
            x->no_weight += micros * (forward + backward);
            x->rule += (double)cost->update[c];
            x->longest = fmax(x->longest, (double)cost->update[c]);
            head += forward;
            tail += split ? backward : both;
        }
    }
    for (int i = 0; i < l->P; i++) {
        d[i].work *= 1 - cost->overlap / 2;
        d[i].no_weight *= 1 - cost->overlap / 2;
    }
}

static double sync_bound(const struct pl_layout *l, const struct pl_cost *cost,
                         const struct device *d, bool split, bool barrier)
{
    double ends = 0, step = 0, longest = 0;
    for (int i = 0; i < l->P; i++) {
        double last = d[i].head + (split ? fmax(d[i].work, d[i].no_weight + d[i].tail)
                                         : d[i].work + d[i].tail);
        ends = fmax(ends, last);
        longest = fmax(longest, d[i].rule);
        double own = d[i].head + d[i].work + d[i].rule;
        step = fmax(step, fmax(last + (split ? 0 : (double)cost->update[0]), own));
    }
    return barrier ? fmax(step, ends + longest) : step;
}

static double async_bound(const struct pl_schedule_type *type,
                          const struct pl_shape *shape, const struct device *d)
{
    int64_t period = pl_schedule_period(type, shape->P, shape->m);
    int64_t last =
        shape->updates >= 3 * period ? shape->updates - period : shape->updates;
    double n = last > period ? (double)((last - period) / period * period) : 0;
    double flying = (type->slots || shape->v > 1 ? 2. : 1.) * shape->P;
    if (n <= 0) return 0;
    double micros = fmax(0, 1 - flying / (n * shape->m)),
           updates = fmax(0, 1 - (double)(period + 1) / n), step = 0;
    for (int i = 0; i < shape->P; i++)
        step = fmax(step, d[i].work * micros + d[i].rule * updates);
    return step;
}

static double bytes_held(const struct pl_chunk_bytes *b)
{
    return (double)b->weight + (double)b->gradient + (double)b->optimizer +
           (double)b->corrector;
}

/* Activations that the device of an instance holds by the closed form, 0: none. */
static double closed_slots(const struct pl_schedule_type *type,
                           const struct pl_shape *shape, int instance)
{
    int64_t a, b, versions, peak = -1;
    if (!type->closed_stage || shape->free_order) return 0;
    type->closed_stage(shape, instance, &a, &b, &versions, &peak);
    return peak > 0 ? (double)peak : 0;
}

static void memory_bound(const struct pl_schedule_type *type,
                         const struct pl_shape *shape, const struct pl_layout *l,
                         const struct pl_chunk_bytes *bytes, bool split,
                         struct pl_plan_row *row)
{
    double *held = PL_NEW(l->P, double), *least = PL_NEW(l->P, double),
           *most = PL_NEW(l->P, double), *slots = PL_NEW(l->P, double);
    for (int q = 0; q < l->C * l->R; q++) {
        const struct pl_chunk_bytes *b = &bytes[q % l->C];
        int d = l->device[q];
        double act = (double)b->activation,
               slot = split ? fmin((double)b->kept, act) : act;
        held[d] += bytes_held(b);
        least[d] = slots[d] > 0 ? fmin(least[d], slot) : slot;
        most[d] = fmax(most[d], act + (double)b->working);
        slots[d] = fmax(1, fmax(slots[d], closed_slots(type, shape, q)));
    }
    row->bound_bytes = -1;
    for (int d = 0; d < l->P; d++) {
        double bound = held[d] + fmax(most[d], least[d] * slots[d]);
        if (bound <= row->bound_bytes) continue;
        row->bound_bytes = bound;
        row->device = d;
    }
    row->peak = row->bound_bytes;
    free(held);
    free(least);
    free(most);
    free(slots);
}

void pl_plan_bound(const struct pl_schedule_type *type, const struct pl_shape *shape,
                   const struct pl_layout *layout, const struct pl_cost *cost,
                   const struct pl_estimate *estimate, bool barrier,
                   struct pl_plan_row *row)
{
    struct device *d = PL_NEW(layout->P, struct device);
    bool split = splits(type);
    walk_instances(shape, layout, cost, split, d);
    double ticks = pl_cost_varies(cost) || shape->free_order ? 0
                   : type->async ? async_bound(type, shape, d)
                                 : sync_bound(layout, cost, d, split, barrier);
    /* sums of doubles above 2^53 ticks are rounded: stay below */
    row->bound_s = ticks * 1e-12 * (1 - 1e-9);
    memory_bound(type, shape, layout, estimate->bytes, split, row);
    free(d);
}
