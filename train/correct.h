/* Delay correctors, one knob c: x is what forward and backward read,
 * x[n+1] = x[n] - (1+c) u[n] + c u[n-1], with u[n] the update from the gradient that
 * update n consumes (tau updates old). c = 0 plain delay, beta Nesterov form, 1 error
 * feedback (arXiv 2606.30634), tau weight prediction. The same trajectory in y = x + c
 * u_last is y -= u[n], read at y - c u[n-1]: `prediction` stores y, the others x. A
 * corrector only names its c and which iterate is stored; the weight store
 * (train/wstore.h) applies them. */
#ifndef PL_TRAIN_CORRECT_H
#define PL_TRAIN_CORRECT_H

#include <stdbool.h>
#include <stdint.h>

enum pl_corrector_start { PL_START_ZERO, PL_START_HOLD };

struct pl_corrector_type {
    const char *name, *summary, *source;
    /* Coefficient for a stage with delay tau; given = corrector.c (NaN when not given),
     * beta = first-moment coefficient of the optimizer. */
    double (*c)(double given, double beta, int64_t tau);
    bool at_read; /* correct what forward and backward read instead of what is stored */
};

struct pl_corrector {
    const struct pl_corrector_type *type;
    double given; /* NaN: the type's own value */
    enum pl_corrector_start start;
};

extern const struct pl_corrector_type *const pl_corrector_types[]; /* NULL-terminated:
    none nesterov feedback prediction custom */
const char *const *pl_corrector_names(void);
const struct pl_corrector_type *pl_corrector_find(const char *name);

#endif
