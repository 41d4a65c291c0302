/* Exchanges inside the group of a stage, for one block and microbatch.
 *   tp: after attention and after the MLP an all-reduce of 2 s b h bytes, and two in
 * the backward; with sequence parallelism each becomes all-gather + reduce-scatter, and
 *       W gathers the two saved inputs again (Korthikanti et al. 2205.05198
 * section 4.2). ep: all-to-all to the experts and back, 2 s b k h bytes (/ t with sp),
 * in F and B. cp: cp - 1 steps of a ring that pass on K and V; backward K, V and their
 * gradients (Liu et al. 2310.01889). */
#include <assert.h>

#include "sim/work_parts.h"

static void add(struct pl_work *out, enum pl_comm_kind kind, enum pl_comm_group group,
                enum pl_phase phase, double count, double bytes)
{
    assert(out->n_comms < PL_MAX_COMMS);
    if (count > 0)
        out->comm[out->n_comms++] = (struct pl_comm){kind, group, phase, count, bytes};
}

/* The input of n column-cut and the output of n row-cut products. */
static void add_tensor(const struct pl_work_case *c, struct pl_work *out, double n,
                       double bytes)
{
    if (c->t == 1) return;
    if (!c->parallel->sp) {
        add(out, PL_COMM_ALL_REDUCE, PL_GROUP_TP, PL_PHASE_F, n, bytes);
        add(out, PL_COMM_ALL_REDUCE, PL_GROUP_TP, PL_PHASE_B, n, bytes);
        return;
    }
    for (int phase = PL_PHASE_F; phase <= PL_PHASE_B; phase++) {
        add(out, PL_COMM_ALL_GATHER, PL_GROUP_TP, (enum pl_phase)phase, n, bytes);
        add(out, PL_COMM_REDUCE_SCATTER, PL_GROUP_TP, (enum pl_phase)phase, n, bytes);
    }
    add(out, PL_COMM_ALL_GATHER, PL_GROUP_TP, PL_PHASE_W, n, bytes);
}

static void add_layer(const struct pl_work_case *c, struct pl_work *out)
{
    const struct pl_model *m = c->model;
    double whole = 2 * c->tokens * m->hidden;
    add_tensor(c, out, 1, whole);                                   /* attention */
    if (c->block == PL_BLOCK_MTP) add_tensor(c, out, 1, 2 * whole); /* projection */
    if (c->moe) {
        double sent = whole * m->experts_per_token;
        add_tensor(c, out, 1, sent);
        if (m->shared_ffn) add_tensor(c, out, 1, whole);
        for (int phase = PL_PHASE_F; phase <= PL_PHASE_B && c->parallel->ep > 1;
             phase++)
            add(out, PL_COMM_ALL_TO_ALL, PL_GROUP_EP, (enum pl_phase)phase, 2,
                sent / c->shard);
    } else {
        add_tensor(c, out, 1, whole);
    }
    double kv = m->kv_lora_rank
                    ? (double)m->heads * (pl_model_qk_dim(m) + m->v_head_dim)
                    : 2.0 * m->kv_heads * m->head_dim;
    double ring = 2 * c->tokens * kv / c->t, steps = c->parallel->cp - 1;
    add(out, PL_COMM_SEND, PL_GROUP_CP, PL_PHASE_F, steps, ring);
    add(out, PL_COMM_SEND, PL_GROUP_CP, PL_PHASE_B, steps, 2 * ring);
}

/* Vocabulary-parallel embedding and head; the loss reduces three fp32 numbers a token
 * (maximum, sum, target). */
static void add_ends(const struct pl_work_case *c, struct pl_work *out)
{
    bool sp = c->parallel->sp;
    double whole = 2 * c->tokens * c->model->hidden;
    if (c->t == 1) return;
    if (c->block == PL_BLOCK_EMBEDDING) {
        add(out, sp ? PL_COMM_REDUCE_SCATTER : PL_COMM_ALL_REDUCE, PL_GROUP_TP,
            PL_PHASE_F, 1, whole);
        if (sp) add(out, PL_COMM_ALL_GATHER, PL_GROUP_TP, PL_PHASE_B, 1, whole);
        return;
    }
    if (sp) {
        add(out, PL_COMM_ALL_GATHER, PL_GROUP_TP, PL_PHASE_F, 1, whole);
        add(out, PL_COMM_ALL_GATHER, PL_GROUP_TP, PL_PHASE_W, 1, whole);
    }
    add(out, PL_COMM_ALL_REDUCE, PL_GROUP_TP, PL_PHASE_F, 3, 4 * c->tokens);
    add(out, sp ? PL_COMM_REDUCE_SCATTER : PL_COMM_ALL_REDUCE, PL_GROUP_TP, PL_PHASE_B,
        1, whole);
}

void pl_work_exchanges(const struct pl_work_case *c, struct pl_work *out)
{
    if (!pl_work_is_layer(c)) {
        add_ends(c, out);
        return;
    }
    add_layer(c, out);
    int n = c->parallel->recompute == PL_RECOMPUTE_FULL ? out->n_comms : 0;
    for (int i = 0; i < n; i++) {
        const struct pl_comm *e = &out->comm[i];
        if (e->phase == PL_PHASE_F)
            add(out, e->kind, e->group, PL_PHASE_R, e->count, e->bytes);
    }
}
