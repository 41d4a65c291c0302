/* PipeMare: one copy of the weights; in every slot a stage runs the forward of one
 * microbatch and the backward of another. Stage i = s + 1 is L = 2 (P-i) + 1 forwards
 * ahead: a forward sees weights L microbatches old, a backward the live ones.
 *   tau_fwd = (2 (P-i) + 1) / N on average, N = m microbatches per update
 *   tau_bkwd = 0
 *   microbatch k: floor(k / N) - floor((k - L) / N), in floor(L / N) .. ceil(L / N)
 *   weight versions 1;  activations L + 1 (a slot holds both microbatches)
 *   time per update m slots + U  (c = 0);  slot = F + BW less cost.overlap's part
 * Source: Yang et al., MLSys 2021 (arXiv 1910.05124). Without slots, alternating F and
 * BW, the delay would be P - 1 - s microbatches: that schedule, without stash, is
 * paci. */
#include <math.h>

#include "sim/schedules/emit.h"

static int64_t lead_of(const struct pl_shape *shape, int stage)
{
    return 2 * (int64_t)(shape->P - 1 - stage) + 1;
}

static bool op_at(const struct pl_shape *shape, int device, int64_t k,
                  struct pl_op *out)
{
    int64_t lead = lead_of(shape, device);
    if (!pl_op_alternating(shape->m * shape->updates, lead, k, out)) return false;
    out->chunk = device;
    out->pair = out->kind == PL_OP_F && k >= lead;
    return true;
}

static int emit(const struct pl_cost *cost, struct pl_schedule *out)
{
    (void)cost;
    const struct pl_shape *shape = &out->shape;
    int64_t all = shape->m * shape->updates;
    struct pl_emit emit;
    pl_emit_begin(&emit, out);
    for (int s = 0; s < shape->P; s++) {
        int64_t lead = lead_of(shape, s);
        for (int64_t i = 0; i < lead && i < all; i++) pl_emit_put(&emit, PL_OP_F, s, i);
        for (int64_t i = 0; i < all; i++) {
            if (i + lead < all)
                pl_emit_pair(&emit, s, i + lead, s, i);
            else
                pl_emit_put(&emit, PL_OP_BW, s, i);
        }
        pl_emit_device(&emit);
    }
    return 0;
}

static void closed(const struct pl_shape *shape, const struct pl_cost *cost,
                   struct pl_closed *out)
{
    double slot = pl_seconds(pl_cost_pair(cost, cost->forward[0], cost->both[0]));
    *out = (struct pl_closed){NAN, NAN, NAN, NAN};
    if (pl_closed_link(shape, cost) > 0) return;
    out->step_s = shape->m * slot + pl_closed_update(shape, cost);
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int64_t lead = lead_of(shape, stage);
    pl_closed_lead(shape, lead, tau_min, tau_max);
    *weight_versions = 1;
    *peak_activations = pl_closed_held(shape, lead);
}

const struct pl_schedule_type pl_schedule_pipemare = {
    .name = "pipemare",
    .summary = "no flush, no stash: slots of one forward and one backward",
    .source = "arXiv 1910.05124",
    .async = true,
    .nostash = true,
    .slots = true,
    .emit = emit,
    .op_at = op_at,
    .reads = pl_reads_live,
    .closed = closed,
    .closed_stage = closed_stage,
};
