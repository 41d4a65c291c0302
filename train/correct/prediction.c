/* Full weight prediction, c = tau: x[n+1] = x[n] - (1+tau) u[n] + tau u[n-1].
 * Source: SpecTrain, arXiv 1809.02839, in the form that stores the predicted point. */
#include "train/correct.h"

#include <math.h>

static double coefficient(double given, double beta, int64_t tau)
{
    (void)beta;
    return isnan(given) ? (double)tau : given;
}

const struct pl_corrector_type pl_corrector_prediction = {
    "prediction", "c = tau, weight prediction stored at the predicted point",
    "SpecTrain, arXiv 1809.02839", coefficient, false};
