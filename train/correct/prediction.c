/* Weight prediction: y[n+1] = y[n] - u[n], forward and backward read y[n] - c u[n-1],
 * the weights predicted c updates ahead; c = tau. Error feedback of the same c is the
 * same trajectory, stored at the point that is read. Source: SpecTrain, arXiv
 * 1809.02839; PipeOptim. */
#include "train/correct.h"

#include <math.h>

static double coefficient(double given, double beta, int64_t tau)
{
    (void)beta;
    return isnan(given) ? (double)tau : given;
}

const struct pl_corrector_type pl_corrector_prediction = {
    "prediction", "c = tau, weights predicted when read", "SpecTrain, arXiv 1809.02839",
    coefficient, true};
