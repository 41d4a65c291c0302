/* AMDP, asynchronous multi-directional pipelines: P / 2 copies of the model, half of
 * them in each direction, those of a direction 4 devices apart:
 *   copy 2k: stage s on device 4k + s mod P;  copy 2k+1: on 4k + 3 - s mod P
 * (4 devices: two opposing pipelines; 8: four). Each pipeline runs without flush and
 * takes in at most n = 2 microbatches before a backward, P in flight over all of them;
 * stage i of a pipeline has at most
 *   min(n, P - i) - 1 other microbatches between F and B of one: 1, on the last none
 * No stash: F and B read the live weights. The m microbatches of an update (a multiple
 * of P) go to the copies in turn; one U for all copies when the last gradient is there.
 *   weight versions 1;  activations min(n, P - i) per instance
 *
 * The order on a device is ours (the paper says FIFO within a pipeline): forwards
 * before backwards, then the oldest microbatch, in a run with the largest F and BW of
 * the costs. Steady bubble at BW = 2 F, the proportion of the paper's figures: 1/7 at
 * P = 4 and 8, 1/13 at 16; at F = BW none. The rule matters: backwards first gives 0.25
 * and 0.29.
 *
 * Source: Chen et al., arXiv 2605.29664 (ICML 2026); the published code has the two-
 * and the four-directional case. */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/schedules/emit.h"

enum { AHEAD = 2, MICRO_TIME = 1000 }; /* MICRO_TIME: F + BW in the plan */

static int check(const struct pl_shape *shape)
{
    int P = shape->P, m = shape->m;
    if (P % 4)
        return pl_fail(PL_EUNSUP,
                       "amdp on P = %d stages: expected a multiple of 4, such as %d, "
                       "for its P / 2 pipelines",
                       P, (P + 3) / 4 * 4);
    if (m % P == 0) return PL_OK;
    return pl_fail(
        PL_EUNSUP,
        "amdp with m = %d microbatches per update on P = %d stages: expected "
        "a multiple of P, such as %d",
        m, P, (m + P - 1) / P * P);
}

static int place(const struct pl_shape *shape, int chunk, int replica)
{
    int P = shape->P, base = replica / 2 * 4;
    return replica % 2 ? (base + 3 - chunk + P) % P : (base + chunk) % P;
}

/* One stage of one pipeline: microbatches of the pipeline issued. */
struct stage {
    int64_t f, b;
};

struct plan {
    int P, R;
    int64_t f_time, b_time;
    int64_t each;         /* microbatches of a pipeline */
    struct stage *stage;  /* [R * P] */
    int64_t *free_at;     /* [P] */
    int64_t *f_at, *b_at; /* [R * P * each] arrival of the input, INT64_MAX: not yet */
    struct pl_op *ops;    /* [P * 2 * R * each] */
    int64_t *n_ops;       /* [P] */
};

static bool forward_ready(const struct plan *p, int q, int64_t t)
{
    const struct stage *x = &p->stage[q];
    int room = q % p->P < p->P - 1 ? AHEAD : 1;
    return x->f < p->each && x->f - x->b < room && p->f_at[q * p->each + x->f] <= t;
}

static bool backward_ready(const struct plan *p, int q, int64_t t)
{
    const struct stage *x = &p->stage[q];
    return x->b < x->f && p->b_at[q * p->each + x->b] <= t;
}

/* What a device runs at time t: instance (-1: nothing) and whether F. */
static int choose(const struct plan *p, int device, int64_t t, bool *forward)
{
    int best = -1;
    int64_t oldest = 0;
    *forward = false;
    for (int r = 0; r < p->R; r++) {
        int base = r / 2 * 4, chunk = r % 2 ? base + 3 - device : device - base;
        int q = r * p->P + (chunk + p->P) % p->P;
        bool f = forward_ready(p, q, t);
        if (!f && (*forward || !backward_ready(p, q, t))) continue;
        int64_t micro = f ? p->stage[q].f : p->stage[q].b;
        if (best >= 0 && f == *forward && micro >= oldest) continue;
        best = q;
        oldest = micro;
        *forward = f;
    }
    return best;
}

