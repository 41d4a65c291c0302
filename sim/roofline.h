/* How long a block of a model takes on one GPU of a cluster: its matrix products by a
 * roofline with the size of the product, everything else by memory traffic, exchanges
 * by the collective model. Seconds, doubles; nothing is owned. */
#ifndef PL_SIM_ROOFLINE_H
#define PL_SIM_ROOFLINE_H

#include "sim/cluster_place.h"
#include "sim/work.h"

struct pl_roofline {
    const struct pl_model *model;
    const struct pl_parallel *parallel;
    const struct pl_microbatch *batch;
    const struct pl_cluster *cluster;
    const struct pl_place *place;
    int rank;  /* whose groups count: the first of a stage */
    bool clip; /* the gradient is clipped by its norm (clip.norm) */
};

/* count products [M, K] x [K, N] of bf16 with fp32 accumulation, run as one batch. */
double pl_roofline_gemm(const struct pl_gpu *gpu, double M, double N, double K,
                        double count);

struct pl_block_time {
    double forward;  /* F */
    double backward; /* B: input gradient, and what recomputation repeats before it */
    double weight;   /* W: weight gradient */
    /* inside those, seconds of F, B and W together: */
    double exchange; /* tp, ep and cp, without what recomputation repeats */
    double again;    /* recomputation, its exchanges included */
};

/* Errors: those of the collectives. */
int pl_roofline_block(const struct pl_roofline *roofline, enum pl_block block,
                      struct pl_block_time *out);

/* One optimizer step of a block: the rule's own traffic and the new bf16 weights for
 * each parameter that this rank updates, and the rule's matrix products. optimizer: one
 * of pl_update_rules but the first, "auto". Errors: PL_EUNSUP (optimizer). */
struct pl_update_time {
    double per_param, matrices; /* seconds */
};
extern const char *const pl_update_rules[]; /* NULL-terminated */
int pl_roofline_update(const struct pl_roofline *roofline, enum pl_block block,
                       const char *optimizer, struct pl_update_time *out);

#endif
