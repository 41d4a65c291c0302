/* A-priori bound on the mean dual gradient norm of a delayed LMO method (bound.c
 * has the formula). */
#ifndef PL_THEORY_BOUND_H
#define PL_THEORY_BOUND_H

#include <stdbool.h>

struct pl_bound_input {
    double delta;      /* f(x_0) - inf f */
    double L;          /* smoothness in the block norm */
    double sigma;      /* noise: E||xi||_2^2 <= sigma^2 */
    double rho;        /* dual norm <= rho * 2-norm */
    double eta, alpha; /* rate; alpha = 1 - beta in (0,1] */
    double T;          /* applied updates */
    double tau, c;     /* delay in updates, look-ahead */
    bool nesterov;     /* direction (1-alpha) m + alpha g */
    double s_lo, s_hi; /* inexact LMO; 1, 1 when exact */
    double A, B;       /* displacements; NaN: worst case from tau and c */
    double decay;      /* decoupled decay (Frank-Wolfe form) or 0 */
};

struct pl_bound_terms {
    double start, drift, noise; /* the three terms */
    double total; /* bound on the mean of E||grad f(y_t)||_* (or of the gap) */
    double A, B;  /* used */
};

/* Errors: PL_ECONFIG naming the value out of range (c >= 0; eta * decay <= 1; decay
 * needs the exact LMO). */
int pl_bound(const struct pl_bound_input *input, struct pl_bound_terms *out);

/* Rate and momentum that minimise the bound for given delay and horizon; input's eta
 * and alpha are not read. The rate is at most 1/decay, alpha at least 1e-9. Errors as
 * above, and PL_ECONFIG when delta or L is 0 (there is no finite best rate). */
int pl_bound_best(const struct pl_bound_input *input, double *eta, double *alpha,
                  struct pl_bound_terms *out);

#endif
