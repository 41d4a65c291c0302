/* AdamW: m += (1-b1)(g-m), v = b2 v + (1-b2) g^2, u = eta/bc1 m / (sqrt(v)/sqrt(bc2) +
 * eps)
 * + eta decay w, bc = 1 - b^t. Source: torch.optim.AdamW; Loshchilov & Hutter,
 * arXiv 1711.05101. */
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

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)scratch;
    const size_t n = pl_param_size(p);
    const struct pl_adamw_args args = {.eta = rate * o->lr,
                                       .decay = o->decay,
                                       .beta1 = o->beta1,
                                       .beta2 = o->beta2,
                                       .eps = o->eps,
                                       .bc1 = 1 - pow(o->beta1, (double)t),
                                       .bc2 = 1 - pow(o->beta2, (double)t)};
    return dev->adamw(n, &args, g, w, state, state + n, u);
}

const struct pl_optim_type pl_optim_adamw = {"adamw",
                                             "Adam with decoupled weight decay",
                                             "torch.optim.AdamW, arXiv 1711.05101",
                                             state_floats,
                                             scratch_floats,
                                             step};
