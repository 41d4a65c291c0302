/* Delayed Nesterov, c = beta: x[n+1] = x[n] - (1+beta) u[n] + beta u[n-1].
 * Source: Ajanthan et al., arXiv 2505.01099 (written in its look-ahead variable). */
#include "train/correct.h"

#include <math.h>

static double coefficient(double given, double beta, int64_t tau)
{
    (void)tau;
    return isnan(given) ? beta : given;
}

const struct pl_corrector_type pl_corrector_nesterov = {
    "nesterov", "c = beta, delayed Nesterov momentum", "arXiv 2505.01099", coefficient,
    false};
