/* PipeDream with vertical sync: PipeDream's order, but every stage uses for a
 * microbatch, forward and backward, the version that stage 0 read for it:
 *   w(t+1) = w(t) - eta g(w(t-P+1)) at K = 1: delay P - 1 on all stages.
 * Microbatch j of a group, update every m = K microbatches, on every stage:
 *   tau = max(0, ceil((P-1-j) / K));  weight versions ceil((P-1) / K) + 1, also on the
 *   stages whose own round trip is shorter;  activations P - s
 * Stages update on their own, as PipeDream's do; the paper has no global norm.
 * Source: Narayanan et al., SOSP 2019 (arXiv 1806.03377), vertical sync. */
#include "sim/schedules/emit.h"

static int64_t reads(const struct pl_shape *shape, int chunk, int64_t group)
{
    (void)shape;
    (void)chunk;
    (void)group;
    return PL_READS_FIRST;
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    pl_closed_lead(shape, shape->P - 1, tau_min, tau_max);
    *weight_versions = *tau_max + 1;
    *peak_activations = pl_closed_held(shape, shape->P - 1 - stage);
}

const struct pl_schedule_type pl_schedule_pipedream_vertical = {
    .name = "pipedream-vertical",
    .summary = "pipedream with vertical sync: all stages use stage 0's version",
    .source = "arXiv 1806.03377",
    .async = true,
    .default_m = 1,
    .emit = pl_emit_no_flush,
    .op_at = pl_op_no_flush,
    .reads = reads,
    .closed = pl_closed_no_flush,
    .closed_stage = closed_stage,
};
