/* SGD with momentum mu:
 *   m = mu m + (1 - dampening) g (sum form, torch; the first call sets m = g) or
 *   m = mu m + (1-mu) g (EMA form, heavy ball of the theory);
 *   d = m, or with Nesterov g + mu m (EMA: (1-mu) g + mu m);
 *   u = eta d; decay is coupled, g + decay w, by default.
 * Source: torch.optim.SGD; Polyak 1964. */
#include "train/optim.h"

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    return o->momentum != 0 ? pl_param_size(p) : 0;
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double mu = o->momentum, in = o->ema ? 1 - mu : 1, eta = rate * o->lr;
    const bool nesterov = o->nesterov && mu != 0;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc && mu != 0) {
        bool copies = o->first_copies && !o->ema && t == 1;
        double taken = o->ema ? in : 1 - o->dampening;
        rc = dev->axpby(n, copies ? 1 : (float)taken, g, copies ? 0 : (float)mu, m);
    }
    if (rc) return rc;
    if (mu == 0)
        rc = dev->axpby(n, (float)(eta * in), g, 0, u);
    else
        rc = dev->axpby(n, (float)(nesterov ? eta * mu : eta), m, 0, u);
    if (!rc && nesterov) rc = dev->axpby(n, (float)(eta * in), g, 1, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, 1, w, u, scratch);
}

const struct pl_optim_type pl_optim_sgd = {
    .name = "sgd",
    .summary = "stochastic gradient descent with momentum",
    .source = "torch.optim.SGD",
    .keys = PL_DECAY_KEYS "momentum momentum_form nesterov dampening",
    .defaults = {.lr = 3e-3,
                 .decay = .1,
                 .decay_form = PL_DECAY_COUPLED,
                 .momentum = .95,
                 .nesterov = true,
                 .first_copies = true},
    .state_floats = state_floats,
    .scratch_floats = pl_decay_scratch,
    .step = step,
};
