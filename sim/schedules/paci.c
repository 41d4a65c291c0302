/* PACI: 1F1B without flush, one copy of the weights, no stash and no prediction:
 * forward and backward read whatever is live. A stage updates after a = m of its
 * backwards, so a microbatch sees few updates between its F and its B:
 *   tau = max(0, ceil((P-1-s-j) / a)) for microbatch j of a group;
 *   at most ceil((P-1) / a), mean (P-1-s) / a
 *   weight versions 1;  activations P - s
 *   time per update a (F + BW) + U  (c = 0)
 * Source: arXiv 2606.07881 (version drift bounded by local accumulation); the default
 * a = P is that of its 8-stage runs, a = 8. */
#include "sim/schedules/emit.h"

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int64_t ahead = shape->P - 1 - stage;
    pl_closed_lead(shape, ahead, tau_min, tau_max);
    *weight_versions = 1;
    *peak_activations = pl_closed_held(shape, ahead);
}

const struct pl_schedule_type pl_schedule_paci = {
    .name = "paci",
    .summary = "no flush, no stash: accumulation bounds the drift of the live weights",
    .source = "arXiv 2606.07881",
    .async = true,
    .nostash = true,
    .emit = pl_emit_no_flush,
    .op_at = pl_op_no_flush,
    .reads = pl_reads_live,
    .closed = pl_closed_no_flush,
    .closed_stage = closed_stage,
};
