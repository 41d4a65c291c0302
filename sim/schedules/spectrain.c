/* SpecTrain: 1F1B without flush, update after every microbatch, one copy of the weights
 * and a buffer for predicted ones. Forward and backward both start from the live
 * weights and predict, w - s eta v with the momentum v, the version that will be live
 * when the microbatch ends its round trip on stage 0:
 *   s_fwd = floor(k / 2) + P - k - 1,  s_bwd = floor(k / 2)   (updates, stage k)
 * so that s_fwd - s_bwd = tau = P - 1 - k, what passes on the stage between F and B.
 *   weight versions 1 (and the prediction's buffer);  activations P - k
 * The prediction itself is training's (corrector); the version map says which weights
 * it starts from. Its variant v2 keeps the forward's prediction for the backward.
 * Source: Chen et al., arXiv 1809.02839. */
#include "base/err.h"
#include "sim/schedules/emit.h"

static int check(const struct pl_shape *shape)
{
    if (shape->m == 1) return PL_OK;
    return pl_fail(PL_EUNSUP,
                   "spectrain with m = %d microbatches per update: expected 1, its "
                   "horizons count updates of one microbatch (xpipe has groups)",
                   shape->m);
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int64_t ahead = shape->P - 1 - stage;
    *tau_min = *tau_max = ahead;
    *weight_versions = 1;
    *peak_activations = pl_closed_held(shape, ahead);
}

static void horizon(const struct pl_shape *shape, int chunk, int64_t *forward,
                    int64_t *backward)
{
    *backward = chunk / 2;
    *forward = chunk / 2 + shape->P - chunk - 1;
}

const struct pl_schedule_type pl_schedule_spectrain = {
    .name = "spectrain",
    .summary = "no flush, no stash: weights predicted for the end of the round trip",
    .source = "arXiv 1809.02839",
    .async = true,
    .nostash = true,
    .default_m = 1,
    .check = check,
    .emit = pl_emit_no_flush,
    .op_at = pl_op_no_flush,
    .reads = pl_reads_live,
    .closed = pl_closed_no_flush,
    .closed_stage = closed_stage,
    .horizon = horizon,
};
