/* Spike compensation: when a gradient comes tau updates late, its momentum would have
 * moved the weights tau times by now, which is made up for at once:
 *   w -= eta (a v + b g),  a = m^tau,  b = (1 - m^tau) / (1 - m),  v = m v + g.
 * With u = eta v and g = v[n] - m v[n-1] this is w -= (a+b) u[n] - b m u[n-1], and a +
 * b = 1 + b m: the look-ahead family with c = m (1 - m^tau) / (1 - m), for any
 * optimizer (m its first-moment coefficient). tau = 1 is the Nesterov form. Source:
 * Kosson et al., arXiv 2003.11666; the rewriting is ours. */
#include <math.h>

#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    const double m = args->beta, tau = (double)args->tau;
    out->c = m < 1 ? m * (1 - pow(m, tau)) / (1 - m) : tau;
}

const struct pl_corrector_type pl_corrector_spike = {
    .name = "spike",
    .summary = "c = beta (1 - beta^tau) / (1 - beta), spike compensation",
    .source = "arXiv 2003.11666",
    .look = look,
};
