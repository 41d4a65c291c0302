/* Curvatures (or singular values) by name and numbers. Plain data, nothing to own. */
#ifndef PL_TRAIN_SPECTRUM_H
#define PL_TRAIN_SPECTRUM_H

#include <stdint.h>

enum pl_spectrum_kind {
    PL_SPECTRUM_LOG,      /* h_i = largest kappa^(-i/(n-1)) */
    PL_SPECTRUM_LINEAR,   /* h_i = largest (1 - (1 - 1/kappa) i/(n-1)) */
    PL_SPECTRUM_CONSTANT, /* h_i = largest */
    PL_SPECTRUM_POWER,    /* h_i = largest (i+1)^-power */
    PL_SPECTRUM_LIST      /* h_i = values[i] */
};
extern const char *const pl_spectrum_names[]; /* by kind, NULL-terminated */

struct pl_spectrum {
    enum pl_spectrum_kind kind;
    double largest, kappa, power;
    int n_values;
    const double *values; /* borrowed */
};

/* h[n]. Errors: PL_ECONFIG: a list of another length, a number that is not finite. */
int pl_spectrum_fill(const struct pl_spectrum *spectrum, int n, double *h);

/* (n,n), column i = eigenvector i: the orthogonal factor of the columns of
 * (1-amount) sqrt(n) I + amount G, G gaussian; amount 1 is Haar measure (Mezzadri,
 * arXiv math-ph/0609050), 0 gives NULL, which stands for the identity. Owned: free. */
double *pl_spectrum_basis(uint64_t seed, double amount, int n);

#endif
