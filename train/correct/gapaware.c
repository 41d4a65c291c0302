/* Gap-aware: every coordinate of a late gradient is divided by how many average steps
 * the weights have moved since: g / (1 + |w_now - w_then| / (C + eps)), C the running
 * RMS of the coordinate's steps, C^2 = .999 C^2 + .001 u^2 with bias correction, eps
 * 1e-8. w_then is the oldest version that the group's forwards read.
 * Source: Barkai, Hakimi, Schuster, arXiv 1909.10802; C as in FTPipe's code, with the
 * optimizer's own last step for eta times the momentum. */
#include <math.h>

#include "train/correct.h"

static const double keep = .999, eps = 1e-8;

static int divide(const struct pl_corrector *self, const struct pl_grad_args *a,
                  float *g)
{
    (void)self;
    if (!a->last || a->seen == 0) return 0;
    const struct pl_device *dev = a->device;
    const double bc = 1 - pow(keep, (double)a->seen);
    const struct pl_ratio_args steps = {
        .along = PL_EACH, .a = 1, .s = 1 / sqrt(bc), .eps = eps};
    const struct pl_ratio_args whole = {.along = PL_EACH, .a = 1, .s = 1, .eps = 1};
    float *gap = a->scratch;
    int rc = dev->mul(a->n, (float)(1 - keep), a->last, a->last, (float)keep, a->state);
    if (rc || a->tau == 0) return rc;
    rc = dev->copy(gap, a->now, sizeof(float) * a->n);
    if (!rc) rc = dev->axpby(a->n, -1, a->then, 1, gap);
    if (!rc) rc = pl_ratio_each(dev, a->n, &steps, gap, a->state, gap);
    if (!rc) rc = dev->mul(a->n, 1, gap, gap, 0, gap); /* its root below is |gap| */
    return rc ? rc : pl_ratio_each(dev, a->n, &whole, g, gap, g);
}

const struct pl_corrector_type pl_corrector_gapaware = {
    .name = "gapaware",
    .summary = "gradient divided by 1 + the gap in average steps",
    .source = "arXiv 1909.10802",
    .grad = divide,
    .keeps_state = true,
    .keeps_last = true,
};
