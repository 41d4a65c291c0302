/* Adan, d = g - g_before (0 at the first step), bc_i = 1 - b_i^t:
 *   m = b1 m + (1-b1) g,  D = b2 D + (1-b2) d,  n = b3 n + (1-b3) (g + b2 d)^2,
 *   s = eta (m/bc1 + b2 D/bc2) / (sqrt(n)/sqrt(bc3) + eps),
 *   w <- (w - s) / (1 + eta decay) (decay_form proximal), or w (1 - eta decay) - s
 *   (before; no_prox). The code's betas are 1 minus the paper's.
 * Its max_grad_norm is clip.norm. d is a difference of neighbouring gradients: where
 * the delay changes it spans the jump, which fades with b2. Source: sail-sg/Adan; Xie
 * et al., arXiv 2208.06677. */
#include "train/optim.h"

#include <math.h>

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return 4 * pl_param_size(p);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr, bc1 = 1 - pow(o->beta1, (double)t),
                 bc2 = 1 - pow(o->beta2, (double)t), bc3 = 1 - pow(o->beta3, (double)t);
    float *m = state, *D = m + n, *v = D + n, *last = v + n;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = dev->axpby(n, t == 1 ? 0 : 1, g, t == 1 ? 0 : -1, last); /* d */
    if (!rc) rc = pl_optim_average(dev, n, o->beta1, g, m);
    if (!rc) rc = pl_optim_average(dev, n, o->beta2, last, D);
    if (!rc) rc = dev->axpby(n, 1, g, (float)o->beta2, last);
    if (!rc) rc = dev->mul(n, (float)(1 - o->beta3), last, last, (float)o->beta3, v);
    if (!rc) rc = dev->copy(last, g, sizeof(float) * n);
    if (!rc) rc = dev->axpby(n, (float)(eta / bc1), m, 0, u);
    if (!rc) rc = dev->axpby(n, (float)(eta * o->beta2 / bc2), D, 1, u);
    if (!rc) rc = pl_optim_divide(o, dev, p, bc3, v, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, 1, w, u, scratch);
}

const struct pl_optim_type pl_optim_adan = {
    .name = "adan",
    .summary = "adaptive Nesterov momentum with the difference of gradients",
    .source = "sail-sg/Adan, arXiv 2208.06677",
    .first_moment = PL_BETA1,
    .keys = PL_DECAY_KEYS "beta1 beta2 beta3 eps eps_form",
    .defaults = {.lr = 1e-3,
                 .decay_form = PL_DECAY_PROXIMAL,
                 .beta1 = .98,
                 .beta2 = .92,
                 .beta3 = .99,
                 .eps = 1e-8},
    .state_floats = state_floats,
    .scratch_floats = pl_decay_scratch,
    .step = step,
};
