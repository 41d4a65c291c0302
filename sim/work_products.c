/* Matrix products and their flops.
 *   weight [K, N]: 2 M N K forward, as many for the input gradient and for the weight
 *   gradient; scores and weighted sum: 2 b s^2 H (qk + v) / (t cp) forward, twice that
 *   backward; fused attention computes the scores once more in the backward.
 * With recomputation: full, the whole forward of the layer; selective, the attention.
 * An expert of a GPU sees tokens * k * ep / E tokens when experts are evenly loaded.
 * Source: Narayanan et al. SC'21 appendix; Dao 2307.08691 (backward 2.5 x forward). */
#include <assert.h>

#include "sim/work_parts.h"

static double flops(const struct pl_gemm *g)
{
    return 2 * g->M * g->N * g->K * g->count;
}

static void add(struct pl_work *out, struct pl_gemm gemm)
{
    assert(out->n_gemms < PL_MAX_GEMMS);
    out->gemm[out->n_gemms++] = gemm;
}

static void add_attention(const struct pl_work_case *c, struct pl_work *out)
{
    double rows = c->s / c->parallel->cp, count = c->b * c->model->heads / c->t;
    double qk = pl_model_qk_dim(c->model), v = pl_model_v_dim(c->model);
    add(out, (struct pl_gemm){"scores", rows, c->s, qk, count, true});
    add(out, (struct pl_gemm){"weighted_sum", rows, v, c->s, count, true});
}

static void add_weight(const struct pl_work_case *c, const struct pl_weight *w,
                       struct pl_work *out)
{
    const struct pl_model *m = c->model;
    struct pl_gemm g = {w->name,          c->tokens, pl_work_out(c, w),
                        pl_work_in(c, w), 1,         false};
    if (w->expert) {
        g.count = (double)m->experts / c->parallel->ep;
        g.M = c->tokens * m->experts_per_token * c->parallel->ep / m->experts;
    } else if (w->cut == PL_CUT_NONE) {
        g.M /= c->shard; /* every rank has the matrix and its own tokens */
    }
    add(out, g);
}

void pl_work_products(const struct pl_work_case *c, struct pl_work *out)
{
    double scores = 0;
    for (int i = 0; i < c->n; i++) {
        const struct pl_weight *w = &c->weight[i];
        if (!w->in || w->lookup) continue;
        if (pl_work_is_layer(c) && w->cut == PL_CUT_ROW && !out->attention_flops) {
            add_attention(c, out); /* before the output projection */
            scores = flops(&out->gemm[out->n_gemms - 2]);
            out->attention_flops = scores + flops(&out->gemm[out->n_gemms - 1]);
        }
        add_weight(c, w, out);
        out->weight_flops += flops(&out->gemm[out->n_gemms - 1]);
    }
    out->forward_flops = out->weight_flops + out->attention_flops;
    out->input_flops = out->weight_flops + 2 * out->attention_flops;
    if (c->parallel->flash) out->input_flops += scores;
    if (!pl_work_is_layer(c)) return;
    if (c->parallel->recompute == PL_RECOMPUTE_FULL)
        out->recompute_flops = out->forward_flops;
    else if (c->parallel->recompute == PL_RECOMPUTE_SELECTIVE)
        out->recompute_flops = out->attention_flops;
}