static void run(struct plan *p, int device, int q, bool forward, int64_t t)
{
    struct stage *x = &p->stage[q];
    int chunk = q % p->P, replica = q / p->P;
    int64_t k = forward ? x->f++ : x->b++;
    int64_t end = p->free_at[device] = t + (forward ? p->f_time : p->b_time);
    if (forward && chunk < p->P - 1)
        p->f_at[(q + 1) * p->each + k] = end;
    else if (forward)
        p->b_at[q * p->each + k] = end;
    else if (chunk > 0)
        p->b_at[(q - 1) * p->each + k] = end;
    p->ops[device * 2 * p->R * p->each + p->n_ops[device]++] =
        (struct pl_op){k * p->R + replica, q, forward ? PL_OP_F : PL_OP_BW, 0};
}

/* Whatever can start at time t starts, also behind ops that take no time. */
static int64_t start_all(struct plan *p, int64_t t)
{
    int64_t started = 0;
    for (int d = 0; d < p->P; d++) {
        bool forward = false;
        int q = p->free_at[d] <= t ? choose(p, d, t, &forward) : -1;
        if (q < 0) continue;
        run(p, d, q, forward, t);
        started++;
    }
    return started;
}

static void plan_run(struct plan *p)
{
    int64_t left = p->P * 2 * p->R * p->each, t = 0;
    while (left) {
        for (int64_t n = start_all(p, t); n; n = start_all(p, t)) left -= n;
        int64_t next = INT64_MAX; /* the next end of an op */
        for (int d = 0; d < p->P; d++)
            if (p->free_at[d] > t && p->free_at[d] < next) next = p->free_at[d];
        t = next;
    }
}

/* F and BW in the proportion of the slowest stage's. */
static void plan_times(const struct pl_cost *cost, struct plan *p)
{
    pl_tick f = 0, b = 0;
    for (int c = 0; cost && c < cost->chunks; c++) {
        if (cost->forward[c] > f) f = cost->forward[c];
        if (cost->both[c] > b) b = cost->both[c];
    }
    double share = f || b ? (double)f / ((double)f + (double)b) : 1.0 / 3;
    p->f_time = llround(share * MICRO_TIME);
    p->b_time = MICRO_TIME - p->f_time;
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    const struct pl_shape *shape = &out->shape;
    struct plan p = {.P = shape->P, .R = out->layout.R};
    plan_times(cost, &p);
    p.each = shape->m * shape->updates / p.R;
    int64_t n_inputs = p.R * p.P * p.each, per_device = 2 * p.R * p.each;
    p.stage = PL_NEW(p.R * p.P, struct stage);
    p.free_at = PL_NEW(p.P, int64_t);
    p.f_at = PL_NEW(n_inputs, int64_t);
    p.b_at = PL_NEW(n_inputs, int64_t);
    p.ops = PL_NEW(p.P * per_device, struct pl_op);
    p.n_ops = PL_NEW(p.P, int64_t);
    for (int64_t i = 0; i < n_inputs; i++) {
        p.f_at[i] = i / p.each % p.P ? INT64_MAX : 0;
        p.b_at[i] = INT64_MAX;
    }
    plan_run(&p);
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int d = 0; d < p.P; d++) {
        for (int64_t i = 0; i < per_device; i++) {
            const struct pl_op *op = &p.ops[d * per_device + i];
            pl_emit_put(&emit, op->kind, op->chunk, op->micro);
        }
        pl_emit_device(&emit);
    }
    free(p.stage);
    free(p.free_at);
    free(p.f_at);
    free(p.b_at);
    free(p.ops);
    free(p.n_ops);
    return 0;
}

static void closed_stage(const struct pl_shape *shape, int instance, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    (void)shape;
    (void)instance;
    *tau_min = *tau_max = *peak_activations = -1;
    *weight_versions = 1;
}

const struct pl_schedule_type pl_schedule_amdp = {
    .name = "amdp",
    .summary = "no flush, no stash: P / 2 pipelines in both directions, 2 deep each",
    .source = "arXiv 2605.29664",
    .async = true,
    .nostash = true,
    .replicas = PL_REPLICAS_HALF,
    .place = place,
    .check = check,
    .emit = emit,
    .reads = pl_reads_live,
    .closed_stage = closed_stage,
};
