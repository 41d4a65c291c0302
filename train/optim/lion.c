/* Lion: u = eta sign(b1 m + (1-b1) g) + eta decay w, then m = b2 m + (1-b2) g; no bias
 * correction, so the first step is a whole one. cautious c < 1: where the sign and g
 * disagree it counts c, and all is divided by the mean of these factors (1e-5 at
 * least). Source: Chen et al., arXiv 2302.06675; google/automl; lucidrains/lion-pytorch
 * (cautious_factor; its decoupled option is decay_factor independent). */
#include "train/optim.h"

#include <math.h>

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return pl_param_size(p);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    return o->cautious < 1 ? pl_param_size(p) : pl_decay_scratch(o, p);
}

/* u *= (c + (1-c) A) / mean(c + (1-c) A), A = 1 where u g > 0, else 0. */
static int damp(const struct pl_device *dev, size_t n, double c, const float *g,
                float *u, float *A)
{
    double agree = 0;
    int rc = dev->mul(n, 1, u, g, 0, A);
    if (!rc) rc = dev->sign(n, A, A);
    if (!rc) rc = dev->mul(n, .5f, A, A, .5f, A);
    if (!rc) rc = dev->dot(n, A, A, &agree);
    const double mean = fmax(c + (1 - c) * agree / (double)n, 1e-5);
    return rc ? rc : dev->mul(n, (float)((1 - c) / mean), u, A, (float)(c / mean), u);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)t;
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = dev->axpby(n, (float)o->beta1, m, 0, u);
    if (!rc) rc = dev->axpby(n, (float)(1 - o->beta1), g, 1, u);
    if (!rc) rc = dev->sign(n, u, u);
    if (!rc && o->cautious < 1) rc = damp(dev, n, o->cautious, g, u, scratch);
    if (!rc) rc = pl_optim_average(dev, n, o->beta2, g, m);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, eta, w, u, scratch);
}

const struct pl_optim_type pl_optim_lion = {
    .name = "lion",
    .summary = "sign of a mix of momentum and gradient",
    .source = "google/automl, arXiv 2302.06675",
    .first_moment = PL_BETA2,
    .keys = PL_DECAY_KEYS "beta1 beta2 cautious",
    .defaults = {.lr = 1e-4, .beta1 = .9, .beta2 = .99, .cautious = 1},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
};
