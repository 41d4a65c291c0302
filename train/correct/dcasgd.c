/* Delay-compensated gradient, a diagonal Taylor step from where g was taken to the
 * weights that it meets: g + lambda g * g * (w_now - w_then) (elementwise products),
 * the outer product of g standing for the curvature. lambda:
 *   dcasgd           .04
 *   dcasgd_adaptive  2 / sqrt(M + 1e-7),  M = .95 M + .05 g * g
 * w_then is the oldest version that the group's forwards read.
 * Source: Zheng et al., arXiv 1609.08326; MXNet's dcasgd (constant form). */
#include "train/correct.h"

/* out = g * g * (now - then). */
static int taylor(const struct pl_grad_args *a, const float *g, float *out)
{
    const struct pl_device *dev = a->device;
    int rc = dev->copy(out, a->now, sizeof(float) * a->n);
    if (!rc) rc = dev->axpby(a->n, -1, a->then, 1, out);
    if (!rc) rc = dev->mul(a->n, 1, out, g, 0, out);
    return rc ? rc : dev->mul(a->n, 1, out, g, 0, out);
}

static int constant(const struct pl_corrector *self, const struct pl_grad_args *a,
                    float *g)
{
    if (a->tau == 0) return 0;
    int rc = taylor(a, g, a->scratch);
    if (rc) return rc;
    return a->device->axpby(a->n, (float)pl_corrector_lambda(self), a->scratch, 1, g);
}

static int adaptive(const struct pl_corrector *self, const struct pl_grad_args *a,
                    float *g)
{
    int rc = a->device->mul(a->n, .05f, g, g, .95f, a->state);
    if (!rc && a->tau) rc = taylor(a, g, a->scratch);
    const struct pl_ratio_args by = {.along = PL_EACH,
                                     .a = pl_corrector_lambda(self),
                                     .b = 1,
                                     .s = 1,
                                     .under = 1e-7};
    return rc || !a->tau ? rc
                         : pl_ratio_each(a->device, a->n, &by, a->scratch, a->state, g);
}

const struct pl_corrector_type pl_corrector_dcasgd = {
    .name = "dcasgd",
    .summary = "Taylor compensation of the gradient, lambda .04",
    .source = "arXiv 1609.08326",
    .grad = constant,
    .lambda = .04,
};

const struct pl_corrector_type pl_corrector_dcasgd_adaptive = {
    .name = "dcasgd_adaptive",
    .summary = "the same, lambda 2 over the gradient's running RMS",
    .source = "arXiv 1609.08326",
    .grad = adaptive,
    .keeps_state = true,
    .lambda = 2,
};
