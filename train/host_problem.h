/* A problem small enough to be computed in double on the host, whatever the device is.
 * A kind gives one function of all weights in one array; the cut into stages, transfers
 * and gradient noise are here. */
#ifndef PL_TRAIN_HOST_PROBLEM_H
#define PL_TRAIN_HOST_PROBLEM_H

#include "train/problem.h"

struct pl_host_kind {
    /* Loss of the batch's samples at x[n]; batch NULL: exact, of everything. Unless g
     * is NULL: g[n] += its gradient, forward at x, backward at xb. */
    double (*evaluate)(void *self, const struct pl_batch *batch, const double *x,
                       const double *xb, double *g);
    void (*start)(void *self, uint64_t seed, double *x); /* initial weights */
    void (*free)(void *self);
    size_t (*bytes)(const void *self); /* that self holds */
};

/* A problem of the type without tensors yet; self is owned from now on (free). noise:
 * sd of the gaussian noise that each sample adds to each coordinate of the gradient, a
 * pure function of (seed, sample, coordinate); a batch has the mean of its samples'. */
struct pl_problem *pl_host_problem_new(const struct pl_problem_type *type,
                                       const struct pl_host_kind *kind, void *self,
                                       const struct pl_device *device, int P,
                                       int n_params, double noise);
/* The next tensor, stages in order: its numbers follow those before in x. */
void pl_host_problem_add(struct pl_problem *p, int stage, enum pl_param_kind kind,
                         int rows, int cols, const char *format, int number);
/* After the last: allocates. */
void pl_host_problem_finish(struct pl_problem *p);
void *pl_host_problem_self(const struct pl_problem *p);
/* The kind's function itself, as in struct pl_host_kind. */
double pl_host_problem_evaluate(struct pl_problem *p, const struct pl_batch *batch,
                                const double *x, const double *xb, double *g);

/* Members of struct pl_problem_type for these problems. */
int pl_host_init(struct pl_problem *p, uint64_t seed, float *const *weights);
int pl_host_gradient(struct pl_problem *p, const struct pl_batch *batch,
                     const float *const *wf, const float *const *wb, double scale,
                     float *const *grads, double *loss);
int pl_host_loss(struct pl_problem *p, const struct pl_batch *batch,
                 const float *const *weights, double *loss);
int pl_host_slope(struct pl_problem *p, const float *const *weights, double *norm,
                  double *dual);
void pl_host_free(struct pl_problem *p);
size_t pl_host_bytes(const struct pl_problem *p);

/* P stages of a problem with n parts: PL_ECONFIG naming them unless 1 <= P <= n. */
int pl_host_check_stages(int P, int n, const char *parts);
/* First of the n parts that stage s holds; the first n % P stages have one more. */
static inline int pl_host_first(int n, int P, int s)
{
    return n / P * s + (s < n % P ? s : n % P);
}
/* Sample of a training set of n that sample k of the batch is: with replacement. */
uint64_t pl_host_sample(const struct pl_batch *batch, int k, int n);

#endif
