/* Initial weights: normal with sd 0.02 for matrices and embeddings (Hugging Face
 * Llama's initializer_range), divided by sqrt(2 layers) where a residual branch ends
 * (o_proj and down_proj; GPT-2 and nanotron practice, not Hugging Face's), gains 1,
 * biases 0.
 * Drawn on the host, keyed by (parameter number, element), which do not depend on the
 * number of stages. */
#include "train/net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

struct pl_net_fill pl_net_fill(const struct pl_model *model, bool ends_branch)
{
    return (struct pl_net_fill){.sd = ends_branch ? 0.02 / sqrt(2.0 * model->layers)
                                                  : 0.02};
}

static void draw(uint64_t seed, int param, struct pl_net_fill fill, size_t n, float *x)
{
    assert(n <= UINT32_MAX);
    for (size_t i = 0; i < n; i++)
        x[i] = fill.sd == 0
                   ? fill.value
                   : (float)(fill.sd * pl_rng_normal(seed, PL_RNG_INIT, (uint64_t)param,
                                                     (uint32_t)i));
}

int pl_net_init(struct pl_problem *p, uint64_t seed, float *const *weights)
{
    const struct pl_net *net = p->state;
    size_t largest = 0;
    for (int i = 0; i < p->n_params; i++)
        if (pl_param_size(&p->params[i]) > largest)
            largest = pl_param_size(&p->params[i]);
    float *x = PL_NEW(largest, float);
    int rc = 0;
    for (int i = 0; i < p->n_params && rc == 0; i++) {
        const struct pl_param *q = &p->params[i];
        size_t n = pl_param_size(q);
        draw(seed, i, net->fill[i], n, x);
        rc = p->device->upload(weights[q->stage] + q->offset, x, n * sizeof *x);
    }
    free(x);
    return rc;
}
