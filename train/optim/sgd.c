/* SGD with momentum mu:
 *   m = mu m + g (sum form, torch; the first call sets m = g when first_copies) or
 *   m = mu m + (1-mu) g (EMA form, heavy ball of the theory);
 *   d = m, or with Nesterov g + mu m (EMA: (1-mu) g + mu m);
 *   u = eta d + eta decay w, or decay coupled: g + decay w before the momentum.
 * Source: torch.optim.SGD; Polyak 1964. */
#include "train/optim.h"

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    return o->momentum != 0 ? pl_param_size(p) : 0;
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o, (void)p;
    return 0;
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)scratch;
    const size_t n = pl_param_size(p);
    const double mu = o->momentum, in = o->ema ? 1 - mu : 1, eta = rate * o->lr;
    const bool nesterov = o->nesterov && mu != 0;
    int rc = 0;
    if (o->coupled) rc = dev->axpby(n, (float)o->decay, w, 1, g);
    if (!rc && mu != 0) {
        bool copies = o->first_copies && t == 1;
        rc = dev->axpby(n, copies ? 1 : (float)in, g, copies ? 0 : (float)mu, m);
    }
    if (rc) return rc;
    if (mu == 0)
        rc = dev->axpby(n, (float)(eta * in), g, 0, u);
    else
        rc = dev->axpby(n, (float)(nesterov ? eta * mu : eta), m, 0, u);
    if (!rc && nesterov) rc = dev->axpby(n, (float)(eta * in), g, 1, u);
    if (!rc && !o->coupled && o->decay != 0)
        rc = dev->axpby(n, (float)(eta * o->decay), w, 1, u);
    return rc;
}

const struct pl_optim_type pl_optim_sgd = {
    .name = "sgd",
    .summary = "stochastic gradient descent with momentum",
    .source = "torch.optim.SGD",
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
};
