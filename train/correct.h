/* Delay correctors. Three iterates, u[n] = update made of the gradient that update n
 * consumes (tau updates old):
 *   e[n]   = b e[n-1] + (1-b) u[n]       the direction of travel (b = 0: the last u)
 *   y[n+1] = y[n] - u[n]                 (momentum: y[n+1] = y[n] - e[n])
 *   x[n+1] = y[n+1] - c e[n]             what forward reads
 * so that for b = 0: x[n+1] = x[n] - (1+c) u[n] + c u[n-1]. c = 0 is plain delay, beta
 * the Nesterov form, 1 error feedback (arXiv 2606.30634), tau weight prediction; b > 0
 * looks along a smoothed direction (arXiv 2605.25395). A corrector says c and b of a
 * stage in an update, which iterate is stored (x, or y: at_read), and may change the
 * gradient before the optimizer sees it. It writes no weights: the weight store
 * (train/wstore.h) does. How the rate depends on the delay is the rate's matter
 * (train/optim.h), for every corrector alike. */
#ifndef PL_TRAIN_CORRECT_H
#define PL_TRAIN_CORRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/device.h"

enum pl_corrector_start { PL_START_ZERO, PL_START_HOLD };

struct pl_corrector_type;

/* A corrector with its settings; NaN: the type's own value. */
struct pl_corrector {
    const struct pl_corrector_type *type;
    double given; /* c */
    enum pl_corrector_start start;
    const double *stage_c; /* [stages] c of each, before `given`; borrowed, or NULL */
    double smooth;         /* b */
    bool land;             /* its stretch starts from y of the one before, not x */
    bool gate;             /* c times max(0, cos(u[n], e[n-1])) */
    double lambda;         /* strength of a correction of the gradient */
};

/* What a look-ahead may depend on; delays are those of the stage in the stretch. */
struct pl_look_args {
    int stage, stages, m;
    int64_t n;            /* update, from 0 at the start of the run */
    int64_t tau;          /* largest */
    double tau_mean;      /* mean of forward's */
    double tau_back_mean; /* of backward's; forward's unless nostash */
    double beta;          /* first-moment coefficient of the optimizer */
};

struct pl_look {
    double c;      /* x[n+1] = y[n+1] - c e[n]; NaN: must be given */
    double c_back; /* nostash: backward reads y - c_back e of the version live then */
    double smooth; /* b of update n */
};

/* One stage's gradient, after clipping. Device memory, n floats each. */
struct pl_grad_args {
    const struct pl_device *device;
    size_t n;
    const float *now, *then; /* x at the newest version, and where g was taken */
    const float *last;       /* e of the update before; NULL when nothing keeps it */
    float *state;            /* n floats with keeps_state; zero at first */
    float *scratch, *spare;  /* n floats each */
    int64_t tau, update;
    int64_t seen; /* updates of the stretch whose step `last` has been */
};

struct pl_corrector_type {
    const char *name, *summary, *source;
    /* c_back and smooth come in as c and as 0; NULL: c = 0. */
    void (*look)(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out);
    bool at_read;  /* y is stored, and corrected when read */
    bool momentum; /* y[n+1] = y[n] - e[n] */
    bool fixed_c;  /* look has the last word on c: no stage_c, and given is its own */
    /* g <- corrected gradient; NULL: none. */
    int (*grad)(const struct pl_corrector *self, const struct pl_grad_args *args,
                float *g);
    bool keeps_state; /* grad has a float of state for each weight */
    bool keeps_last;  /* grad reads `last` */
    double lambda;    /* default of grad's */
};

extern const struct pl_corrector_type *const pl_corrector_types[]; /* NULL-terminated */
const char *const *pl_corrector_names(void);
const struct pl_corrector_type *pl_corrector_find(const char *name);

/* Does it read the setting corrector.NAME? */
bool pl_corrector_reads(const struct pl_corrector_type *type, const char *name);

/* A corrector with the type's own settings but c (NaN: its own too) and start. */
struct pl_corrector pl_corrector_make(const char *name, double c,
                                      enum pl_corrector_start start);
/* The look-ahead of a stage in an update, with every setting that was given. */
struct pl_look pl_corrector_look(const struct pl_corrector *self,
                                 const struct pl_look_args *args);
/* For grad: the device's ratio over n floats of any number. */
int pl_ratio_each(const struct pl_device *dev, size_t n,
                  const struct pl_ratio_args *args, const float *x, const float *v,
                  float *y);
/* corrector.lambda, or the type's. */
double pl_corrector_lambda(const struct pl_corrector *self);

#endif
