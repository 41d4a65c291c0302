/* XPipe: 1F1B without flush over the T = m microbatches of each minibatch, one copy of
 * the weights and a buffer for predicted ones. The first microbatch of a minibatch (the
 * bellwether) predicts from the live weights, the others use its prediction:
 *   forward reads, on the whole group, what is live when its first F starts
 *   tau = ceil((P-1-k) / T);  weight versions 1 (and the prediction's buffer)
 *   s_fwd = round((P + T - k/2 - 2) / T),  s_bwd = round((T + floor(k/2) - 1) / T)
 *   in minibatches (= updates), round half to even;  activations P - k
 * The prediction itself (Adam's step times s) is training's.
 * Source: Guan et al., arXiv 1911.04610; the horizons as in the published code. */
#include <math.h>

#include "sim/schedules/emit.h"

static int64_t reads(const struct pl_shape *shape, int chunk, int64_t group)
{
    (void)shape;
    (void)chunk;
    (void)group;
    return PL_READS_GROUP;
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    int64_t ahead = shape->P - 1 - stage;
    pl_closed_lead(shape, ahead, tau_min, tau_max);
    *tau_min = *tau_max; /* all read with the first of the group */
    *weight_versions = 1;
    *peak_activations = pl_closed_held(shape, ahead);
}

static void horizon(const struct pl_shape *shape, int chunk, int64_t *forward,
                    int64_t *backward)
{
    double P = shape->P, T = shape->m, k = chunk;
    *forward = (int64_t)nearbyint((P + T - k / 2 - 2) / T);
    *backward = (int64_t)nearbyint((T + chunk / 2 - 1) / T);
}

const struct pl_schedule_type pl_schedule_xpipe = {
    .name = "xpipe",
    .summary = "no flush, no stash: one prediction of the weights for a whole group",
    .source = "arXiv 1911.04610",
    .async = true,
    .nostash = true,
    .emit = pl_emit_no_flush,
    .op_at = pl_op_no_flush,
    .reads = reads,
    .closed = pl_closed_no_flush,
    .closed_stage = closed_stage,
    .horizon = horizon,
};
