/* PipeOptim: forward reads w - s u, u the optimizer's last step (SGDM, Adam, AdamW), s
 * = P - 1 - k on stage k: the updates that pass under 1F1B before its backward;
 * backward reads the live weights, or what forward read where they are stashed. (The
 * published code takes P - k, one more than its text.) Source: Guan et al., PipeOptim.
 */
#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    out->c = args->stages - 1 - args->stage;
    out->c_back = 0;
}

const struct pl_corrector_type pl_corrector_pipeoptim = {
    .name = "pipeoptim",
    .summary = "weights predicted P - 1 - k updates ahead on stage k",
    .source = "PipeOptim (Guan et al.)",
    .look = look,
    .at_read = true,
};
