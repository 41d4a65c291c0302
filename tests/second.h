/* What the tests of SOAP, Shampoo and basis rotation share: devices, a tensor in
 * training, gradients, distances. */
#ifndef TESTS_SECOND_H
#define TESTS_SECOND_H

#include "train/optim.h"

/* ref, host, and a stand-in for a device with memory of its own, on which everything
 * that the CPU does goes through download and upload. */
enum { N_DEVICES = 3 };
const struct pl_device *second_device(int i);

/* The rule's defaults with lr .1, no decay, beta .9 and .95, a refresh at every call.
 */
struct pl_optim second_options(const char *rule);

struct tensor { /* owned: tensor_free */
    const struct pl_device *dev;
    struct pl_optim o;
    struct pl_param p;
    float *w, *g, *u, *state, *scratch; /* w and state from 0 */
    int64_t t;
};
struct tensor tensor_new(const struct pl_device *dev, const struct pl_optim *options,
                         int rows, int cols, enum pl_param_kind kind);
void tensor_free(struct tensor *x);
/* One update by gradient g; scratch and u hold NaN before it. Returns step's code. */
int tensor_step(struct tensor *x, const double *g);

/* Shape of most tests, and gradient t of a run: a random matrix with a common part. */
enum { M = 5, N = 4, MN = M * N, STEPS = 6 };
void gradient(int t, double *g);

/* |a - b| / |b|, and the same of two tensors' weights. */
double relative(const float *a, const double *b, size_t n);
double apart(const struct tensor *a, const struct tensor *b);

#endif
