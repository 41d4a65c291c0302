/* Approximate polar factors (U V^T of a matrix U S V^T) by odd polynomials, and the
 * exact one for checks. */
#ifndef PL_TRAIN_NEWTON_SCHULZ_H
#define PL_TRAIN_NEWTON_SCHULZ_H

#include "gpu/device.h"

/* A named set of coefficients: step i is X <- a X + (b A + c A^2) X, A = X X^T, with
 * the i-th row, or the last one when there are fewer. */
struct pl_ns_set {
    const char *name;
    int n; /* rows; 0: the exact polar factor by SVD */
    const double (*abc)[3];
    int steps;     /* iterations by default */
    double margin; /* X is divided by margin ||X|| + eps first */
    double eps;
    const char *source;
};

extern const struct pl_ns_set pl_ns_sets[];
extern const char *const pl_ns_names[]; /* auto, then those of the sets; NULL */

struct pl_ns {
    int coefficients; /* number in pl_ns_sets */
    int steps;        /* 0: the set's */
    double eps;       /* 0: the set's */
    bool clamp;       /* divide by max(margin ||X||, eps) (torch.optim.Muon) */
    bool bf16;        /* the input and every result rounded to bf16, products summed in
                         float (KellerJordan/Muon); else float throughout */
};

/* X[i] (m,n) <- its polar factor, about, for each i < count, to the bit as one by one;
 * products of all in one call of the device. scratch: pl_ns_scratch floats. Symmetric
 * products are computed by halves: a step takes 3 r^2 s + r^3 flops, r = min, s =
 * max(m,n). The exact one works in double on the host and allocates. */
int pl_newton_schulz(const struct pl_device *dev, const struct pl_ns *ns, int m, int n,
                     int count, float *const *X, float *scratch);
size_t pl_ns_scratch(const struct pl_ns *ns, int m, int n, int count);

#endif
