/* Muon: M = mu M + (1-mu) G, U = (1-mu) G + mu M (Nesterov; sum form: M = mu M + G,
 * U = G + mu M), O = NewtonSchulz(U), u = eta s O + eta decay w with
 * s = sqrt(max(1, rows/cols)) (KellerJordan/Muon) or 0.2 sqrt(max(rows, cols))
 * (Moonlight, arXiv 2502.16982). Tensors that are not hidden matrices take AdamW with
 * aux_lr and aux_decay. */
#include "train/optim.h"

#include <math.h>

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return (p->kind == PL_PARAM_MATRIX ? 1 : 2) * pl_param_size(p);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    if (p->kind != PL_PARAM_MATRIX) return 0;
    size_t r = (size_t)(p->rows < p->cols ? p->rows : p->cols);
    return 2 * r * r + pl_param_size(p);
}

static double shape_scale(const struct pl_optim *o, const struct pl_param *p)
{
    double m = p->rows, n = p->cols;
    return o->scale ? 0.2 * sqrt(fmax(m, n)) : sqrt(fmax(1, m / n));
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *M,
                float *scratch, int64_t t, double rate, float *u)
{
    if (p->kind != PL_PARAM_MATRIX)
        return pl_adamw_step(o, dev, p, g, w, M, t, rate * o->aux_lr, o->aux_decay, u);
    const size_t n = pl_param_size(p);
    const double mu = o->momentum, in = o->ema ? 1 - mu : 1, eta = rate * o->lr;
    int rc = dev->axpby(n, (float)in, g, (float)mu, M);
    if (!rc) rc = dev->axpby(n, o->nesterov ? (float)mu : 1, M, 0, u);
    if (!rc && o->nesterov) rc = dev->axpby(n, (float)in, g, 1, u);
    if (!rc) rc = pl_newton_schulz(dev, p->rows, p->cols, o->ns_steps, u, scratch);
    /* Decay takes the unscaled rate, as all references do. */
    if (!rc)
        rc = dev->axpby(n, (float)(eta * o->decay), w, (float)(eta * shape_scale(o, p)),
                        u);
    return rc;
}

const struct pl_optim_type pl_optim_muon = {
    .name = "muon",
    .summary = "orthogonalised momentum for hidden matrices, AdamW elsewhere",
    .source = "KellerJordan/Muon; Moonlight, arXiv 2502.16982",
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
};
