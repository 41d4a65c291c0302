/* A problem small enough to be computed in double on the host, whatever the device is.
 * A kind gives one function of all weights in one array; the cut into stages, transfers
 * and gradient noise are here. */
#ifndef PL_TRAIN_HOST_PROBLEM_H
#define PL_TRAIN_HOST_PROBLEM_H

#include "train/problem.h"

struct pl_host_kind {
    /* Check the settings and make what the functions below are given. Errors:
     * PL_ECONFIG; nothing is left then. */
    int (*make)(const struct pl_problem_spec *spec, int P, void **self);
    /* pl_host_problem_add its tensors, stages in order. */
    void (*lay)(const void *self, struct pl_problem *p);
    /* Loss of the batch's samples at x[n]; batch NULL: exact, of everything. Unless g
     * is NULL: g[n] += its gradient, forward at x, backward at xb. */
    double (*evaluate)(void *self, const struct pl_batch *batch, const double *x,
                       const double *xb, double *g);
    void (*start)(void *self, uint64_t seed, double *x); /* initial weights */
    void (*free)(void *self);
    size_t (*bytes)(const void *self); /* that self holds */
};

/* The next tensor: its numbers follow those before in x. */
void pl_host_problem_add(struct pl_problem *p, int stage, enum pl_param_kind kind,
                         int rows, int cols, const char *format, int number);
void *pl_host_problem_self(const struct pl_problem *p);
/* The kind's function itself, as in struct pl_host_kind. */
double pl_host_problem_evaluate(struct pl_problem *p, const struct pl_batch *batch,
                                const double *x, const double *xb, double *g);

/* Members of struct pl_problem_type for these problems; type->kind is the struct
 * pl_host_kind. spec->noise: sd of the gaussian noise that each sample adds to each
 * coordinate of the gradient, a pure function of (seed, sample, coordinate); a batch
 * has the mean of its samples'. */
#define PL_HOST_PROBLEM                                                       \
    .open = pl_host_open, .init = pl_host_init, .gradient = pl_host_gradient, \
    .loss = pl_host_loss, .free = pl_host_free, .bytes = pl_host_bytes,       \
    .slope = pl_host_slope
int pl_host_open(const struct pl_problem_spec *spec, const struct pl_device *device,
                 int P, struct pl_problem **out);
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
/* How many it holds. */
static inline int pl_host_part(int n, int P, int s)
{
    return pl_host_first(n, P, s + 1) - pl_host_first(n, P, s);
}
/* Sample of a training set of n that sample k of the batch is: with replacement. */
uint64_t pl_host_sample(const struct pl_batch *batch, int k, int n);

#endif
