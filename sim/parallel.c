/* parallel.* keys. The conditions are those of Megatron-LM
 * (megatron/training/arguments.py, core/transformer/transformer_config.py), without its
 * padding of the vocabulary: a rank holds ceil(vocab / tp) rows. */
#include "sim/parallel.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"

enum { SEQ_LENGTH = 2048 }; /* where the configuration gives none */

static int check_divides(const char *key, int by, const char *what, int64_t value)
{
    if (value % by == 0) return PL_OK;
    return pl_fail(PL_ECONFIG, "%s is %d, expected a divisor of %s (%" PRId64 ")", key,
                   by, what, value);
}

static int check_tensor(const struct pl_parallel *p, const struct pl_model *m)
{
    int rc = check_divides("parallel.tp", p->tp, "model.heads", m->heads);
    bool dense = !m->experts || m->dense_layers;
    if (!rc && !m->kv_lora_rank)
        rc = check_divides("parallel.tp", p->tp, "model.kv_heads", m->kv_heads);
    if (!rc && dense) rc = check_divides("parallel.tp", p->tp, "model.ffn", m->ffn);
    if (!rc && m->experts)
        rc = check_divides("parallel.tp", p->tp, "model.expert_ffn", m->expert_ffn);
    if (!rc && m->experts)
        rc = check_divides("parallel.tp", p->tp, "model.shared_ffn", m->shared_ffn);
    if (!rc && m->experts && p->tp > 1 && !p->sp)
        rc = pl_fail(PL_ECONFIG,
                     "parallel.sp is no, expected yes for experts with parallel.tp %d "
                     "(tokens are exchanged once, not %d times)",
                     p->tp, p->tp);
    return rc;
}

static int check_experts(const struct pl_parallel *p, const struct pl_model *m)
{
    if (p->ep == 1) return PL_OK;
    if (!m->experts)
        return pl_fail(PL_ECONFIG, "parallel.ep is %d, expected 1: model.experts is 0",
                       p->ep);
    int rc = check_divides("parallel.ep", p->ep, "model.experts", m->experts);
    if (rc) return rc;
    return check_divides("parallel.ep", p->ep, "parallel.cp * parallel.dp",
                         (int64_t)p->cp * p->dp);
}

static int check_sequence(const struct pl_parallel *p,
                          const struct pl_microbatch *batch)
{
    int64_t parts = p->cp > 1 ? 2 * (int64_t)p->cp : 1;
    if (batch->s % parts)
        return pl_fail(PL_ECONFIG,
                       "parallel.cp is %d, expected 2 cp to divide "
                       "parallel.seq_length (%" PRId64 ")",
                       p->cp, batch->s);
    if (p->sp && batch->s / p->cp % p->tp)
        return pl_fail(PL_ECONFIG,
                       "parallel.tp is %d with parallel.sp, expected a divisor of "
                       "parallel.seq_length / parallel.cp (%" PRId64 ")",
                       p->tp, batch->s / p->cp);
    return PL_OK;
}

int pl_parallel_check(const struct pl_parallel *p, const struct pl_model *model,
                      const struct pl_microbatch *batch)
{
    const struct {
        const char *key;
        int64_t value, most;
    } counts[] = {
        {"parallel.tp", p->tp, 65536},
        {"parallel.ep", p->ep, 65536},
        {"parallel.cp", p->cp, 65536},
        {"parallel.dp", p->dp, 1048576},
        {"parallel.micro_batch", batch->b, 1048576},
        {"parallel.seq_length", batch->s, 16777216},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 1 || counts[i].value > counts[i].most)
            return pl_fail(PL_ECONFIG, "%s is %" PRId64 ", expected 1 to %" PRId64,
                           counts[i].key, counts[i].value, counts[i].most);
    if (p->zero < 0 || p->zero > 1)
        return pl_fail(PL_ECONFIG, "parallel.zero is %d, expected 0 or 1", p->zero);
    if (model->positions && batch->s > model->positions)
        return pl_fail(PL_ECONFIG,
                       "parallel.seq_length is %" PRId64
                       ", expected at most model.positions (%d)",
                       batch->s, model->positions);
    int rc = check_tensor(p, model);
    if (!rc) rc = check_experts(p, model);
    return rc ? rc : check_sequence(p, batch);
}

int pl_parallel_read(const struct pl_config *c, const struct pl_model *model,
                     struct pl_parallel *out, struct pl_microbatch *batch)
{
    const char *recompute = pl_config_text(c, "parallel.recompute");
    struct pl_parallel p = {
        .tp = (int)pl_config_int(c, "parallel.tp"),
        .ep = (int)pl_config_int(c, "parallel.ep"),
        .cp = (int)pl_config_int(c, "parallel.cp"),
        .dp = (int)pl_config_int(c, "parallel.dp"),
        .sp = pl_config_bool(c, "parallel.sp"),
        .zero = (int)pl_config_int(c, "parallel.zero"),
        .recompute = !strcmp(recompute, "none")        ? PL_RECOMPUTE_NONE
                     : !strcmp(recompute, "selective") ? PL_RECOMPUTE_SELECTIVE
                                                       : PL_RECOMPUTE_FULL,
        .flash = pl_config_bool(c, "parallel.flash"),
        .grad_16 = pl_config_bool(c, "parallel.grad_16"),
        .fuse_gradients = pl_config_bool(c, "parallel.fuse_gradients"),
        .scatter_gather = pl_config_bool(c, "parallel.scatter_gather"),
    };
    struct pl_microbatch b = {pl_config_int(c, "parallel.micro_batch"),
                              pl_config_int(c, "parallel.seq_length")};
    if (!b.s)
        b.s = model->positions && model->positions < SEQ_LENGTH ? model->positions
                                                                : SEQ_LENGTH;
    int rc = pl_parallel_check(&p, model, &b);
    if (rc) return rc;
    *out = p;
    *batch = b;
    return PL_OK;
}

int64_t pl_parallel_gpus(const struct pl_parallel *p, int P)
{
    return (int64_t)P * p->tp * p->cp * p->dp;
}
