/* Muon: M = mu M + (1-mu) G, U = (1-mu) G + mu M (Nesterov; sum form: M = mu M + G,
 * U = G + mu M), O = polar factor of U by Newton-Schulz, u = eta s O + eta decay w with
 * s = sqrt(max(1, rows/cols)) (KellerJordan/Muon, torch.optim.Muon) or
 * 0.2 sqrt(max(rows, cols)) (Moonlight, arXiv 2502.16982). Decay takes the unscaled
 * rate, as in all references. torch.optim.Muon: ns_clamp.
 * NorMuon: O (m,n) is divided by the root of a running mean of its squares, one for
 * each row when m >= n, else for each column, before s:
 *   V = b2 V + (1-b2) mean(O^2), O' = O / sqrt(max(V, 1e-10)), O' = O' ||O|| / ||O'||;
 *   no bias correction. modded-nanogpt adds decay_form cautious and decay_factor lr2
 *   (Li et al., arXiv 2510.05491, in the form of KellerJordan/modded-nanogpt).
 * Tensors that are not hidden matrices (optimizer.tensors) take AdamW with aux_lr,
 * aux_decay, aux_beta1, aux_beta2 and eps. */
#include <math.h>

#include "train/optim/orthogonal.h"

static size_t momentum_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    return pl_param_size(&whole);
}

static size_t level_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    const int longer = whole.rows > whole.cols ? whole.rows : whole.cols;
    return whole.rows ? pl_param_size(&whole) + (size_t)longer : 0;
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    return pl_decay_scratch(o, &whole);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *M,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)scratch, (void)t, (void)rate;
    const size_t n = momentum_floats(o, p);
    if (n == 0) return 0; /* done with its q_proj */
    int rc = pl_optim_couple(o, dev, n, w, g);
    return rc ? rc : pl_optim_momentum(o, dev, n, g, M, u);
}

/* NorMuon's O <- O / sqrt(max(V, 1e-10)); *scale = ||O|| / ||O'||. */
static int level(const struct pl_optim *o, const struct pl_device *dev,
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

/* u <- eta s factor u + eta decay w. */
static int scaled(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, double factor, const float *w,
                  float *scratch, double rate, float *u)
{
    const double eta = rate * o->lr;
    return pl_optim_decay(o, dev, pl_param_size(p), eta,
                          factor * (eta * pl_shape_scale(o->scale, p)), w, u, scratch);
}

static int finish(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *w, float *M, float *scratch,
                  double rate, float *u)
{
    (void)M;
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    return scaled(o, dev, &whole, 1, w, scratch, rate, u);
}

static int finish_level(const struct pl_optim *o, const struct pl_device *dev,
                        const struct pl_param *p, const float *w, float *M,
                        float *scratch, double rate, float *u)
{
    const struct pl_param whole = pl_orthogonal_whole(o, p);
    double factor = 1;
    int rc = level(o, dev, &whole, u, M + pl_param_size(&whole), &factor);
    return rc ? rc : scaled(o, dev, &whole, factor, w, scratch, rate, u);
}

#define KEYS                             \
    PL_DECAY_KEYS PL_AUX_KEYS PL_NS_KEYS \
        "eps eps_form momentum momentum_form nesterov dampening scale fused_qkv"
#define DEFAULTS                                                              \
    .lr = .02, .decay = .1, .aux_lr = 3e-3, .aux_decay = .1, .aux_beta1 = .9, \
    .aux_beta2 = .95, .momentum = .95, .nesterov = true, .ema = true, .eps = 1e-8

const struct pl_optim_type pl_optim_muon = {
    .name = "muon",
    .summary = "orthogonalised momentum for hidden matrices, AdamW elsewhere",
    .source = "KellerJordan/Muon; Moonlight, arXiv 2502.16982",
    .partial = true,
    .keys = KEYS,
    .defaults = {DEFAULTS},
    .state_floats = momentum_floats,
    .scratch_floats = scratch_floats,
    .step = step,
    .polar = pl_orthogonal_whole,
    .finish = finish,
};

const struct pl_optim_type pl_optim_normuon = {
    .name = "normuon",
    .summary = "Muon with rows (or columns) brought to one size, AdamW elsewhere",
    .source = "arXiv 2510.05491; KellerJordan/modded-nanogpt",
    .partial = true,
    .keys = KEYS " beta2",
    .defaults = {DEFAULTS, .beta2 = .95},
    .state_floats = level_floats,
    .scratch_floats = scratch_floats,
    .step = step,
    .polar = pl_orthogonal_whole,
    .finish = finish_level,
};
