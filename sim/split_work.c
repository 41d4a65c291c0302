/* What a chunk does, and costs for balanced cuts: sums over sim/work.h. */
#include <math.h>

#include "base/err.h"
#include "sim/split.h"

int pl_split_flops(const struct pl_model *m, const struct pl_parallel *parallel,
                   const struct pl_microbatch *batch, double *cost)
{
    struct pl_work dense = {0}, moe = {0}, head = {0};
    int rc = pl_work_block(m, parallel, batch, PL_BLOCK_DENSE, "sgd", &dense);
    if (!rc && m->experts)
        rc = pl_work_block(m, parallel, batch, PL_BLOCK_MOE, "sgd", &moe);
    if (!rc) rc = pl_work_block(m, parallel, batch, PL_BLOCK_HEAD, "sgd", &head);
    if (rc) return rc;
    cost[0] = 0; /* a table that is read */
    for (int i = 0; i < m->layers; i++) {
        const struct pl_work *w = pl_model_is_moe(m, i) ? &moe : &dense;
        cost[i + 1] =
            w->forward_flops + w->input_flops + w->weight_flops + w->recompute_flops;
    }
    cost[m->layers + 1] = head.forward_flops + head.input_flops + head.weight_flops;
    return PL_OK;
}

/* The table that a tied head shares with an embedding on the same chunk. */
static void share_table(const struct pl_model *m, const struct pl_parallel *parallel,
                        const struct pl_work *embedding, struct pl_work *out)
{
    double table = ceil((double)m->vocab / parallel->tp) * m->hidden;
    out->params -= table;
    out->weight_bytes -= table * embedding->weight_bytes / embedding->params;
    out->gradient_bytes -= table * embedding->gradient_bytes / embedding->params;
    out->optimizer_bytes -= table * embedding->optimizer_bytes / embedding->params;
}

int pl_work_chunk(const struct pl_model *m, const struct pl_parallel *parallel,
                  const struct pl_microbatch *batch, const char *optimizer,
                  const struct pl_chunk *chunk, int mtp, struct pl_work *out)
{
    int moe = 0;
    for (int i = 0; i < chunk->n; i++) moe += pl_model_is_moe(m, chunk->first + i);
    const struct {
        enum pl_block block;
        double count;
    } parts[] = {{PL_BLOCK_EMBEDDING, chunk->embedding},
                 {PL_BLOCK_DENSE, chunk->n - moe},
                 {PL_BLOCK_MOE, moe},
                 {PL_BLOCK_MTP, chunk->mtp},
                 {PL_BLOCK_HEAD, chunk->head}};
    struct pl_work sum = {0}, work[5] = {{0}};
    for (int i = 0; i < 5; i++) {
        if (!parts[i].count) continue;
        int rc = pl_work_block(m, parallel, batch, parts[i].block, optimizer, &work[i]);
        if (rc) return rc;
        pl_work_add(&sum, &work[i], parts[i].count);
    }
    if (chunk->head && mtp) { /* the head again, its weights once */
        struct pl_work again = work[4];
        again.params = again.weight_bytes = 0;
        again.gradient_bytes = again.optimizer_bytes = 0;
        pl_work_add(&sum, &again, mtp);
    }
    if (m->tied && chunk->embedding && chunk->head)
        share_table(m, parallel, &work[0], &sum);
    *out = sum;
    return PL_OK;
}
