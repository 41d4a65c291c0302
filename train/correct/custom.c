/* x[n+1] = x[n] - (1+c) u[n] + c u[n-1] with c = corrector.c, which must be given. */
#include "train/correct.h"

static double coefficient(double given, double beta, int64_t tau)
{
    (void)beta, (void)tau;
    return given;
}

const struct pl_corrector_type pl_corrector_custom = {
    "custom", "c = corrector.c", "arXiv 2606.30634, free strength", coefficient, false};
