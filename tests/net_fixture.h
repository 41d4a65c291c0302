/* A decoder with its weights, gradients and one batch on a device, for the net's tests.
 * Everything is owned by the fixture: fixture_free. */
#ifndef PL_TESTS_NET_FIXTURE_H
#define PL_TESTS_NET_FIXTURE_H

#include "train/problem.h"

struct fixture {
    struct pl_problem *p;
    float **weights, **grads; /* [stages] device blocks */
    struct pl_batch batch;
    int32_t *tokens, *targets;
};

extern const struct pl_model tiny; /* hidden 8, 2 heads of 4, kv 1, ffn 12, vocab 11 */

/* init weights with seed 1; random tokens. */
void fixture_open(struct fixture *f, const struct pl_device *device,
                  const struct pl_model *model, int P, int B, int T);
void fixture_free(struct fixture *f);

/* Replace matrices by N(0, sd) and gains by 1 + N(0, sd): gradients of ordinary size.
 */
void fixture_scatter(struct fixture *f, double sd);

double fixture_loss(struct fixture *f);
/* Adds scale times the gradient, read at the weights; the loss. */
double fixture_gradient(struct fixture *f, double scale);
void fixture_zero_grads(struct fixture *f);

/* Tensor i of blocks, in host memory; caller frees. */
float *fixture_get(const struct fixture *f, float *const *blocks, int i);
void fixture_set(struct fixture *f, int i, const float *x);
/* Number of the tensor with that name. */
int fixture_find(const struct fixture *f, const char *name);

#endif
