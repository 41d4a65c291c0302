/* Weight prediction: y[n+1] = y[n] - u[n], forward and backward read y[n] - c u[n-1],
 * the weights predicted c updates ahead; c = tau. Error feedback of the same c is the
 * same trajectory, stored at the point that is read. Source: SpecTrain, arXiv
 * 1809.02839; PipeOptim. */
#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    out->c = (double)args->tau;
}

const struct pl_corrector_type pl_corrector_prediction = {
    .name = "prediction",
    .summary = "c = tau, weights predicted when read",
    .source = "SpecTrain, arXiv 1809.02839",
    .look = look,
    .at_read = true,
};
