/* AdamW, bc = 1 - b^t:
 *   m += (1-b1) (g - m),  v = b2 v + (1-b2) g^2,
 *   u = eta/bc1 m / (sqrt(v)/sqrt(bc2) + eps) + eta decay w;
 * eps uncorrected: eta sqrt(bc2)/bc1 m / (sqrt(v) + eps), under: eta/bc1 m /
 * sqrt(v/bc2 + eps).
 * Source: torch.optim.AdamW; Loshchilov & Hutter, arXiv 1711.05101. The default rate,
 * beta2 and decay are those of language models (torch: 1e-3, .999, .01). */
#include "train/optim.h"

#include <math.h>

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return 2 * pl_param_size(p);
}

/* eps under the root, which the device's own operation does not have. */
static int under(const struct pl_optim *o, const struct pl_device *dev,
                 const struct pl_adamw_args *args, const struct pl_adamw_tensor *x,
                 const struct pl_param *p)
{
    int rc = pl_optim_average(dev, x->n, o->beta1, x->g, x->m);
    if (!rc)
        rc = dev->mul(x->n, (float)(1 - o->beta2), x->g, x->g, (float)o->beta2, x->v);
    if (!rc) rc = dev->axpby(x->n, (float)(args->eta / args->bc1), x->m, 0, x->u);
    if (!rc) rc = pl_optim_divide(o, dev, p, args->bc2, x->v, x->u);
    if (rc || x->decay == 0) return rc;
    return dev->axpby(x->n, (float)(args->eta * x->decay), x->w, 1, x->u);
}

static struct pl_adamw_args args_of(const struct pl_optim *o, int64_t t, double eta)
{
    struct pl_adamw_args args = {.eta = eta,
                                 .beta1 = o->beta1,
                                 .beta2 = o->beta2,
                                 .eps = o->eps,
                                 .bc1 = 1 - pow(o->beta1, (double)t),
                                 .bc2 = 1 - pow(o->beta2, (double)t)};
    if (o->eps_form == PL_EPS_UNCORRECTED) args.eps /= sqrt(args.bc2);
    return args;
}

int pl_adamw_step(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *g, const float *w,
                  float *state, int64_t t, double eta, double decay, float *u)
{
    const size_t n = pl_param_size(p);
    const struct pl_adamw_args args = args_of(o, t, eta);
    const struct pl_adamw_tensor x = {n, decay, g, w, state, state + n, u};
    if (o->eps_form == PL_EPS_UNDER) return under(o, dev, &args, &x, p);
    return dev->adamw(1, &x, &args);
}

static bool plain(const struct pl_optim *o)
{
    return o->decay_form == PL_DECAY_BEFORE && o->decay_factor == PL_DECAY_LR;
}

bool pl_adamw_listed(const struct pl_optim *o)
{
    return plain(o) && o->eps_form != PL_EPS_UNDER;
}

int pl_adamw_list(const struct pl_optim *o, const struct pl_device *dev, int count,
                  const struct pl_adamw_tensor *list, int64_t t, double rate)
{
    const struct pl_adamw_args args = args_of(o, t, rate * o->lr);
    return dev->adamw(count, list, &args);
}

/* The device adds plain decay; other forms come after it. */
static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc)
        rc = pl_adamw_step(o, dev, p, g, w, state, t, eta, plain(o) ? o->decay : 0, u);
    return rc || plain(o) ? rc : pl_optim_decay(o, dev, n, eta, 1, w, u, scratch);
}

struct pl_optim pl_aux(const struct pl_optim *o)
{
    struct pl_optim a = *o;
    a.lr = o->aux_lr;
    a.decay = o->aux_decay;
    a.beta1 = o->aux_beta1;
    a.beta2 = o->aux_beta2;
    return a;
}

int pl_aux_step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u)
{
    const struct pl_optim a = pl_aux(o);
    return step(&a, dev, p, g, w, state, scratch, t, rate, u);
}

const struct pl_optim_type pl_optim_adamw = {
    .name = "adamw",
    .summary = "Adam with decoupled weight decay",
    .source = "torch.optim.AdamW, arXiv 1711.05101",
    .first_moment = PL_BETA1,
    .keys = PL_DECAY_KEYS "beta1 beta2 eps eps_form",
    .defaults = {.lr = 3e-3, .decay = .1, .beta1 = .9, .beta2 = .95, .eps = 1e-8},
    .state_floats = state_floats,
    .scratch_floats = pl_decay_scratch,
    .step = step,
};
