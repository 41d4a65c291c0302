/* Delayed Nesterov, c = beta: x[n+1] = x[n] - (1+beta) u[n] + beta u[n-1].
 * Source: Ajanthan et al., arXiv 2505.01099 (written in its look-ahead variable). */
#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    out->c = args->beta;
}

const struct pl_corrector_type pl_corrector_nesterov = {
    .name = "nesterov",
    .summary = "c = beta, delayed Nesterov momentum",
    .source = "arXiv 2505.01099",
    .look = look,
};
