/* Which descriptions are models, and which of them train/ can build. */
#include "sim/model.h"

#include <math.h>

#include "base/err.h"

static int check_count(const char *key, int value, int least)
{
    if (value >= least) return PL_OK;
    return pl_fail(PL_ECONFIG, "%s is %d, expected at least %d", key, value, least);
}

struct count {
    const char *key;
    int value, least;
};

static int check_counts(const struct count *counts, int n)
{
    int rc = PL_OK;
    for (int i = 0; i < n && !rc; i++)
        rc = check_count(counts[i].key, counts[i].value, counts[i].least);
    return rc;
}

static int check_attention(const struct pl_model *m)
{
    if (m->kv_lora_rank) {
        const struct count counts[] = {
            {"model.q_lora_rank", m->q_lora_rank, 0},
            {"model.kv_lora_rank", m->kv_lora_rank, 1},
            {"model.qk_nope_head_dim", m->qk_nope_head_dim, 1},
            {"model.qk_rope_head_dim", m->qk_rope_head_dim, 2},
            {"model.v_head_dim", m->v_head_dim, 1},
        };
        if (m->bias != PL_BIAS_NONE || m->qk_norm != PL_QK_NONE)
            return pl_fail(PL_ECONFIG,
                           "model.bias and model.qk_norm must be none with latent "
                           "attention (model.kv_lora_rank %d)",
                           m->kv_lora_rank);
        return check_counts(counts, 5);
    }
    const struct count counts[] = {{"model.kv_heads", m->kv_heads, 1},
                                   {"model.head_dim", m->head_dim, 2}};
    int rc = check_counts(counts, 2);
    if (rc) return rc;
    if (m->heads % m->kv_heads)
        return pl_fail(PL_ECONFIG,
                       "model.kv_heads is %d, expected a divisor of model.heads (%d)",
                       m->kv_heads, m->heads);
    if (m->head_dim % 2 && !m->positions)
        return pl_fail(PL_ECONFIG,
                       "model.head_dim is %d, expected an even number (rotary pairs)",
                       m->head_dim);
    return PL_OK;
}

static int check_experts(const struct pl_model *m)
{
    if (!m->experts) {
        if (m->shared_ffn || m->dense_layers || m->shared_gate || m->router_bias)
            return pl_fail(PL_ECONFIG,
                           "model.%s is set but model.experts is 0, expected the "
                           "number of routed experts",
                           m->shared_ffn     ? "shared_ffn"
                           : m->dense_layers ? "dense_layers"
                           : m->shared_gate  ? "shared_gate"
                                             : "router_bias");
        return PL_OK;
    }
    if (m->experts_per_token < 1 || m->experts_per_token > m->experts)
        return pl_fail(
            PL_ECONFIG,
            "model.experts_per_token is %d, expected 1 to model.experts (%d)",
            m->experts_per_token, m->experts);
    if (m->dense_layers >= m->layers)
        return pl_fail(PL_ECONFIG,
                       "model.dense_layers is %d, expected less than model.layers (%d)",
                       m->dense_layers, m->layers);
    if (!(m->routed_scale >= 0) || !(m->aux_loss >= 0) || !(m->z_loss >= 0) ||
        !(m->bias_rate >= 0))
        return pl_fail(PL_ECONFIG,
                       "model.routed_scaling_factor, aux_loss_coef, z_loss_coef and "
                       "router_bias_rate are %g, %g, %g, %g, expected 0 or more",
                       m->routed_scale, m->aux_loss, m->z_loss, m->bias_rate);
    if (m->shared_gate && !m->shared_ffn)
        return pl_fail(PL_ECONFIG,
                       "model.shared_gate is yes but model.shared_ffn is 0");
    return check_count("model.expert_ffn", m->expert_ffn, 1);
}

/* As a double and from above, to see whether the exact counts would fit. */
static double params_estimate(const struct pl_model *m)
{
    double d = m->hidden, heads = (double)m->heads;
    double widths = m->kv_lora_rank ? 2.0 * pl_model_qk_dim(m) + 2.0 * m->v_head_dim
                                    : 4.0 * m->head_dim;
    double latent = (double)m->q_lora_rank + m->kv_lora_rank + m->qk_rope_head_dim;
    double attention = d * heads * widths + latent * (d + heads * widths);
    double mlp = 3 * d * m->ffn + m->experts * (d + 3 * d * m->expert_ffn);
    double block = attention + mlp + 3 * d * m->shared_ffn + 20 * d;
    return m->layers * block + d * (m->positions + 2.0 * m->vocab + 2);
}

int pl_model_check(const struct pl_model *m)
{
    const struct count counts[] = {
        {"model.layers", m->layers, 1}, {"model.hidden", m->hidden, 1},
        {"model.heads", m->heads, 1},   {"model.ffn", m->ffn, 1},
        {"model.vocab", m->vocab, 2},   {"model.positions", m->positions, 0}};
    int rc = check_counts(counts, 6);
    if (!rc) rc = check_attention(m);
    if (!rc) rc = check_experts(m);
    if (rc) return rc;
    if (!(m->rope_theta >= 1) || !isfinite(m->rope_theta))
        return pl_fail(PL_ECONFIG, "model.rope_theta is %g, expected 1 or more",
                       m->rope_theta);
    if (!(m->norm_eps >= 0) || !isfinite(m->norm_eps))
        return pl_fail(PL_ECONFIG, "model.norm_eps is %g, expected 0 or more",
                       m->norm_eps);
    if (params_estimate(m) > 9e18)
        return pl_fail(PL_ECONFIG,
                       "model.* describes %.3g parameters, at most 9e18 fit",
                       params_estimate(m));
    return PL_OK;
}

int pl_model_check_trainable(const struct pl_model *m)
{
    const struct {
        bool other;
        const char *key, *wanted;
    } cases[] = {
        {m->dropout, "dropout", "no (as nanoGPT and llm.c train)"},
        {m->kv_lora_rank != 0, "kv_lora_rank", "0: latent attention is only simulated"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].other)
            return pl_fail(PL_EUNSUP,
                           "model.%s: such a model cannot be trained, expected %s (sim "
                           "and model take any)",
                           cases[i].key, cases[i].wanted);
    return PL_OK;
}
