/* The keys model.* of a configuration as a struct pl_model. */
#include "sim/model.h"

#include <string.h>

#include "base/err.h"

static int number(const struct pl_config *c, const char *key)
{
    return (int)pl_config_int(c, key);
}

int pl_model_check_given(const struct pl_config *c, const char *where)
{
    static const char *const keys[] = {"model.layers", "model.hidden", "model.heads",
                                       "model.ffn", "model.vocab"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!pl_config_given(c, keys[i]))
            return pl_fail(
                PL_ECONFIG,
                "%s: %s is missing, expected the whole description of a model", where,
                keys[i]);
    return PL_OK;
}

int pl_model_read(const struct pl_config *c, struct pl_model *out)
{
    struct pl_model m = {
        .layers = number(c, "model.layers"),
        .hidden = number(c, "model.hidden"),
        .heads = number(c, "model.heads"),
        .kv_heads = number(c, "model.kv_heads"),
        .head_dim = number(c, "model.head_dim"),
        .ffn = number(c, "model.ffn"),
        .vocab = number(c, "model.vocab"),
        .tied = !strcmp(pl_config_text(c, "model.tied"), "yes"),
        .rope_theta = pl_config_real(c, "model.rope_theta"),
        .norm_eps = pl_config_real(c, "model.norm_eps"),
        .norm = (enum pl_norm)pl_config_choice(c, "model.norm"),
        .mlp = (enum pl_mlp)pl_config_choice(c, "model.mlp"),
        .bias = (enum pl_bias)pl_config_choice(c, "model.bias"),
        .qk_norm = (enum pl_qk_norm)pl_config_choice(c, "model.qk_norm"),
        .positions = number(c, "model.positions"),
        .init = (enum pl_init)pl_config_choice(c, "model.init"),
        .init_std = pl_config_real(c, "model.init_std"),
        .dropout = pl_config_bool(c, "model.dropout"),
        .experts = number(c, "model.experts"),
        .experts_per_token = number(c, "model.experts_per_token"),
        .expert_ffn = number(c, "model.expert_ffn"),
        .shared_ffn = number(c, "model.shared_ffn"),
        .shared_gate = pl_config_bool(c, "model.shared_gate"),
        .router_bias = pl_config_bool(c, "model.router_bias"),
        .dense_layers = number(c, "model.dense_layers"),
        .scoring = (enum pl_scoring)pl_config_choice(c, "model.scoring_func"),
        .norm_topk = pl_config_bool(c, "model.norm_topk_prob"),
        .routed_scale = pl_config_real(c, "model.routed_scaling_factor"),
        .aux_loss = pl_config_real(c, "model.aux_loss_coef"),
        .z_loss = pl_config_real(c, "model.z_loss_coef"),
        .seq_aux = pl_config_bool(c, "model.seq_aux"),
        .bias_rate = pl_config_real(c, "model.router_bias_rate"),
        .q_lora_rank = number(c, "model.q_lora_rank"),
        .kv_lora_rank = number(c, "model.kv_lora_rank"),
        .qk_nope_head_dim = number(c, "model.qk_nope_head_dim"),
        .qk_rope_head_dim = number(c, "model.qk_rope_head_dim"),
        .v_head_dim = number(c, "model.v_head_dim"),
    };
    const char *preset = pl_config_text(c, "model.preset");
    int rc = *preset ? pl_model_check_given(c, preset) : PL_OK;
    if (rc) return rc;
    if (!m.head_dim) m.head_dim = m.hidden / m.heads;
    if (!m.kv_heads) m.kv_heads = m.heads;
    if (!m.expert_ffn) m.expert_ffn = m.ffn;
    rc = pl_model_check(&m);
    if (!rc) *out = m;
    return rc;
}
