/* XPipe: forward reads w - s_f u, u Adam's last step, on stage k of P with T
 * microbatches per update
 *   s_f = round((P + T - k/2 - 2) / T),  s_b = round((T + floor(k/2) - 1) / T)
 * (halves to even), in updates; without stash backward predicts by s_b from what is
 * live. Source: Guan et al., arXiv 1911.04610; the horizons as in the published code.
 */
#include <math.h>

#include "train/correct.h"

static void look(const struct pl_corrector *self, const struct pl_look_args *args,
                 struct pl_look *out)
{
    (void)self;
    const double P = args->stages, T = args->m, k = args->stage;
    out->c = nearbyint((P + T - k / 2 - 2) / T);
    out->c_back = nearbyint((T + floor(k / 2) - 1) / T);
}

const struct pl_corrector_type pl_corrector_xpipe = {
    .name = "xpipe",
    .summary = "weights predicted for a group, horizons of XPipe",
    .source = "arXiv 1911.04610",
    .look = look,
    .at_read = true,
};
