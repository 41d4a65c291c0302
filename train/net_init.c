/* Initial weights (model.init): normal with sd 0.02 for matrices and embeddings,
 * divided by sqrt(2 layers) where a residual branch ends (o_proj and down_proj; GPT-2
 * and nanotron practice, not Hugging Face's), gains 1, biases 0. Or without that
 * division (Hugging Face's initializer_range), or cut at 3 sd (OLMoE, arXiv
 * 2409.02060), or with sd hidden^-1/2 (nanotron's SmolLM). Drawn on the host, keyed by
 * (parameter number, element), which do not depend on the number of stages. */
#include "train/net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

struct pl_net_fill pl_net_fill(const struct pl_model *m, bool ends_branch)
{
    const bool divided = m->init == PL_INIT_SCALED || m->init == PL_INIT_WIDTH;
    double sd = m->init_std > 0 ? m->init_std : 0.02;
    if (m->init == PL_INIT_WIDTH) sd = 1 / sqrt((double)m->hidden);
    if (ends_branch && divided) sd /= sqrt(2.0 * m->layers);
    return (struct pl_net_fill){.sd = sd};
}

/* A number beyond 3 sd is drawn again, from a stream of its own for each attempt. */
static double normal(uint64_t seed, int number, uint32_t i, bool cut)
{
    double x;
    uint64_t attempt = 0;
    do x = pl_rng_normal(seed, PL_RNG_INIT, attempt++ << 32 | (uint64_t)number, i);
    while (cut && fabs(x) > 3);
    return x;
}

static void draw(const struct pl_net *net, uint64_t seed, struct pl_net_fill fill,
                 int number, size_t n, float *x)
{
    const bool cut = net->model.init == PL_INIT_TRUNCATED;
    assert(n <= UINT32_MAX);
    for (size_t i = 0; i < n; i++)
        x[i] = fill.sd == 0 ? fill.value
                            : (float)(fill.sd * normal(seed, number, (uint32_t)i, cut));
}

int pl_net_init(struct pl_problem *p, uint64_t seed, float *const *weights)
{
    const struct pl_net *net = p->state;
    size_t largest = 0;
    for (int i = 0; i < p->n_params; i++)
        if (pl_param_size(&p->params[i]) > largest)
            largest = pl_param_size(&p->params[i]);
    float *x = PL_NEW(largest, float);
    int rc = 0, number = 0;
    for (int i = 0; i < p->n_params && rc == 0; i++) {
        const struct pl_param *q = &p->params[i];
        size_t n = pl_param_size(q);
        draw(net, seed, net->fill[i], number, n, x);
        number += q->kind != PL_PARAM_BALANCE;
        rc = p->device->upload(weights[q->stage] + q->offset, x, n * sizeof *x);
    }
    free(x);
    return rc;
}
