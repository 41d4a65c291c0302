/* What optimizers share: decay in its forms, momentum, averages, Adam's quotient. */
#include "train/optim.h"

#include <math.h>

bool pl_optim_takes(const struct pl_optim *o, const struct pl_param *p)
{
    if (p->kind == PL_PARAM_MATRIX) return true;
    return p->kind == PL_PARAM_VECTOR ? o->tensors == PL_TENSORS_ALL
                                      : o->tensors != PL_TENSORS_HIDDEN;
}

int pl_optim_couple(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                    const float *w, float *g)
{
    if (o->decay_form != PL_DECAY_COUPLED || o->decay == 0) return 0;
    return dev->axpby(n, (float)o->decay, w, 1, g);
}

double pl_optim_decay_rate(const struct pl_optim *o, double eta)
{
    const double share = o->lr > 0 ? eta / o->lr : 0; /* of the peak rate */
    if (o->decay_form == PL_DECAY_COUPLED || o->decay == 0) return 0;
    switch (o->decay_factor) {
    case PL_DECAY_LR2:
        return eta * eta * o->decay;
    case PL_DECAY_CORRECTED:
        return eta * share * o->decay;
    case PL_DECAY_INDEPENDENT:
        return share * o->decay;
    case PL_DECAY_CONSTANT:
        return o->decay;
    case PL_DECAY_LR:
        break;
    }
    return eta * o->decay;
}

/* u += k w where u w >= 0, that is k w (1 - (s^2 - s) / 2) with s = sign(u w). */
static int cautious(const struct pl_device *dev, size_t n, float k, const float *w,
                    float *u, float *s)
{
    int rc = dev->mul(n, 1, u, w, 0, s);
    if (!rc) rc = dev->sign(n, s, s);
    if (!rc) rc = dev->mul(n, -.5f, s, s, .5f, s); /* 0, or -1 where they disagree */
    if (!rc) rc = dev->axpby(n, k, w, 1, u);
    return rc ? rc : dev->mul(n, k, w, s, 1, u);
}

int pl_optim_decay(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                   double eta, double scale, const float *w, float *u, float *scratch)
{
    const double k = pl_optim_decay_rate(o, eta);
    if (k == 0) return scale == 1 ? 0 : dev->axpby(n, 0, u, (float)scale, u);
    switch (o->decay_form) {
    case PL_DECAY_AFTER:
        return dev->axpby(n, (float)k, w, (float)((1 - k) * scale), u);
    case PL_DECAY_PROXIMAL:
        return dev->axpby(n, (float)(k / (1 + k)), w, (float)(scale / (1 + k)), u);
    case PL_DECAY_CAUTIOUS: {
        int rc = scale == 1 ? 0 : dev->axpby(n, 0, u, (float)scale, u);
        return rc ? rc : cautious(dev, n, (float)k, w, u, scratch);
    }
    case PL_DECAY_BEFORE:
    case PL_DECAY_COUPLED:
        break;
    }
    return dev->axpby(n, (float)k, w, (float)scale, u);
}

size_t pl_decay_scratch(const struct pl_optim *o, const struct pl_param *p)
{
    return o->decay_form == PL_DECAY_CAUTIOUS ? pl_param_size(p) : 0;
}

int pl_optim_momentum(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                      const float *g, float *M, float *u)
{
    const double mu = o->momentum, in = o->ema ? 1 - mu : 1 - o->dampening;
    const float ahead[] = {o->nesterov ? (float)mu : 1, o->ema ? (float)in : 1};
    const float *const both[] = {M, g};
    int rc = dev->axpby(n, (float)in, g, (float)mu, M);
    return rc ? rc : dev->blend(n, o->nesterov ? 2 : 1, ahead, both, u);
}

int pl_optim_average(const struct pl_device *dev, size_t n, double b, const float *x,
                     float *y)
{
    return dev->axpby(n, (float)(1 - b), x, (float)b, y);
}

int pl_optim_divide(const struct pl_optim *o, const struct pl_device *dev,
                    const struct pl_param *p, double bc2, const float *v, float *u)
{
    const double root = sqrt(bc2);
    const struct pl_ratio_args args = {
        .along = PL_EACH,
        .a = 1,
        .s = 1 / root,
        .eps = o->eps_form == PL_EPS_CORRECTED     ? o->eps
               : o->eps_form == PL_EPS_UNCORRECTED ? o->eps / root
                                                   : 0,
        .under = o->eps_form == PL_EPS_UNDER ? o->eps * bc2 : 0};
    return dev->ratio(p->rows, p->cols, &args, u, v, u);
}
