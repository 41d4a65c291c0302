/* MARS: c = g + gamma b1/(1-b1) (g - g_before), g_before = 0 at
 * first, c <- c / max(1, ||c||) tensor by tensor, m = b1 m + (1-b1) c, and
 *   mars          v = b2 v + (1-b2) c^2, u = eta m/bc1 / (sqrt(v)/sqrt(bc2) + eps)
 *   mars-lion     u = eta sign(m)
 *   mars-shampoo  u = eta s O, O the polar factor of m/(1-b1) by Newton-Schulz,
 *                 s = sqrt(max(1, rows/cols))
 * + eta decay w, for every matrix, embedding and head included. Vectors
 * (optimizer.tensors) take AdamW with aux_lr, aux_decay, aux_beta1 and aux_beta2 (the
 * code's lr_1d, ...). g_before is a copy of the gradient as it came: that of the batch
 * before (approximate mode); where the delay changes, g - g_before spans the jump once.
 * exact: the gradient of this batch at the weights of the update before, clipped like
 * any, which train/run_ahead.c takes while those weights are there. Under delay they
 * are the ones that the gradient of the update before was taken at, stage by stage:
 * what a worker has that sees stale weights, so that noise cancels at any delay. The
 * code takes c^2 for v, its README says g^2. Source: AGI-Arena/MARS; Yuan et al., arXiv
 * 2411.10438. */
#include "train/optim/orthogonal.h"

#include <math.h>

static size_t two(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return 2 * pl_param_size(p);
}

static size_t three(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return 3 * pl_param_size(p);
}

/* g <- c; last <- g unless the loop puts there what it is next. u is free. */
static int correct(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                   float *g, float *last, float *u)
{
    const double k = o->gamma * o->beta1 / (1 - o->beta1);
    double square = 0;
    int rc = dev->copy(u, last, sizeof(float) * n);
    if (!rc && !o->exact) rc = dev->copy(last, g, sizeof(float) * n);
    if (!rc) rc = dev->axpby(n, (float)-k, u, (float)(1 + k), g);
    if (!rc) rc = dev->dot(n, g, g, &square);
    if (rc || !(square > 1)) return rc;
    return dev->axpby(n, 0, g, (float)(1 / sqrt(square)), g);
}

static int adamw(const struct pl_optim *o, const struct pl_device *dev,
                 const struct pl_param *p, float *g, const float *w, float *state,
                 float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = correct(o, dev, n, g, state + 2 * n, u);
    if (!rc) rc = pl_adamw_step(o, dev, p, g, w, state, t, eta, 0, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, 1, w, u, scratch);
}

static int momentum(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                    float *g, const float *w, float *m, float *u)
{
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = correct(o, dev, n, g, m + n, u);
    return rc ? rc : pl_optim_average(dev, n, o->beta1, g, m);
}

static int lion(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)t;
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    int rc = momentum(o, dev, n, g, w, m, u);
    if (!rc) rc = dev->sign(n, m, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, eta, w, u, scratch);
}

static int shampoo(const struct pl_optim *o, const struct pl_device *dev,
                   const struct pl_param *p, float *g, const float *w, float *m,
                   float *scratch, int64_t t, double rate, float *u)
{
    (void)scratch, (void)t, (void)rate;
    const size_t n = pl_param_size(p);
    int rc = momentum(o, dev, n, g, w, m, u);
    return rc ? rc : dev->axpby(n, (float)(1 / (1 - o->beta1)), m, 0, u);
}

static struct pl_param itself(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return *p;
}

static int finish(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *w, float *m, float *scratch,
                  double rate, float *u)
{
    (void)m;
    const double eta = rate * o->lr;
    return pl_optim_decay(o, dev, pl_param_size(p), eta,
                          eta * pl_shape_scale(o->scale, p), w, u, scratch);
}

#define SHARED                                                              \
    .source = "AGI-Arena/MARS, arXiv 2411.10438", .first_moment = PL_BETA1, \
    .partial = true, .scratch_floats = pl_decay_scratch
#define KEYS PL_DECAY_KEYS PL_AUX_KEYS "eps eps_form gamma exact beta1 "
#define DEFAULTS                                                                 \
    .lr = 3e-3, .tensors = PL_TENSORS_MATRICES, .aux_lr = 3e-3, .aux_decay = .1, \
    .aux_beta1 = .9, .aux_beta2 = .95, .beta1 = .95, .beta2 = .99, .eps = 1e-8,  \
    .gamma = .025

const struct pl_optim_type pl_optim_mars = {
    SHARED,
    .name = "mars",
    .summary = "AdamW on variance-reduced gradients (mars-adamw)",
    .keys = KEYS "beta2",
    .defaults = {DEFAULTS},
    .ahead = 2,
    .state_floats = three,
    .step = adamw,
};

const struct pl_optim_type pl_optim_mars_lion = {
    SHARED,
    .name = "mars-lion",
    .summary = "sign of the momentum of variance-reduced gradients",
    .keys = KEYS,
    .defaults = {DEFAULTS},
    .ahead = 1,
    .state_floats = two,
    .step = lion,
};

const struct pl_optim_type pl_optim_mars_shampoo = {
    SHARED,
    .name = "mars-shampoo",
    .summary = "orthogonalised momentum of variance-reduced gradients",
    .keys = KEYS PL_NS_KEYS "scale",
    .defaults = {DEFAULTS, .ns_eps = 1e-8},
    .ahead = 1,
    .state_floats = two,
    .step = shampoo,
    .polar = itself,
    .finish = finish,
};
