/* Hugging Face config.json to model.* keys. Names and defaults are those of the
 * configuration classes of the transformers library, version 4.51
 * (src/transformers/models/TYPE/configuration_TYPE.py). */
#include "sim/model_hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"

struct importer {
    struct pl_json_value root;
    const char *name; /* of the file */
    FILE *out;
    double norm_eps, rope_theta; /* of the type, where the file says nothing */
    int rc;                      /* the first error; later steps do nothing */
};

enum { WIDTH = 1048576, COUNT = 65536 }; /* limits of base/keys.c */

/* Integer at name, fallback when it is missing or null; fallback < 0: it must be there.
 */
static int64_t get(struct importer *in, const char *name, int64_t min, int64_t max,
                   int64_t fallback)
{
    int64_t value = fallback;
    if (in->rc || (fallback >= 0 && !pl_json_has(in->root, name))) return fallback;
    in->rc = pl_json_get_int(in->root, name, min, max, &value);
    return value;
}

static void put(struct importer *in, const char *key, int64_t value)
{
    fprintf(in->out, "model.%s: %lld\n", key, (long long)value);
}

static void put_text(struct importer *in, const char *key, const char *value)
{
    fprintf(in->out, "model.%s: %s\n", key, value);
}

/* An integer key under its name there. */
static void copy(struct importer *in, const char *name, const char *key, int64_t min,
                 int64_t max, int64_t fallback)
{
    put(in, key, get(in, name, min, max, fallback));
}

/* A number under its name there; fallback NAN: then nothing. */
static void copy_real(struct importer *in, const char *name, const char *key,
                      double min, double max, double fallback)
{
    double value = fallback;
    if (!in->rc && pl_json_has(in->root, name))
        in->rc = pl_json_get_real(in->root, name, min, max, &value);
    if (!in->rc && !isnan(value)) fprintf(in->out, "model.%s: %.17g\n", key, value);
}

static bool get_bool(struct importer *in, const char *name, bool fallback)
{
    bool value = fallback;
    if (!in->rc && pl_json_has(in->root, name))
        in->rc = pl_json_get_bool(in->root, name, &value);
    return value;
}

static void refuse(struct importer *in, const char *name, const char *why)
{
    if (!in->rc) in->rc = pl_fail(PL_ECONFIG, "%s: %s: %s", in->name, name, why);
}

/* rope_theta, which version 5 has inside rope_parameters. */
static void import_rope(struct importer *in)
{
    struct pl_json_value rope, root = in->root;
    if (!in->rc && pl_json_has(root, "rope_parameters")) {
        in->rc = pl_json_member(root, "rope_parameters", &rope);
        if (!in->rc && pl_json_has(rope, "rope_theta")) in->root = rope;
    }
    copy_real(in, "rope_theta", "rope_theta", 1, 1e12, in->rope_theta);
    in->root = root;
}

/* What all types but GPT-2 share; head_dim 0 is hidden / heads. */
static void import_common(struct importer *in, int64_t head_dim)
{
    int64_t heads = get(in, "num_attention_heads", 1, COUNT, -1);
    copy(in, "num_hidden_layers", "layers", 1, 10000, -1);
    copy(in, "hidden_size", "hidden", 2, WIDTH, -1);
    put(in, "heads", heads);
    copy(in, "intermediate_size", "ffn", 1, WIDTH, -1);
    copy(in, "vocab_size", "vocab", 2, WIDTH, -1);
    copy(in, "num_key_value_heads", "kv_heads", 1, COUNT, heads);
    copy(in, "head_dim", "head_dim", 1, COUNT, head_dim);
    put_text(in, "tied", get_bool(in, "tie_word_embeddings", false) ? "yes" : "no");
    import_rope(in);
    copy_real(in, "rms_norm_eps", "norm_eps", 0, 1, in->norm_eps);
}

/* attention_bias and mlp_bias of Llama. */
static void import_biases(struct importer *in)
{
    bool attention = get_bool(in, "attention_bias", false);
    bool mlp = get_bool(in, "mlp_bias", false);
    if (mlp && !attention)
        refuse(in, "mlp_bias", "true without attention_bias, expected both or neither");
    put_text(in, "bias", mlp ? "all" : attention ? "attention" : "none");
}

