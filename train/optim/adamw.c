/* AdamW, bc = 1 - b^t:
 *   m += (1-b1) (g - m),  v = b2 v + (1-b2) g^2,
 *   u = eta/bc1 m / (sqrt(v)/sqrt(bc2) + eps) + eta decay w.
 * Source: torch.optim.AdamW; Loshchilov & Hutter, arXiv 1711.05101. */
#include "train/optim.h"

#include <math.h>

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return 2 * pl_param_size(p);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o, (void)p;
    return 0;
}

int pl_adamw_step(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *g, const float *w,
                  float *state, int64_t t, double eta, double decay, float *u)
{
    const size_t n = pl_param_size(p);
    const struct pl_adamw_args args = {.eta = eta,
                                       .decay = decay,
                                       .beta1 = o->beta1,
                                       .beta2 = o->beta2,
                                       .eps = o->eps,
                                       .bc1 = 1 - pow(o->beta1, (double)t),
                                       .bc2 = 1 - pow(o->beta2, (double)t)};
    return dev->adamw(n, &args, g, w, state, state + n, u);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)scratch;
    return pl_adamw_step(o, dev, p, g, w, state, t, rate * o->lr, o->decay, u);
}

const struct pl_optim_type pl_optim_adamw = {
    .name = "adamw",
    .summary = "Adam with decoupled weight decay",
    .source = "torch.optim.AdamW, arXiv 1711.05101",
    .beta1_is_momentum = true,
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
};
