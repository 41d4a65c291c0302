/* No correction: x[n+1] = x[n] - u[n], c = 0. Plain delayed updates (2BW, arXiv
 * 2006.09503). */
#include "train/correct.h"

static double coefficient(double given, double beta, int64_t tau)
{
    (void)given, (void)beta, (void)tau;
    return 0;
}

const struct pl_corrector_type pl_corrector_none = {
    "none", "plain delayed updates", "arXiv 2006.09503", coefficient, false};
