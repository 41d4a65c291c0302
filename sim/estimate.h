/* From a configuration's model, parallel.* and cluster.* keys to what a pipeline's
 * chunks take: seconds of F, B, W and U, transfers between devices, bytes held. Owned:
 * pl_estimate_free. */
#ifndef PL_SIM_ESTIMATE_H
#define PL_SIM_ESTIMATE_H

#include "base/config.h"
#include "sim/cluster.h"
#include "sim/memory.h"
#include "sim/split.h"

struct pl_estimate {
    struct pl_model model;
    struct pl_parallel parallel;
    struct pl_microbatch batch;
    struct pl_cluster cluster;
    int chunks, devices;
    struct pl_chunk *chunk;              /* [chunks] its layers */
    double *forward, *backward, *weight; /* [chunks] seconds of one microbatch */
    double *update; /* [chunks] of one optimizer step; gradients' exchange included */
    /* [chunks] parts of those: of one microbatch exchange inside a stage (tp, ep, cp)
     * and recomputation; of one step the optimizer's rule, the rest is gradients'
     * exchange */
    double *exchange, *again, *rule;
    double *next, *prev;  /* [devices] one microbatch to device d + 1, d - 1 mod P */
    struct pl_route *hop; /* [2 * devices] its way: d to d + 1, devices + d to d - 1 */
    struct pl_chunk_bytes *bytes; /* [chunks] on one GPU */
    double boundary_bytes;        /* of one transfer, per GPU */
    int64_t gpus;                 /* of the whole job */
};

/* Errors: those of the parts; PL_ECONFIG when the job has more GPUs than the cluster:
 * the levels that would do are named. */
int pl_estimate_new(const struct pl_config *config, const struct pl_layout *layout,
                    struct pl_estimate *out);
void pl_estimate_free(struct pl_estimate *estimate);

/* Training throughput at a time per update of m microbatches. */
struct pl_throughput {
    double tokens_per_s_gpu;
    double mfu;    /* (6 N + 12 L d T) tokens / (GPUs peak time): pl_model_flops */
    double mfu_6n; /* 6 N only */
};
struct pl_throughput pl_estimate_throughput(const struct pl_estimate *estimate, int m,
                                            double step_s);

#endif
