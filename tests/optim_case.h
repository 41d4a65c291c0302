/* What the tests of the optimizers share: three steps of a rule on a small tensor. */
#ifndef TESTS_OPTIM_CASE_H
#define TESTS_OPTIM_CASE_H

#include <check.h>
#include <math.h>

#include "base/rng.h"
#include "tests/runner.h"
#include "train/optim.h"

enum { CASE_STEPS = 4, CASE_SIZE = 6 };

/* Weights at the start, gradients, and weights after each step. */
struct optim_case {
    const char *name; /* of the rule */
    struct pl_optim o;
    int rows, cols;
    enum pl_param_kind kind;
    double w0[CASE_SIZE], g[CASE_STEPS][CASE_SIZE], want[CASE_STEPS][CASE_SIZE];
};

/* The vector and the matrix of the golden numbers, three gradients each. */
#define CASE_VECTOR              \
    {1, -2},                     \
    {                            \
        {.5, -.25}, {-.25, .75}, \
        {                        \
            2, 1                 \
        }                        \
    }
#define CASE_MATRIX                                             \
    {.5, -.25, .1, .2, .3, -.4},                                \
    {                                                           \
        {.3, -.1, .2, .4, -.5, .1}, {-.2, .6, .1, -.3, .4, .2}, \
        {                                                       \
            .7, .1, -.3, .2, .05, -.6                           \
        }                                                       \
    }

/* Weights after each of `steps` steps of the rule with these options; rate multiplies.
 * first: state before the first step, NULL 0. */
void optim_case_run(const struct optim_case *c, const struct pl_optim *options,
                    double rate, int steps, const float *first,
                    float out[CASE_STEPS][CASE_SIZE]);

/* ||a - b|| / ||b|| */
double relative(const float *a, const float *b, size_t n);
void random_matrix(int m, int n, uint64_t seed, float *X);
/* The rule's own defaults. */
struct pl_optim optim_defaults(const char *name);

#endif
