/* Discrepancy correction (PipeMare's T2), for gradients without stash: backward reads
 *   w - (tau_f - tau_b) delta,  delta = g delta + (1-g) (w[t+1] - w[t]),
 *   g = D^(1/(tau_f - tau_b)),  D = e^-2 (0.135)
 * an estimate of the weights that forward read. In this family delta is -e with b = g,
 * c = 0 and c_back = -(tau_f - tau_b); delays are the stage's means. Nothing to correct
 * under stash.
 * Source: Yang et al., MLSys 2021 (arXiv 1910.05124). T1 is rate.delay_power, T3 a
 * segment that is synchronous. */
#include <math.h>

#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    const double gap = args->tau_mean - args->tau_back_mean;
    out->c = 0;
    out->c_back = -gap;
    out->smooth = gap > 0 ? exp(-2 / gap) : 0;
}

const struct pl_corrector_type pl_corrector_discrepancy = {
    .name = "discrepancy",
    .summary = "backward estimates the weights that forward read (PipeMare T2)",
    .source = "arXiv 1910.05124",
    .look = look,
    .fixed_c = true,
};
