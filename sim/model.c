/* Parameters and flops of a decoder-only transformer, summed over sim/weights.c.
 *   n_params   embedding (+ positions) + blocks + final norm + head unless tied
 *   active     the same with experts_per_token of the experts
 *   flops per token = 6 N + 12 L d T, N active without lookups, d = heads * (qk + v) /
 * 2 Source: Narayanan et al. SC'21 section 5.1 without recomputation; the head counts
 * once, tables that are only looked up (untied input embedding, positions) do not. */
#include "sim/model.h"

#include <math.h>

#include "base/err.h"
#include "sim/weights.h"

int pl_model_qk_dim(const struct pl_model *m)
{
    return m->kv_lora_rank ? m->qk_nope_head_dim + m->qk_rope_head_dim : m->head_dim;
}

int pl_model_v_dim(const struct pl_model *m)
{
    return m->kv_lora_rank ? m->v_head_dim : m->head_dim;
}

bool pl_model_is_moe(const struct pl_model *m, int layer)
{
    return m->experts && layer >= m->dense_layers;
}

/* Parameters of a block: all, and those that one token uses. */
static void count_block(const struct pl_model *m, enum pl_block block, uint64_t *all,
                        uint64_t *active)
{
    struct pl_weight w[PL_MAX_WEIGHTS];
    int n = pl_weights(m, block, w);
    *all = *active = 0;
    for (int i = 0; i < n; i++) {
        uint64_t each = pl_weight_params(&w[i]);
        *all += each * (uint64_t)(w[i].expert ? m->experts : 1);
        *active += each * (uint64_t)(w[i].expert ? m->experts_per_token : 1);
    }
}

struct pl_model_count pl_model_count(const struct pl_model *m)
{
    struct pl_model_count c = {0};
    uint64_t embedding, head, unused, active = 0;
    int dense = m->experts ? m->dense_layers : m->layers;
    c.table = (uint64_t)m->hidden * (uint64_t)m->vocab;
    if (dense) count_block(m, PL_BLOCK_DENSE, &c.dense_block, &unused);
    if (dense < m->layers) count_block(m, PL_BLOCK_MOE, &c.moe_block, &c.moe_active);
    count_block(m, PL_BLOCK_EMBEDDING, &embedding, &unused);
    count_block(m, PL_BLOCK_HEAD, &head, &unused);
    uint64_t norm = head - c.table;
    uint64_t n_dense = (uint64_t)dense, n_moe = (uint64_t)(m->layers - dense);
    c.n_params = n_dense * c.dense_block + n_moe * c.moe_block;
    active = n_dense * c.dense_block + n_moe * c.moe_active;
    c.n_params += embedding + norm + (m->tied ? 0 : c.table);
    c.n_active_nonembedding = active + norm;
    c.n_matmul = active + norm + c.table;
    c.n_active_params = active + norm + embedding + (m->tied ? 0 : c.table);
    return c;
}

uint64_t pl_model_params(const struct pl_model *model)
{
    return pl_model_count(model).n_params;
}

double pl_model_flops(const struct pl_model *m, int T)
{
    double n = (double)pl_model_count(m).n_matmul;
    double width = m->heads * (pl_model_qk_dim(m) + pl_model_v_dim(m)) / 2.0;
    return 6 * n + 12.0 * m->layers * width * T;
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
