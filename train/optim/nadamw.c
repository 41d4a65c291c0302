/* Adam with Nesterov's look ahead; m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, then
 *   u = (A g + B m) / (sqrt(v)/sqrt(1 - b2^t) + eps) + eta decay w.
 * Three rules have the name NAdamW, no two of them equal:
 *   torch     mu_t = b1 (1 - .96^(psi t) / 2), P = mu_1 ... mu_t,
 *             A = eta (1 - mu_t) / (1 - P), B = eta mu_(t+1) / (1 - P mu_(t+1)):
 *             torch.optim.NAdam with decoupled_weight_decay (Dozat 2016)
 *   algoperf  A = eta (1-b1) / (1 - b1^t), B = eta b1 / (1 - b1^t): AlgoPerf, timm
 *   optax     A = eta (1-b1) / (1 - b1^t), B = eta b1 / (1 - b1^(t+1)): optax, levanter
 * nadam is torch's without the flag: decay coupled. psi = momentum_decay, 4e-3 in
 * torch; large psi makes mu_t = b1. Ajanthan et al. (arXiv 2505.01099) take torch's
 * with b1 = .99 against delay. */
#include "train/optim.h"

#include <math.h>

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return 2 * pl_param_size(p);
}

static double mu(const struct pl_optim *o, int64_t t)
{
    return o->beta1 * (1 - 0.5 * pow(0.96, (double)t * o->momentum_decay));
}

/* mu_1 ... mu_t; 0 once that is below the precision of 1 - P. */
static double product(const struct pl_optim *o, int64_t t)
{
    double p = 1;
    for (int64_t i = 1; i <= t && p > 0; i++) {
        p *= mu(o, i);
        if (p < 1e-18) p = 0;
    }
    return p;
}

static void factors(const struct pl_optim *o, int64_t t, double *of_g, double *of_m)
{
    const double b1 = o->beta1, bc = 1 - pow(b1, (double)t);
    *of_g = (1 - b1) / bc;
    *of_m = b1 / bc;
    if (o->nadam_form == PL_NADAM_OPTAX) *of_m = b1 / (1 - pow(b1, (double)t + 1));
    if (o->nadam_form == PL_NADAM_TORCH) {
        const double P = product(o, t), next = mu(o, t + 1);
        *of_g = (1 - mu(o, t)) / (1 - P);
        *of_m = next / (1 - P * next);
    }
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    float *v = m + n;
    double of_g, of_m;
    factors(o, t, &of_g, &of_m);
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = pl_optim_average(dev, n, o->beta1, g, m);
    if (!rc) rc = dev->mul(n, (float)(1 - o->beta2), g, g, (float)o->beta2, v);
    if (!rc) rc = dev->axpby(n, (float)(eta * of_g), g, 0, u);
    if (!rc) rc = dev->axpby(n, (float)(eta * of_m), m, 1, u);
    if (!rc) rc = pl_optim_divide(o, dev, p, 1 - pow(o->beta2, (double)t), v, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, 1, w, u, scratch);
}

#define KEYS                                             \
    PL_DECAY_KEYS "beta1 beta2 eps eps_form nadam_form " \
                  "momentum_decay"

const struct pl_optim_type pl_optim_nadamw = {
    .name = "nadamw",
    .summary = "Adam with Nesterov momentum and decoupled decay, in three forms",
    .source = "torch.optim.NAdam (decoupled); AlgoPerf; optax",
    .first_moment = PL_BETA1,
    .keys = KEYS,
    .defaults =
        {.lr = 2e-3, .beta1 = .9, .beta2 = .999, .eps = 1e-8, .momentum_decay = 4e-3},
    .state_floats = state_floats,
    .scratch_floats = pl_decay_scratch,
    .step = step,
};

const struct pl_optim_type pl_optim_nadam = {
    .name = "nadam",
    .summary = "Adam with Nesterov momentum and L2 decay in the gradient",
    .source = "torch.optim.NAdam; Dozat 2016",
    .first_moment = PL_BETA1,
    .keys = KEYS,
    .defaults = {.lr = 2e-3,
                 .decay_form = PL_DECAY_COUPLED,
                 .beta1 = .9,
                 .beta2 = .999,
                 .eps = 1e-8,
                 .momentum_decay = 4e-3},
    .state_floats = state_floats,
    .scratch_floats = pl_decay_scratch,
    .step = step,
};
