/* SpecTrain: forward reads w - s_f u, u the optimizer's last step (eta times the
 * momentum), with s_f = floor(k/2) + P - 1 - k on stage k: the weights at the end of
 * the microbatch's round trip on stage 0. Without stash (its version 1) backward
 * predicts the same weights from what is live then, s_b = floor(k/2); with stash
 * (version 2) it reads what forward read. Horizons count updates of one microbatch.
 * Source: Chen et al., arXiv 1809.02839. */
#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    out->c_back = args->stage / 2;
    out->c = out->c_back + args->stages - 1 - args->stage;
}

const struct pl_corrector_type pl_corrector_spectrain = {
    .name = "spectrain",
    .summary = "weights predicted for the end of the round trip, in F and B",
    .source = "arXiv 1809.02839",
    .look = look,
    .at_read = true,
};
