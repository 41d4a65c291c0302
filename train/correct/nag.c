/* Delayed Nesterov descent: with d[n] = gamma[n] (w[n] - w[n-1]),
 *   w[n+1] = w[n] + d[n] - (1 - gamma[n]) u[n],  u[n] taken at w + d, tau updates old,
 * gamma[n] = (t-2)/t, t = n + 1, or constant (corrector.c). In this family w is y, e[n]
 * = gamma[n] e[n-1] + (1-gamma[n]) u[n] = w[n] - w[n+1] is its step, and c of version
 * n+1 is gamma[n+1]. The optimizer should have no momentum of its own (sgd, momentum
 * 0); the paper's practice is NAdam with beta1 = .99 instead, without a corrector.
 * Source: Ajanthan et al., ICML 2025 (arXiv 2505.01099). */
#include <math.h>

#include "train/correct.h"

static double gamma_at(const struct pl_corrector *self, int64_t n)
{
    if (!isnan(self->given)) return self->given;
    return n > 1 ? (double)(n - 1) / (double)(n + 1) : 0;
}

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    out->c = gamma_at(self, args->n + 1);
    out->smooth = gamma_at(self, args->n);
}

const struct pl_corrector_type pl_corrector_nag = {
    .name = "nag",
    .summary = "delayed Nesterov descent, gamma = (t-2)/t or corrector.c",
    .source = "arXiv 2505.01099",
    .look = look,
    .at_read = true,
    .momentum = true,
    .fixed_c = true,
};
