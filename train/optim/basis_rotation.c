/* Basis rotation: Adam in bases that follow the Hessian's, so that the axes on which
 * Adam adapts are those on which curvature lies; delay costs less there. For hidden
 * matrices:
 *   M = b1 M + (1-b1) G;
 *   L = bs L + (1-bs) G G^T, R = bs R + (1-bs) G^T G (rotation_source second), or
 *   L = M M^T, R = M^T M at a refresh (first);
 *   U, V: at the first call the eigenvectors of L and R, every `refresh` calls turned
 *   by one power iteration and QR; one_sided: the shorter side alone;
 *   G~ = U^T G V, M~ = U^T M V (which is what is kept), V~ = b2 V~ + (1-b2) G~^2,
 *   u = eta U [sqrt(bc2)/bc1 M~ / (sqrt(V~) + eps)] V^T + eta decay w.
 * The paper writes sqrt(V~ + eps) and no bias correction: eps_form under,
 * bias_correction no. All other tensors take AdamW with the same settings, eps
 * corrected. Against SOAP: G counts in the basis that meets it, and no first gradient
 * is lost. Against the published code: with rotation_source first that takes U from
 * the QR of M V, half a power iteration (one-sided: of M itself, none), and its
 * one-sided form refreshes at every call where rows >= cols.
 * Source: Jung, Shin and Lee, arXiv 2602.03515, algorithms 1 and 2; their repository
 * basis-rotation, optim/basis_rotation.py and optim/optimizer.py. */
#include "train/optim/precondition.h"

static struct pl_sides sides_of(const struct pl_optim *o, const struct pl_param *p)
{
    const bool left = p->rows < p->cols;
    return (struct pl_sides){.rows = p->rows,
                             .cols = p->cols,
                             .has = {!o->one_sided || left, !o->one_sided || !left}};
}

static int eigen_side(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_sides s = sides_of(o, p);
    return p->kind == PL_PARAM_MATRIX ? pl_sides_longest(&s) : 0;
}

static bool by_momentum(const struct pl_optim *o)
{
    return o->rotation_source == PL_ROTATE_FIRST;
}

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    if (p->kind != PL_PARAM_MATRIX) return 2 * pl_param_size(p);
    const struct pl_sides s = sides_of(o, p);
    return 2 * pl_param_size(p) + (by_momentum(o) ? 1 : 2) * pl_sides_floats(&s);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    if (p->kind != PL_PARAM_MATRIX) return pl_decay_scratch(o, p);
    const struct pl_sides s = sides_of(o, p);
    return pl_sides_scratch(&s) + (by_momentum(o) ? pl_sides_floats(&s) : 0);
}

/* The moments take G, or M as G will make it; the bases follow when due; m = M~ with
 * them. G is kept, u is free. */
static int follow(const struct pl_optim *o, const struct pl_sides *s, const float *G,
                  float *m, float *v, float *scratch, int64_t t, float *u)
{
    const size_t n = (size_t)s->rows * (size_t)s->cols;
    int rc = by_momentum(o) ? 0 : pl_sides_observe(s, G, pl_moment_beta(o));
    if (rc || (t > 1 && t % o->refresh)) return rc;
    rc = pl_sides_return(s, m, scratch, u);
    if (!rc && by_momentum(o)) {
        rc = s->dev->copy(scratch, u, sizeof(float) * n);
        if (!rc) rc = pl_optim_average(s->dev, n, o->beta1, G, scratch);
        if (!rc) rc = pl_sides_observe(s, scratch, 0);
    }
    if (!rc) rc = t == 1 ? pl_sides_start(s) : pl_sides_refresh(s, v, scratch);
    return rc ? rc : pl_sides_rotate(s, u, scratch, m);
}

static int plain_step(const struct pl_optim *o, const struct pl_device *dev,
                      const struct pl_param *p, float *g, const float *w, float *state,
                      float *scratch, int64_t t, double rate, float *u)
{
    struct pl_optim a = *o;
    a.aux_lr = o->lr;
    a.aux_decay = o->decay;
    a.aux_beta1 = o->beta1;
    a.aux_beta2 = o->beta2;
    a.eps_form = PL_EPS_CORRECTED;
    return pl_aux_step(&a, dev, p, g, w, state, scratch, t, rate, u);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    if (p->kind != PL_PARAM_MATRIX)
        return plain_step(o, dev, p, g, w, m, scratch, t, rate, u);
    float *v = m + n, *rest = scratch;
    struct pl_sides s = sides_of(o, p);
    s.dev = dev;
    pl_sides_place(&s, v + n, s.basis);
    if (by_momentum(o)) {
        pl_sides_place(&s, scratch, s.moment);
        rest += pl_sides_floats(&s);
    } else {
        pl_sides_place(&s, v + n + pl_sides_floats(&s), s.moment);
    }
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = follow(o, &s, g, m, v, rest, t, u);
    if (!rc) rc = pl_sides_rotate(&s, g, rest, g);
    if (!rc) rc = pl_adam_direction(o, dev, p, g, t, m, v, u);
    if (!rc) rc = pl_sides_return(&s, u, rest, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, eta, w, u, rest);
}

const struct pl_optim_type pl_optim_basis_rotation = {
    .name = "basis-rotation",
    .summary = "Adam in rotated bases that follow the Hessian's, AdamW elsewhere",
    .source = "LOG-postech/basis-rotation, arXiv 2602.03515",
    .first_moment = PL_BETA1,
    .keys = PL_DECAY_KEYS "beta1 beta2 eps eps_form moment_beta "
                          "bias_correction refresh rotation_source one_sided",
    .defaults = {.lr = 3e-3,
                 .decay = .01,
                 .beta1 = .95,
                 .beta2 = .95,
                 .eps = 1e-8,
                 .eps_form = PL_EPS_UNCORRECTED,
                 .moment_beta = -1,
                 .bias_correction = true,
                 .refresh = 10},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
    .eigen_side = eigen_side,
};