/* Routed experts under the names that a type has for them. */
static void import_experts(struct importer *in, const char *experts, const char *width)
{
    int64_t n = get(in, experts, 1, COUNT, -1);
    put(in, "experts", n);
    copy(in, "num_experts_per_tok", "experts_per_token", 1, n > 0 ? n : 1, -1);
    copy(in, width, "expert_ffn", 1, WIDTH, -1);
}

/* How the router weighs and is balanced: members of Hugging Face's name. */
static void import_router(struct importer *in, bool normed)
{
    copy_real(in, "router_aux_loss_coef", "aux_loss_coef", 0, 1e6, NAN);
    put_text(in, "norm_topk_prob",
             get_bool(in, "norm_topk_prob", normed) ? "yes" : "no");
}

/* Qwen: layers without experts must be the first ones. */
static void import_sparse_step(struct importer *in)
{
    struct pl_json_value list;
    int64_t layer = 0;
    get(in, "decoder_sparse_step", 1, 1, 1);
    if (in->rc || !pl_json_has(in->root, "mlp_only_layers")) return;
    in->rc = pl_json_member(in->root, "mlp_only_layers", &list);
    if (!in->rc) in->rc = pl_json_expect(list, PL_JSON_LIST);
    size_t n = in->rc ? 0 : pl_json_length(list);
    for (size_t i = 0; i < n && !in->rc; i++)
        in->rc = pl_json_as_int(pl_json_item(list, i), (int64_t)i, (int64_t)i, &layer);
    put(in, "dense_layers", (int64_t)n);
}

static void import_llama(struct importer *in)
{
    import_common(in, 0);
    import_biases(in);
}

static void import_qwen2(struct importer *in)
{
    import_common(in, 0);
    put_text(in, "bias", "qkv");
}

static void import_qwen3(struct importer *in)
{
    import_common(in, 128);
    import_biases(in);
    put_text(in, "qk_norm", "head");
}

static void import_qwen2_moe(struct importer *in)
{
    import_qwen2(in);
    import_experts(in, "num_experts", "moe_intermediate_size");
    import_sparse_step(in);
    import_router(in, false);
    copy(in, "shared_expert_intermediate_size", "shared_ffn", 1, WIDTH, -1);
    put_text(in, "shared_gate", "yes");
}

static void import_qwen3_moe(struct importer *in)
{
    import_common(in, 0);
    import_biases(in);
    put_text(in, "qk_norm", "head");
    import_router(in, false);
    import_experts(in, "num_experts", "moe_intermediate_size");
    import_sparse_step(in);
}

static void import_mixtral(struct importer *in)
{
    import_common(in, 0);
    import_router(in, true);
    import_experts(in, "num_local_experts", "intermediate_size");
}

static void import_olmoe(struct importer *in)
{
    import_common(in, 0);
    import_biases(in);
    import_router(in, false);
    import_experts(in, "num_experts", "intermediate_size");
    put_text(in, "qk_norm", "full");
}

/* v3: sigmoid scores, normed, with selection biases. */
static void import_deepseek(struct importer *in, bool v3)
{
    import_common(in, 0);
    if (get_bool(in, "attention_bias", false))
        refuse(in, "attention_bias", "true, expected false with latent attention");
    copy(in, "q_lora_rank", "q_lora_rank", 1, WIDTH, 0);
    copy(in, "kv_lora_rank", "kv_lora_rank", 1, WIDTH, -1);
    copy(in, "qk_nope_head_dim", "qk_nope_head_dim", 1, COUNT, -1);
    copy(in, "qk_rope_head_dim", "qk_rope_head_dim", 2, COUNT, -1);
    copy(in, "v_head_dim", "v_head_dim", 1, COUNT, -1);
    if (in->rc || !pl_json_has(in->root, "n_routed_experts")) return;
    import_experts(in, "n_routed_experts", "moe_intermediate_size");
    get(in, "moe_layer_freq", 1, 1, 1);
    copy_real(in, "aux_loss_alpha", "aux_loss_coef", 0, 1e6, NAN);
    copy_real(in, "routed_scaling_factor", "routed_scaling_factor", 1e-6, 1e6, NAN);
    put_text(in, "norm_topk_prob", get_bool(in, "norm_topk_prob", v3) ? "yes" : "no");
    put_text(in, "scoring_func", v3 ? "sigmoid" : "softmax");
    put_text(in, "router_bias", v3 ? "yes" : "no");
    put_text(in, "seq_aux", get_bool(in, "seq_aux", true) ? "yes" : "no");
    copy(in, "first_k_dense_replace", "dense_layers", 0, 10000, 0);
    int64_t shared = get(in, "n_shared_experts", 0, COUNT, 0);
    int64_t width = shared * get(in, "moe_intermediate_size", 1, WIDTH, -1);
    if (width > WIDTH) refuse(in, "n_shared_experts", "their width is above 1048576");
    put(in, "shared_ffn", width);
}

