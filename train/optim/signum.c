/* Signum: u = eta sign(d) + eta decay w, d the momentum m = mu m + (1-mu) g or, with
 * Nesterov, (1-mu) g + mu m. In the sum form of llm-baselines (epfml) m = mu m +
 * (1 - dampening) g and d = m or g + mu m; its m starts at the weights (a slip), here
 * at 0. Source: Bernstein et al., arXiv 1802.04434. */
#include "train/optim.h"

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return pl_param_size(p);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)t;
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = pl_optim_momentum(o, dev, n, g, m, u);
    if (!rc) rc = dev->sign(n, u, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, eta, w, u, scratch);
}

const struct pl_optim_type pl_optim_signum = {
    .name = "signum",
    .summary = "sign of the momentum",
    .source = "arXiv 1802.04434; epfml/llm-baselines",
    .keys = PL_DECAY_KEYS "momentum momentum_form nesterov dampening",
    .defaults = {.lr = 1e-3, .momentum = .9, .ema = true},
    .state_floats = state_floats,
    .scratch_floats = pl_decay_scratch,
    .step = step,
};
