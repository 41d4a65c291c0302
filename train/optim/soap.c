/* SOAP: Adam in the eigenbases of Shampoo's moments. First call: L = (1-bs) G G^T,
 * R = (1-bs) G^T G, Q_L, Q_R their eigenvectors; no update, and t stays 0. Then
 *   P = Q_L^T G Q_R,  m = b1 m + (1-b1) P,  v = b2 v + (1-b2) P^2  (kept in the bases),
 *   N = Q_L [sqrt(bc2)/bc1 m / (sqrt(v) + eps)] Q_R^T  (eps is not bias-corrected),
 *   s = eta N,  u = s + eta decay (w - s): decay comes after the step, on its result;
 *   L, R take G after the step; every `refresh` calls one power iteration and QR sort
 *   and turn the bases: v is permuted with them, m goes through the old coordinates.
 * normalize_grads: N / (1e-30 + rms N). A side longer than max_precond_dim has no
 * basis, nor has a vector without precondition_1d: Adam that loses its first gradient.
 * The reference adds 1e-30 I before it takes eigenvectors, which moves none of them.
 * Source: Vyas et al., arXiv 2409.11321; nikhilvyas/SOAP, soap.py. */
#include <math.h>

#include "train/optim/precondition.h"

static struct pl_sides sides_of(const struct pl_optim *o, const struct pl_param *p)
{
    const bool matrix = p->kind != PL_PARAM_VECTOR;
    return (struct pl_sides){
        .rows = p->rows,
        .cols = p->cols,
        .has = {matrix && p->rows <= o->max_precond_dim,
                (matrix || o->precondition_1d) && p->cols <= o->max_precond_dim}};
}

static int eigen_side(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_sides s = sides_of(o, p);
    return pl_sides_longest(&s);
}

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_sides s = sides_of(o, p);
    return 2 * pl_param_size(p) + 2 * pl_sides_floats(&s);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct pl_sides s = sides_of(o, p);
    return pl_sides_scratch(&s);
}

/* Factor of N in the step. */
static int step_size(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                     double eta, const float *N, double *factor)
{
    double square = 0;
    *factor = eta;
    if (!o->normalize_grads) return 0;
    int rc = dev->dot(n, N, N, &square);
    *factor /= 1e-30 + sqrt(square / (double)n);
    return rc;
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const double eta = rate * o->lr;
    float *v = m + n;
    struct pl_sides s = sides_of(o, p);
    s.dev = dev;
    pl_sides_place(&s, v + n, s.basis);
    pl_sides_place(&s, v + n + pl_sides_floats(&s), s.moment);
    /* Nothing reads the moments before the refresh, so they may take G first. */
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = pl_sides_observe(&s, g, pl_moment_beta(o));
    if (!rc && t == 1) rc = pl_sides_start(&s);
    if (rc || t == 1) return rc ? rc : dev->zero(u, sizeof(float) * n);
    double factor;
    rc = pl_sides_rotate(&s, g, scratch, g);
    if (!rc) rc = pl_adam_direction(o, dev, p, g, t - 1, m, v, u);
    if (!rc) rc = pl_sides_return(&s, u, scratch, u);
    if (!rc) rc = step_size(o, dev, n, eta, u, &factor);
    if (!rc) rc = pl_optim_decay(o, dev, n, eta, factor, w, u, scratch);
    if (rc || (t - 1) % o->refresh) return rc;
    rc = pl_sides_return(&s, m, scratch, g);
    if (!rc) rc = pl_sides_refresh(&s, v, scratch);
    return rc ? rc : pl_sides_rotate(&s, g, scratch, m);
}

const struct pl_optim_type pl_optim_soap = {
    .name = "soap",
    .summary =
        "Adam in the eigenbases of G G^T and G^T G, refreshed by power iteration",
    .source = "nikhilvyas/SOAP, arXiv 2409.11321",
    .first_moment = PL_BETA1,
    .keys = PL_DECAY_KEYS "beta1 beta2 eps eps_form moment_beta "
                          "bias_correction refresh max_precond_dim precondition_1d "
                          "normalize_grads",
    .defaults = {.lr = 3e-3,
                 .decay = .01,
                 .decay_form = PL_DECAY_AFTER,
                 .beta1 = .95,
                 .beta2 = .95,
                 .eps = 1e-8,
                 .eps_form = PL_EPS_UNCORRECTED,
                 .moment_beta = -1,
                 .bias_correction = true,
                 .refresh = 10,
                 .max_precond_dim = 10000},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
    .eigen_side = eigen_side,
};
