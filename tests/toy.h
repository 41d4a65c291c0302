/* A small problem for tests of the training loop: coordinates on stages, on a
 * host-memory device, loss(x) = mean over the batch's samples k of sum_i h/2 (x_i -
 * noise z_ki)^2 + q/4 x_i^4, z standard normal, a pure function of (seed, k, i). It
 * records the weights it was given. */
#ifndef PL_TESTS_TOY_H
#define PL_TESTS_TOY_H

#include "train/run.h"

struct toy {
    double h, noise, q;
    int width;        /* floats per stage */
    int64_t n_reads;  /* gradient calls */
    float *reads;     /* [n_reads][stages][width] forward weights of each */
    float *backs;     /* the same, backward weights */
    float *last;      /* [stages][width] weights of the latest loss call */
    int64_t *first;   /* [n_reads] index of the batch's first sample */
    int *B;           /* [n_reads] */
    int delay_us;     /* sleep in every gradient */
    int64_t nan_from; /* gradient call from which the loss is NaN, -1: never */
    int64_t inf_from; /* the same for an infinite gradient under a finite loss */
};

/* stages x (rows, cols) tensors; kind MATRIX or VECTOR. */
struct pl_problem *toy_new(const struct pl_device *dev, int stages, int rows, int cols,
                           enum pl_param_kind kind, double h, double noise, double q);
struct toy *toy_of(const struct pl_problem *p);
void toy_free(struct pl_problem *p);

/* A spec for it: sgd lr 0.05 (no momentum), constant rate, no clip, one segment `none`,
 * evaluation at start and end; versions and segments are the caller's. */
struct pl_run_spec toy_spec(struct pl_problem *p, const struct pl_versions *v,
                            const struct pl_segment *segment);
struct pl_segment toy_segment(const char *corrector, double c,
                              enum pl_corrector_start start, int64_t updates);

#endif
