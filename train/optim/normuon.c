/* NorMuon: Muon whose orthogonalised update O (m,n) is divided by the root of a running
 * mean of its squares, one for each row when m >= n, else for each column:
 *   V = b2 V + (1-b2) mean(O^2), O' = O / sqrt(max(V, 1e-10)), O' = O' ||O|| / ||O'||,
 *   u = eta s O' + eta decay w; no bias correction.
 * Tensors that are not hidden matrices (optimizer.tensors) take AdamW with aux_lr,
 * aux_decay, aux_beta1 and aux_beta2. modded-nanogpt adds decay_form cautious and
 * decay_factor lr2. Source: Li et al., arXiv 2510.05491, in the form of
 * KellerJordan/modded-nanogpt. */
#include "train/optim/orthogonal.h"

#include <math.h>

static int longer(const struct pl_param *p)
{
    return p->rows > p->cols ? p->rows : p->cols;
}

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    if (!pl_optim_takes(o, p)) return 2 * pl_param_size(p);
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    return whole.rows ? pl_param_size(&whole) + (size_t)longer(&whole) : 0;
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    if (!pl_optim_takes(o, p)) return pl_optim_scratch(o, p);
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    const size_t a = pl_orthogonal_scratch(o, &whole), b = pl_optim_scratch(o, &whole);
    return a > b ? a : b;
}

/* *scale = ||O|| / ||O'||. */
static int normalize(const struct pl_optim *o, const struct pl_device *dev,
                     const struct pl_param *p, float *O, float *V, double *scale)
{
    const size_t n = pl_param_size(p);
    const bool rows = p->rows >= p->cols;
    const double mean = (1 - o->beta2) / (rows ? p->cols : p->rows);
    const struct pl_ratio_args args = {
        .along = rows ? PL_ROW : PL_COLUMN, .a = 1, .s = 1, .eps = 1e-5, .clamp = true};
    double before, after = 0;
    int rc = dev->dot(n, O, O, &before);
    if (!rc)
        rc = dev->squares(args.along, p->rows, p->cols, (float)mean, O, (float)o->beta2,
                          V);
    if (!rc) rc = dev->ratio(p->rows, p->cols, &args, O, V, O);
    if (!rc) rc = dev->dot(n, O, O, &after);
    *scale = after > 0 ? sqrt(before / after) : 1;
    return rc;
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *M,
                float *scratch, int64_t t, double rate, float *u)
{
    if (!pl_optim_takes(o, p))
        return pl_aux_step(o, o->aux_beta1, o->aux_beta2, dev, p, g, w, M, scratch, t,
                           rate, u);
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    const size_t n = pl_param_size(&whole);
    if (n == 0) return 0; /* done with its q_proj */
    const double eta = rate * o->lr;
    double scale = 1;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = pl_optim_momentum(o, dev, n, g, M, u);
    if (!rc) rc = pl_orthogonalize(o, dev, &whole, u, scratch);
    if (!rc) rc = normalize(o, dev, &whole, u, M + n, &scale);
    scale *= eta * pl_shape_scale(o->scale, &whole);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, scale, w, u, scratch);
}

const struct pl_optim_type pl_optim_normuon = {
    .name = "normuon",
    .summary = "Muon with rows (or columns) brought to one size, AdamW elsewhere",
    .source = "arXiv 2510.05491; KellerJordan/modded-nanogpt",
    .keys =
        PL_DECAY_KEYS "tensors aux_lr aux_decay "
                      "aux_beta1 aux_beta2 eps "
                      "eps_form momentum momentum_form nesterov dampening beta2 scale "
                      "coefficients ns_steps ns_eps ns_clamp fused_qkv",
    .defaults = {.lr = .02,
                 .decay = .1,
                 .aux_lr = 3e-3,
                 .aux_decay = .1,
                 .aux_beta1 = .9,
                 .aux_beta2 = .95,
                 .momentum = .95,
                 .nesterov = true,
                 .ema = true,
                 .beta2 = .95,
                 .eps = 1e-8},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
};
