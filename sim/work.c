/* Bytes of weights, gradients and optimizer state, and the sum of the parts.
 *   weights 2, gradients 4, optimizer 4 (1 + words) / (zero ? copies : 1) bytes a
 * parameter; copies = cp dp, for experts cp dp / ep. AdamW: 18 bytes, or 6 + 12 /
 * copies. Source: Rajbhandari et al. 1910.02054 section 3.1; Megatron-LM
 * theoretical_memory_usage.py (18, and 6 + 12 / dp with the distributed optimizer). */
#include "sim/work.h"

#include <assert.h>
#include <math.h>

#include "base/err.h"
#include "sim/work_parts.h"

static double divided(double value, double by, bool ceiling)
{
    return ceiling ? ceil(value / by) : value / by;
}

double pl_work_out(const struct pl_work_case *c, const struct pl_weight *w)
{
    bool vocabulary = !pl_work_is_layer(c);
    return w->cut == PL_CUT_COLUMN ? divided((double)w->out, c->t, vocabulary)
                                   : (double)w->out;
}

double pl_work_in(const struct pl_work_case *c, const struct pl_weight *w)
{
    return w->cut == PL_CUT_ROW ? (double)w->in / c->t : (double)w->in;
}

bool pl_work_is_layer(const struct pl_work_case *c)
{
    return c->block != PL_BLOCK_EMBEDDING && c->block != PL_BLOCK_HEAD;
}

static int hold_state(const struct pl_work_case *c, const char *optimizer,
                      struct pl_work *out)
{
    const struct pl_parallel *p = c->parallel;
    for (int i = 0; i < c->n; i++) {
        const struct pl_weight *w = &c->weight[i];
        double matrix, vectors, state = 0;
        double here = w->expert ? (double)c->model->experts / p->ep : 1;
        double copies = (double)p->cp * p->dp / (w->expert ? p->ep : 1);
        double split = p->zero ? copies : 1;
        int rc =
            pl_optimizer_words(optimizer, w->in, w->out, pl_work_is_layer(c), &matrix);
        if (!rc) rc = pl_optimizer_words(optimizer, 0, w->vectors, false, &vectors);
        if (rc) return rc;
        double n = here * pl_work_in(c, w) * pl_work_out(c, w);
        double v = here * (double)w->vectors / (w->cut == PL_CUT_COLUMN ? c->t : 1);
        state = n * (1 + matrix) + v * (1 + vectors);
        out->params += n + v;
        if (w->expert) out->expert_params += n + v;
        out->optimizer_bytes += 4 * state / split;
    }
    out->weight_bytes = 2 * out->params;
    out->gradient_bytes = (c->parallel->grad_16 ? 2 : 4) * out->params;
    return PL_OK;
}

int pl_work_block(const struct pl_model *model, const struct pl_parallel *parallel,
                  const struct pl_microbatch *batch, enum pl_block block,
                  const char *optimizer, struct pl_work *out)
{
    struct pl_work_case c = {
        .model = model,
        .parallel = parallel,
        .block = block,
        .moe = block == PL_BLOCK_MOE ||
               (block == PL_BLOCK_MTP && pl_model_is_moe(model, model->layers - 1)),
        .tokens = (double)batch->b * (double)batch->s / parallel->cp,
        .b = (double)batch->b,
        .s = (double)batch->s,
        .t = parallel->tp,
        .shard = parallel->sp ? parallel->tp : 1,
    };
    struct pl_work work = {0};
    c.n = pl_weights(model, block, c.weight);
    int rc = hold_state(&c, optimizer, &work);
    if (rc) return rc;
    pl_work_products(&c, &work);
    pl_work_activations(&c, &work);
    pl_work_traffic(&c, &work);
    pl_work_exchanges(&c, &work);
    *out = work;
    return PL_OK;
}

void pl_work_add(struct pl_work *sum, const struct pl_work *from, double count)
{
    sum->forward_flops += count * from->forward_flops;
    sum->attention_flops += count * from->attention_flops;
    sum->input_flops += count * from->input_flops;
    sum->weight_flops += count * from->weight_flops;
    sum->recompute_flops += count * from->recompute_flops;
    sum->forward_traffic += count * from->forward_traffic;
    sum->backward_traffic += count * from->backward_traffic;
    sum->recompute_traffic += count * from->recompute_traffic;
    sum->params += count * from->params;
    sum->expert_params += count * from->expert_params;
    sum->weight_bytes += count * from->weight_bytes;
    sum->gradient_bytes += count * from->gradient_bytes;
    sum->optimizer_bytes += count * from->optimizer_bytes;
    sum->act_bytes += count * from->act_bytes;
    sum->kept_bytes += count * from->kept_bytes;
    if (count > 0) sum->live_bytes = fmax(sum->live_bytes, from->live_bytes);
}

double pl_work_boundary(const struct pl_model *model, const struct pl_parallel *p,
                        const struct pl_microbatch *batch)
{
    double whole = 2.0 * (double)batch->b * (double)batch->s * model->hidden / p->cp;
    return p->sp || p->scatter_gather ? whole / p->tp : whole;
}