static void import_deepseek_v2(struct importer *in)
{
    import_deepseek(in, false);
}

static void import_deepseek_v3(struct importer *in)
{
    import_deepseek(in, true);
}

static void import_gpt2(struct importer *in)
{
    int64_t d = get(in, "n_embd", 2, WIDTH / 4, -1);
    double residual = 0.1, attention = 0.1;
    copy(in, "n_layer", "layers", 1, 10000, -1);
    put(in, "hidden", d);
    copy(in, "n_head", "heads", 1, COUNT, -1);
    copy(in, "n_inner", "ffn", 1, WIDTH, 4 * (d > 0 ? d : 1));
    copy(in, "vocab_size", "vocab", 2, WIDTH, -1);
    copy(in, "n_positions", "positions", 1, 16777216, 1024);
    put_text(in, "tied", get_bool(in, "tie_word_embeddings", true) ? "yes" : "no");
    copy_real(in, "layer_norm_epsilon", "norm_eps", 0, 1, in->norm_eps);
    if (!in->rc && pl_json_has(in->root, "resid_pdrop"))
        in->rc = pl_json_get_real(in->root, "resid_pdrop", 0, 1, &residual);
    if (!in->rc && pl_json_has(in->root, "attn_pdrop"))
        in->rc = pl_json_get_real(in->root, "attn_pdrop", 0, 1, &attention);
    put_text(in, "dropout", residual > 0 || attention > 0 ? "yes" : "no");
    put_text(in, "norm", "layernorm");
    put_text(in, "mlp", "gelu");
    put_text(in, "bias", "all");
}

static const struct {
    const char *name;
    void (*import)(struct importer *in);
    double norm_eps, rope_theta;
} types[] = {
    {"llama", import_llama, 1e-6, 1e4},
    {"qwen2", import_qwen2, 1e-6, 1e4},
    {"qwen3", import_qwen3, 1e-6, 1e4},
    {"qwen2_moe", import_qwen2_moe, 1e-6, 1e4},
    {"qwen3_moe", import_qwen3_moe, 1e-6, 1e4},
    {"mixtral", import_mixtral, 1e-5, 1e6},
    {"olmoe", import_olmoe, 1e-5, 1e4},
    {"deepseek_v2", import_deepseek_v2, 1e-6, 1e4},
    {"deepseek_v3", import_deepseek_v3, 1e-6, 1e4},
    {"gpt2", import_gpt2, 1e-5, NAN},
};
enum { N_TYPES = sizeof types / sizeof *types };

int pl_model_import_json(struct pl_json_value root, const char *name, char **yaml)
{
    const char *names[N_TYPES + 1] = {NULL}, *type;
    int rc = pl_json_get_text(root, "model_type", &type), found = -1;
    if (rc) return rc;
    for (int i = 0; i < N_TYPES; i++) {
        names[i] = types[i].name;
        if (!strcmp(type, names[i])) found = i;
    }
    if (found < 0) return pl_fail_unknown(PL_ECONFIG, name, "model_type", type, names);
    size_t n = 0;
    struct importer in = {.root = root,
                          .name = name,
                          .norm_eps = types[found].norm_eps,
                          .rope_theta = types[found].rope_theta};
    in.out = open_memstream(yaml, &n);
    if (!in.out) return pl_fail(PL_EIO, "%s: no memory stream", name);
    types[found].import(&in);
    fclose(in.out);
    if (in.rc) free(*yaml);
    return in.rc;
}

int pl_model_import(const char *path, char **yaml)
{
    struct pl_json_file *file;
    int rc = pl_json_read(path, &file);
    if (rc) return rc;
    rc = pl_model_import_json(pl_json_root(file), path, yaml);
    pl_json_free(file);
    return rc;
}

void pl_model_register(void)
{
    pl_config_register_import("model", ".json", pl_model_import);
}
