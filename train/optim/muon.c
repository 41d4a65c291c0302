/* Muon: M = mu M + (1-mu) G, U = (1-mu) G + mu M (Nesterov; sum form: M = mu M + G,
 * U = G + mu M), O = polar factor of U by Newton-Schulz, u = eta s O + eta decay w with
 * s = sqrt(max(1, rows/cols)) (KellerJordan/Muon, torch.optim.Muon) or
 * 0.2 sqrt(max(rows, cols)) (Moonlight, arXiv 2502.16982). Decay takes the unscaled
 * rate, as in all references. Tensors that are not hidden matrices (optimizer.tensors)
 * take AdamW with aux_lr, aux_decay, beta1, beta2 and eps. torch.optim.Muon: ns_clamp.
 */
#include "train/optim/orthogonal.h"

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    if (!pl_optim_takes(o, p)) return 2 * pl_param_size(p);
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    return pl_param_size(&whole);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    if (!pl_optim_takes(o, p)) return pl_optim_scratch(o, p);
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    const size_t a = pl_orthogonal_scratch(o, &whole), b = pl_optim_scratch(o, &whole);
    return a > b ? a : b;
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *M,
                float *scratch, int64_t t, double rate, float *u)
{
    if (!pl_optim_takes(o, p))
        return pl_aux_step(o, o->beta1, o->beta2, dev, p, g, w, M, scratch, t, rate, u);
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    const size_t n = pl_param_size(&whole);
    if (n == 0) return 0; /* done with its q_proj */
    const double eta = rate * o->lr, scale = eta * pl_shape_scale(o->scale, &whole);
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = pl_optim_momentum(o, dev, n, g, M, u);
    if (!rc) rc = pl_orthogonalize(o, dev, &whole, u, scratch);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, scale, w, u, scratch);
}

const struct pl_optim_type pl_optim_muon = {
    .name = "muon",
    .summary = "orthogonalised momentum for hidden matrices, AdamW elsewhere",
    .source = "KellerJordan/Muon; Moonlight, arXiv 2502.16982",
    .keys = PL_DECAY_KEYS
    "tensors aux_lr aux_decay "
    "beta1 beta2 eps eps_form "
    "momentum momentum_form nesterov dampening scale coefficients ns_steps "
    "ns_eps ns_clamp fused_qkv",
    .defaults = {.lr = .02,
                 .decay = .1,
                 .aux_lr = 3e-3,
                 .aux_decay = .1,
                 .momentum = .95,
                 .nesterov = true,
                 .ema = true,
                 .beta1 = .9,
                 .beta2 = .95,
                 .eps = 1e-8},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
};
