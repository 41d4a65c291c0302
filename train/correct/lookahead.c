/* Look-ahead: y[n+1] = y[n] - u[n], gradients read at y[n] - c u[n-1], c = tau. The
 * same trajectory as the c-family, stored at the other iterate. Source: SpecTrain,
 * arXiv 1809.02839; PipeOptim. */
#include "train/correct.h"

#include <math.h>

static double coefficient(double given, double beta, int64_t tau)
{
    (void)beta;
    return isnan(given) ? (double)tau : given;
}

const struct pl_corrector_type pl_corrector_lookahead = {
    "lookahead", "c = tau, weights predicted when read", "SpecTrain, arXiv 1809.02839",
    coefficient, true};
