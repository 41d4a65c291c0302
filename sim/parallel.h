/* How one pipeline stage is spread over GPUs, and what is recomputed. Plain data. */
#ifndef PL_SIM_PARALLEL_H
#define PL_SIM_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "sim/model.h"

enum pl_recompute {
    PL_RECOMPUTE_NONE,
    PL_RECOMPUTE_SELECTIVE, /* the attention scores (Megatron core_attn) */
    PL_RECOMPUTE_FULL       /* the whole layer from its input */
};

struct pl_parallel {
    int tp, ep, cp, dp; /* tensor, expert, context, data; ep divides cp * dp */
    bool sp;            /* sequence parallelism over the tp group */
    int zero;           /* 0, or 1: optimizer state divided over cp * dp (experts:
                         * cp * dp / ep), as Megatron's distributed optimizer */
    enum pl_recompute recompute;
    bool flash;          /* fused attention: scores are not stored */
    bool grad_16;        /* gradients of 2 bytes (Megatron's --fp16 without
                          * --accumulate-allreduce-grads-in-fp32, DeepSpeed's fp16) */
    bool fuse_gradients; /* the product of a weight gradient adds to the sum itself */
    bool scatter_gather; /* without sp: stages exchange 1/tp of the boundary (SC'21) */
};

/* A microbatch: b sequences of s tokens. */
struct pl_microbatch {
    int64_t b, s;
};

/* From parallel.*; both outputs are checked against the model. */
int pl_parallel_read(const struct pl_config *config, const struct pl_model *model,
                     struct pl_parallel *out, struct pl_microbatch *batch);
/* Divisibility. Errors: PL_ECONFIG naming the keys. */
int pl_parallel_check(const struct pl_parallel *parallel, const struct pl_model *model,
                      const struct pl_microbatch *batch);
/* GPUs of a pipeline of P stages: P tp cp dp. */
int64_t pl_parallel_gpus(const struct pl_parallel *parallel, int P);

#endif
