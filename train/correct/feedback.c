/* Error feedback, c = 1: x[n+1] = x[n] - 2 u[n] + u[n-1]. Source: arXiv 2606.30634.
 * A stage without delay has no error to feed back: c = 0 there. */
#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    out->c = args->tau > 0;
}

const struct pl_corrector_type pl_corrector_feedback = {
    .name = "feedback",
    .summary = "c = 1, error feedback (0 on a stage without delay)",
    .source = "arXiv 2606.30634",
    .look = look,
};
