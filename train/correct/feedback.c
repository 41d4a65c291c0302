/* Error feedback, c = 1: x[n+1] = x[n] - 2 u[n] + u[n-1]. Source: arXiv 2606.30634.
 * A stage without delay has no error to feed back: c = 0 there. */
#include "train/correct.h"

#include <math.h>

static double coefficient(double given, double beta, int64_t tau)
{
    (void)beta;
    return isnan(given) ? tau > 0 : given;
}

const struct pl_corrector_type pl_corrector_feedback = {
    "feedback", "c = 1, error feedback (0 on a stage without delay)",
    "arXiv 2606.30634", coefficient, false};
