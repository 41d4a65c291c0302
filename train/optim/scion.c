/* Scion: m = mu m + (1-mu) g (their "momentum" alpha is 1 - mu), u = eta rho d(m) + eta
 * decay w, where -d is the linear minimisation oracle of a norm's unit ball, rho its
 * radius, both chosen by kind of tensor; decay 1 is the constrained form (the weights
 * stay in the ball of radius rho), 0 the unconstrained one. X (m,n), eps = 1e-8:
 *   spectral  polar factor by Newton-Schulz times s = sqrt(m/n) (optimizer.scale);
 *             not normalized: sqrt(m)
 *   sign      sign(X) / n; not normalized: sign(X)
 *   colnorm   column / (its RMS + eps); normalized: / (n RMS + eps)
 *   rownorm   row / (||row|| sqrt(n) + eps); not normalized: / (||row|| + eps)
 *   token     colnorm of the transpose, for tables stored (vocabulary, width): row /
 *             (its RMS + eps); normalized: / (m RMS + eps)
 *   rms       X / (RMS(X) + eps), for vectors
 * Source: LIONS-EPFL/scion; Pethick et al., arXiv 2502.07529. Defaults: their GPT
 * recipe (hidden matrices spectral 50, embedding and head sign 3000). */
#include "train/optim/orthogonal.h"

#include <math.h>

static const double eps = 1e-8;

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    (void)o;
    return pl_param_size(p);
}

static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const size_t decay = pl_decay_scratch(o, p);
    const size_t norms = (size_t)(p->rows > p->cols ? p->rows : p->cols);
    return decay > norms ? decay : norms;
}

/* X divided, row by row or column by column, by s ||part|| + eps. */
static int divide(const struct pl_device *dev, const struct pl_param *p,
                  enum pl_along along, double s, float *X, float *norms)
{
    const struct pl_ratio_args args = {.along = along, .a = 1, .s = s, .eps = eps};
    int rc = dev->squares(along, p->rows, p->cols, 1, X, 0, norms);
    return rc ? rc : dev->ratio(p->rows, p->cols, &args, X, norms, X);
}

/* X <- d(X) but for a factor; of a spectral one X is the polar factor already. */
static int lmo(const struct pl_optim *o, const struct pl_device *dev,
               const struct pl_param *p, float *X, float *scratch, double *factor)
{
    const double m = p->rows, n = p->cols;
    const size_t size = pl_param_size(p);
    double square = 0;
    int rc;
    *factor = 1;
    switch (o->lmo[p->kind]) {
    case PL_LMO_SPECTRAL:
        *factor = o->normalized ? pl_shape_scale(o->scale, p) : sqrt(m);
        return 0;
    case PL_LMO_SIGN:
        if (o->normalized) *factor = 1 / n;
        return dev->sign(size, X, X);
    case PL_LMO_COLUMN:
        return divide(dev, p, PL_COLUMN, (o->normalized ? n : 1) / sqrt(m), X, scratch);
    case PL_LMO_ROW:
        return divide(dev, p, PL_ROW, o->normalized ? sqrt(n) : 1, X, scratch);
    case PL_LMO_TOKEN:
        return divide(dev, p, PL_ROW, (o->normalized ? m : 1) / sqrt(n), X, scratch);
    case PL_LMO_RMS:
        rc = dev->dot(size, X, X, &square);
        *factor = 1 / (sqrt(square / (double)size) + eps);
        return rc;
    }
    return 0;
}

static int finish(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *w, float *m, float *scratch,
                  double rate, float *u)
{
    (void)m;
    const double eta = rate * o->lr;
    double factor = 1;
    int rc = lmo(o, dev, p, u, scratch, &factor);
    factor *= eta * o->radius[p->kind];
    return rc ? rc
              : pl_optim_decay(o, dev, pl_param_size(p), eta, factor, w, u, scratch);
}

static struct pl_param polar(const struct pl_optim *o, const struct pl_param *p)
{
    struct pl_param X = *p;
    if (o->lmo[p->kind] != PL_LMO_SPECTRAL) X.rows = 0;
    return X;
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    (void)t;
    const size_t n = pl_param_size(p);
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = pl_optim_average(dev, n, o->momentum, g, m);
    if (!rc) rc = dev->copy(u, m, sizeof(float) * n);
    if (rc || o->lmo[p->kind] == PL_LMO_SPECTRAL) return rc;
    return finish(o, dev, p, w, m, scratch, rate, u);
}

const struct pl_optim_type pl_optim_scion = {
    .name = "scion",
    .summary = "steps to the edge of a norm ball, spectral for hidden matrices",
    .source = "LIONS-EPFL/scion, arXiv 2502.07529",
    .keys = PL_DECAY_KEYS PL_NS_KEYS
    "momentum scale lmo_hidden lmo_embed lmo_head lmo_vector radius_hidden "
    "radius_embed radius_head radius_vector normalized",
    .defaults = {.lr = 3.6e-4,
                 .decay = 1,
                 .momentum = .9,
                 .scale = PL_SCALE_RATIO,
                 .lmo = {PL_LMO_SPECTRAL, PL_LMO_SIGN, PL_LMO_SIGN, PL_LMO_RMS},
                 .radius = {50, 3000, 3000, 1},
                 .normalized = true},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
    .polar = polar,
    .finish = finish,
};
