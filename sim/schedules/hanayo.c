/* Hanayo: one copy of the model cut into v = 2W chunks a device, laid out as W waves
 * (chunk c on device c mod P, or P-1 - c mod P on the way back), so that a microbatch
 * turns round without a transfer. The order of a unit of P microbatches is what a
 * greedy list scheduler gives in slots (F = 1, B_full = 2, no transfers): a device that
 * is free runs the oldest backward that is ready, else the forward that is deepest in
 * the model. More microbatches are units one behind the other, the work of a unit
 * apart, as in Chimera, from which the authors derive theirs. N = P, B_full = 2F,
 * measured: 4(P-1) idle slots of F / (2W) at W = 1 and a few more at W > 1; recalled,
 * not verified: bubble (2P-2)/(3PW+P-1) Source: Liu et al., SC 2023 (arXiv 2308.15762);
 * the list scheduler is ours. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/schedules/emit.h"

enum { F_SLOTS = 1, B_SLOTS = 2 };

struct slot {
    int64_t at;
    struct pl_op op;
};

/* One unit of n microbatches. */
struct plan {
    const struct pl_layout *layout;
    int64_t n, now;
    int64_t *forward, *backward;           /* [C] begun */
    int64_t *forward_done, *backward_done; /* [C] */
    int64_t *free_at;                      /* [P] */
    struct slot *slot; /* [P * 2 v n], those of device d from d 2 v n */
    int64_t *n_slots;  /* [P] */
};

static int check(const struct pl_shape *shape)
{
    if (shape->v % 2 == 0) return PL_OK;
    return pl_fail(
        PL_EUNSUP,
        "hanayo with schedule.chunks %d: expected 2 W for W waves, such as %d",
        shape->v, shape->v + 1);
}

static int64_t room(const struct plan *p)
{
    return 2 * (p->layout->C / p->layout->P) * p->n;
}

static bool ready(const struct plan *p, int kind, int c)
{
    if (kind == PL_OP_F)
        return p->forward[c] < p->n &&
               (c == 0 || p->forward_done[c - 1] > p->forward[c]);
    int64_t i = p->backward[c];
    return p->forward_done[c] > i &&
           (c == p->layout->C - 1 || p->backward_done[c + 1] > i);
}

/* Chunk k of device d. */
static int chunk_of(const struct plan *p, int d, int k)
{
    int P = p->layout->P;
    return k * P + (k % 2 ? P - 1 - d : d);
}

/* What device d runs next: chunk, or -1, and *kind. */
static int choose(const struct plan *p, int d, int *kind)
{
    int best = -1, v = p->layout->C / p->layout->P;
    *kind = PL_OP_BW;
    for (int k = 0; k < v; k++) {
        int c = chunk_of(p, d, k);
        if (ready(p, PL_OP_BW, c) && (best < 0 || p->backward[c] <= p->backward[best]))
            best = c;
    }
    if (best >= 0) return best;
    *kind = PL_OP_F;
    for (int k = v - 1; k >= 0; k--)
        if (ready(p, PL_OP_F, chunk_of(p, d, k))) return chunk_of(p, d, k);
    return -1;
}

/* The op that device d has been running, if any, ends now. */
static void finish(struct plan *p, int d)
{
    if (!p->n_slots[d] || p->free_at[d] != p->now) return;
    const struct pl_op *op = &p->slot[d * room(p) + p->n_slots[d] - 1].op;
    if (op->kind == PL_OP_F)
        p->forward_done[op->chunk]++;
    else
        p->backward_done[op->chunk]++;
}

static void start(struct plan *p, int d)
{
    int kind, c = p->free_at[d] > p->now ? -1 : choose(p, d, &kind);
    if (c < 0) return;
    int64_t micro = kind == PL_OP_F ? p->forward[c]++ : p->backward[c]++;
    p->slot[d * room(p) + p->n_slots[d]++] =
        (struct slot){p->now, {micro, c, (int16_t)kind, 0}};
    p->free_at[d] = p->now + (kind == PL_OP_F ? F_SLOTS : B_SLOTS);
}

static void plan_unit(const struct pl_layout *layout, int64_t n, struct plan *p)
{
    int P = layout->P, C = layout->C;
    *p = (struct plan){.layout = layout, .n = n};
    p->forward = PL_NEW(4 * (int64_t)C, int64_t);
    p->backward = p->forward + C;
    p->forward_done = p->forward + 2 * (int64_t)C;
    p->backward_done = p->forward + 3 * (int64_t)C;
    p->free_at = PL_NEW(2 * (int64_t)P, int64_t);
    p->n_slots = p->free_at + P;
    p->slot = PL_NEW(P * room(p), struct slot);
    for (p->now = 0; p->backward_done[0] < n; p->now++) {
        for (int d = 0; d < P; d++) finish(p, d);
        for (int d = 0; d < P; d++) start(p, d);
    }
}

static void free_plan(struct plan *p)
{
    free(p->forward);
    free(p->free_at);
    free(p->slot);
}

/* By slot, then microbatch. */
static int by_slot(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->op.micro > y->op.micro) - (x->op.micro < y->op.micro);
}

/* The slots of device d in one update: units of P, the last may be smaller. */
static void merge(const struct plan *whole, const struct plan *rest, int64_t m, int d,
                  struct slot *out)
{
    int64_t n = 0, unit = whole->n, work = room(whole) * (F_SLOTS + B_SLOTS) / 2;
    for (int64_t k = 0; k * unit < m; k++) {
        const struct plan *p = (k + 1) * unit <= m ? whole : rest;
        for (int64_t i = 0; i < room(p); i++) {
            struct slot slot = p->slot[d * room(p) + i];
            slot.at += k * work;
            slot.op.micro += k * unit;
            out[n++] = slot;
        }
    }
    qsort(out, (size_t)n, sizeof *out, by_slot);
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    int64_t m = out->shape.m, P = out->shape.P, n = 2 * out->shape.v * m;
    struct plan whole, rest;
    struct pl_emit emit;
    plan_unit(&out->layout, P, &whole);
    plan_unit(&out->layout, m % P, &rest);
    struct slot *slot = PL_NEW(n, struct slot);
    pl_emit_begin(&emit, out);
    for (int d = 0; d < P; d++) {
        merge(&whole, &rest, m, d, slot);
        for (int64_t g = 0; g < out->shape.updates; g++)
            for (int64_t i = 0; i < n; i++)
                pl_emit_put(&emit, slot[i].op.kind, slot[i].op.chunk,
                            g * m + slot[i].op.micro);
        pl_emit_device(&emit);
    }
    free(slot);
    free_plan(&whole);
    free_plan(&rest);
    return 0;
}

const struct pl_schedule_type pl_schedule_hanayo = {
    .name = "hanayo",
    .summary = "waves: 2W chunks a device in zigzag, one copy of the model",
    .source = "arXiv 2308.15762",
    .global_version = true,
    .default_v = 2,
    .any_v = true,
    .place = pl_place_zigzag,
    .check = check,
    .emit = emit,
    .reads = pl_reads_newest,
};
