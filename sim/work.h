/* What one block of a model does for one microbatch on one GPU of its tp x cp (x ep)
 * group: matrix products, memory traffic, bytes held, bytes exchanged. Numbers only: no
 * speed of any machine. Plain data; flops and bytes are doubles (exact below 2^53).
 *
 * Conventions: bf16 weights and activations (2 bytes), fp32 gradients (grad_16: 2
 * bytes) and optimizer state (4 bytes a word, one word of master weights), a
 * multiply-add is 2 flops, causal attention counts in full, experts are evenly loaded.
 */
#ifndef PL_SIM_WORK_H
#define PL_SIM_WORK_H

#include "sim/parallel.h"
#include "sim/weights.h"

enum { PL_MAX_GEMMS = 20, PL_MAX_COMMS = 40 };

/* count products [M, K] x [K, N] in the forward pass: 2 M N K flops each. Backward of a
 * weight: input gradient [M, N] x [N, K], weight gradient [K, M] x [M, N]. Backward of
 * attention: two products for its one, both input gradients. */
struct pl_gemm {
    const char *name;
    double M, N, K, count;
    bool attention; /* no weight */
};

/* R: the forward once more, before B, with full recomputation */
enum pl_phase { PL_PHASE_F, PL_PHASE_B, PL_PHASE_W, PL_PHASE_R };
enum pl_comm_group { PL_GROUP_TP, PL_GROUP_EP, PL_GROUP_CP };
enum pl_comm_kind {
    PL_COMM_ALL_REDUCE,     /* bytes: the buffer */
    PL_COMM_ALL_GATHER,     /* bytes: the gathered result */
    PL_COMM_REDUCE_SCATTER, /* bytes: the input */
    PL_COMM_ALL_TO_ALL,     /* bytes: what a GPU sends, its own share included */
    PL_COMM_SEND            /* bytes: to the neighbour in the ring */
};

/* count exchanges, each of these bytes. The weight gradient's all-gathers (phase W, sp:
 * the saved input is 1/tp of a sequence) overlap the input gradient in Megatron. */
struct pl_comm {
    enum pl_comm_kind kind;
    enum pl_comm_group group;
    enum pl_phase phase;
    double count, bytes;
};

struct pl_work {
    int n_gemms, n_comms;
    struct pl_gemm gemm[PL_MAX_GEMMS];
    struct pl_comm comm[PL_MAX_COMMS];

    /* flops of matrix products */
    double forward_flops;
    double attention_flops; /* the part of forward_flops without weights */
    double input_flops;     /* B; fused attention computes its scores once more */
    double weight_flops;    /* W */
    double recompute_flops; /* before B */

    /* bytes read and written by what is not a matrix product: norms, activation
     * functions, residuals, rotation, softmax that is not fused, optimizer excluded */
    double forward_traffic, backward_traffic, recompute_traffic;

    /* held all the time */
    double params;        /* on this GPU */
    double expert_params; /* the part that is replicated cp dp / ep times, not cp dp */
    double weight_bytes, gradient_bytes, optimizer_bytes;

    /* held for a microbatch */
    double act_bytes;  /* from F to B */
    double kept_bytes; /* from B to W: inputs and output gradients of the matrices */
    double live_bytes; /* while the block itself is in B: act_bytes without
                        * recomputation */
};

/* Persistent fp32 words a parameter beside the master copy, for a matrix [in, out] of a
 * block (hidden) or any other tensor; in 0: a vector
 * of out elements. Errors: PL_EUNSUP for an unknown optimizer. */
int pl_optimizer_words(const char *optimizer, int64_t in, int64_t out, bool hidden,
                       double *words);

/* parallel and batch are checked (pl_parallel_check). optimizer as in optimizer.name. A
 * tied head has the table's weights, too: a stage that also has the embedding holds
 * them once. Errors: PL_EUNSUP (optimizer). */
int pl_work_block(const struct pl_model *model, const struct pl_parallel *parallel,
                  const struct pl_microbatch *batch, enum pl_block block,
                  const char *optimizer, struct pl_work *out);

/* Add count times from to sum: everything but the lists; live_bytes is the maximum. */
void pl_work_add(struct pl_work *sum, const struct pl_work *from, double count);

/* Bytes that a GPU sends to the next stage for one microbatch: 2 s b h / cp, / tp with
 * sp or scatter_gather. */
double pl_work_boundary(const struct pl_model *model,
                        const struct pl_parallel *parallel,
                        const struct pl_microbatch *batch);

#endif
