/* Parameters and flops of a Llama-style decoder.
 *   block  2 d (norms) + d hd (2 H + 2 KV) + 3 d ffn
 *   whole  L blocks + d + V d (head) + V d (input embedding unless tied)
 *   flops per token = 6 N + 12 L (H hd) T, N without an untied input embedding
 * Source: Narayanan et al. SC'21 section 5.1 without recomputation. */
#include "sim/model.h"

#include <math.h>

#include "base/err.h"

static int check_count(const char *key, int value, int least)
{
    if (value >= least) return PL_OK;
    return pl_fail(PL_ECONFIG, "%s is %d, expected at least %d", key, value, least);
}

/* As a double, to see whether the exact count would fit. */
static double params_estimate(const struct pl_model *p)
{
    double d = p->hidden, heads = 2.0 * p->heads + 2.0 * p->kv_heads;
    double block = d * (2.0 + p->head_dim * heads + 3.0 * p->ffn);
    return p->layers * block + d + d * p->vocab * (p->tied ? 1.0 : 2.0);
}

int pl_model_check(const struct pl_model *model)
{
    const struct {
        const char *key;
        int value, least;
    } counts[] = {
        {"model.layers", model->layers, 1},     {"model.hidden", model->hidden, 1},
        {"model.heads", model->heads, 1},       {"model.kv_heads", model->kv_heads, 1},
        {"model.head_dim", model->head_dim, 2}, {"model.ffn", model->ffn, 1},
        {"model.vocab", model->vocab, 2}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int rc = check_count(counts[i].key, counts[i].value, counts[i].least);
        if (rc) return rc;
    }
    if (model->heads % model->kv_heads)
        return pl_fail(PL_ECONFIG,
                       "model.kv_heads is %d, expected a divisor of model.heads (%d)",
                       model->kv_heads, model->heads);
    if (model->head_dim % 2)
        return pl_fail(PL_ECONFIG,
                       "model.head_dim is %d, expected an even number (rotary pairs)",
                       model->head_dim);
    if (!(model->rope_theta >= 1) || !isfinite(model->rope_theta))
        return pl_fail(PL_ECONFIG, "model.rope_theta is %g, expected 1 or more",
                       model->rope_theta);
    if (!(model->norm_eps >= 0) || !isfinite(model->norm_eps))
        return pl_fail(PL_ECONFIG, "model.norm_eps is %g, expected 0 or more",
                       model->norm_eps);
    if (params_estimate(model) > 9e18)
        return pl_fail(PL_ECONFIG,
                       "model.* describes %.3g parameters, at most 9e18 fit",
                       params_estimate(model));
    return PL_OK;
}

uint64_t pl_model_params(const struct pl_model *model)
{
    uint64_t d = (uint64_t)model->hidden;
    uint64_t heads = 2 * (uint64_t)model->heads + 2 * (uint64_t)model->kv_heads;
    uint64_t attention = d * (uint64_t)model->head_dim * heads;
    uint64_t block = attention + 3 * d * (uint64_t)model->ffn + 2 * d;
    uint64_t table = d * (uint64_t)model->vocab;
    return (uint64_t)model->layers * block + d + table * (model->tied ? 1 : 2);
}

double pl_model_flops(const struct pl_model *model, int T)
{
    double n = (double)pl_model_params(model);
    if (!model->tied) n -= (double)model->hidden * model->vocab;
    double width = (double)model->heads * model->head_dim;
    return 6 * n + 12.0 * model->layers * width * T;
}

int pl_model_split(const struct pl_model *model, int P, int *first)
{
    if (P < 1)
        return pl_fail(PL_ECONFIG, "schedule.stages is %d, expected at least 1", P);
    if (P > model->layers)
        return pl_fail(
            PL_ECONFIG,
            "schedule.stages is %d, but model.layers is %d: every stage needs a "
            "layer",
            P, model->layers);
    int size = model->layers / P, larger = model->layers % P;
    first[0] = 0;
    for (int s = 0; s < P; s++) first[s + 1] = first[s] + size + (s < larger);
    return PL_OK;
}
