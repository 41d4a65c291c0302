/* No correction: x[n+1] = x[n] - u[n], c = 0. Plain delayed updates (2BW, arXiv
 * 2006.09503). */
#include "train/correct.h"

const struct pl_corrector_type pl_corrector_none = {
    .name = "none",
    .summary = "plain delayed updates",
    .source = "arXiv 2006.09503",
};
