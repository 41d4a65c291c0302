/* PipeDream-2BW: 1F1B without flush, two weight versions: group g reads version g - 1
 * on every stage, so tau = 1 everywhere (groups 0 and 1 read version 0).
 *   time per update m (F + BW) + U  (c = 0);  weight versions 2;  activations P - s
 * m >= P: with fewer, forwards of group g start before update g - 2 can have happened.
 * Source: Narayanan et al., ICML 2021 (arXiv 2006.09503). */
#include "base/err.h"
#include "sim/schedules/emit.h"

static int check(const struct pl_shape *shape)
{
    if (shape->m >= shape->P) return PL_OK;
    return pl_fail(
        PL_EUNSUP,
        "2bw with m = %d microbatches per update on P = %d stages: expected m >= "
        "P, or P microbatches in flight would need more than two weight versions",
        shape->m, shape->P);
}

static int64_t reads(const struct pl_shape *shape, int chunk, int64_t group)
{
    (void)shape;
    (void)chunk;
    return group > 0 ? group - 1 : 0;
}

static void closed_stage(const struct pl_shape *shape, int stage, int64_t *tau_min,
                         int64_t *tau_max, int64_t *weight_versions,
                         int64_t *peak_activations)
{
    *tau_min = *tau_max = 1;
    *weight_versions = 2;
    *peak_activations = shape->P - stage;
}

const struct pl_schedule_type pl_schedule_2bw = {
    .name = "2bw",
    .summary = "no flush, double-buffered weights, delay 1 on every stage",
    .source = "arXiv 2006.09503",
    .async = true,
    .global_version = true,
    .check = check,
    .emit = pl_emit_no_flush,
    .op_at = pl_op_no_flush,
    .reads = reads,
    .closed = pl_closed_no_flush,
    .closed_stage = closed_stage,
};
