/* PipeDream: 1F1B without flush; a stage updates its weights every m = K microbatches
 * and a forward reads whatever is live on its stage; the backward reads the same
 * (stashed). Microbatch j of a group:
 *   tau = max(0, ceil((P-1-s-j) / K));  mean (P-1-s) / K
 *   weight versions ceil((P-1-s) / K) + 1;  activations P - s
 *   time per update K (F + BW) + U  (c = 0)
 * Sources: Narayanan et al., SOSP 2019 (arXiv 1806.03377); every K: Ajanthan et al.,
 * arXiv 2505.01099, whose floor((2(P-i)+1)/(2K)), i from 1, is floor((P-1-s)/K). */
#include "sim/schedules/emit.h"

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int64_t ahead = shape->P - 1 - stage;
    pl_closed_lead(shape, ahead, tau_min, tau_max);
    *weight_versions = *tau_max + 1;
    *peak_activations = pl_closed_held(shape, ahead);
}

const struct pl_schedule_type pl_schedule_pipedream = {
    .name = "pipedream",
    .summary = "no flush, every stage updates on its own (weight stashing)",
    .source = "arXiv 1806.03377",
    .async = true,
    .default_m = 1,
    .emit = pl_emit_no_flush,
    .op_at = pl_op_no_flush,
    .reads = pl_reads_live,
    .closed = pl_closed_no_flush,
    .closed_stage = closed_stage,
};
