/* Models: parameter counts against published ones, Hugging Face configurations against
 * the presets, refusals. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/model.h"
#include "sim/model_hf.h"
#include "tests/runner.h"

/* The model that "key=value" settings, ending with NULL, describe. */
static int describe(const char *const *settings, struct pl_model *out)
{
    struct pl_config *config = pl_config_new();
    int rc = 0;
    for (; *settings && !rc; settings++) rc = pl_config_set(config, *settings, "test");
    if (!rc) rc = pl_config_resolve(config);
    if (!rc) rc = pl_model_read(config, out);
    pl_config_free(config);
    return rc;
}

static struct pl_model preset(const char *name)
{
    struct pl_model m = {0};
    char setting[80];
    snprintf(setting, sizeof setting, "model.preset=%s", name);
    ck_assert_msg(!describe((const char *[]){setting, NULL}, &m), "%s: %s", name,
                  pl_error_text());
    return m;
}

/* Parameters of the published checkpoints (their safetensors), exactly. */
static const struct {
    const char *name;
    uint64_t params;
} published[] = {
    {"smollm-135m", 134515008},        {"smollm-360m", 361821120},
    {"gpt-2-small", 124439808},        {"gpt-2-medium", 354823168},
    {"gpt-2-large", 774030080},        {"gpt-2-xl", 1557611200},
    {"llama-3-8b", 8030261248},        {"llama-3-70b", 70553706496},
    {"llama-3-405b", 405853388800},    {"qwen2-0.5b", 494032768},
    {"qwen2-1.5b", 1543714304},        {"qwen2-7b", 7615616512},
    {"qwen2-72b", 72706203648},        {"qwen1.5-moe-a2.7b", 14315784192},
    {"qwen3-0.6b", 596049920},         {"qwen3-8b", 8190735360},
    {"qwen3-32b", 32762123264},        {"qwen3-30b-a3b", 30532122624},
    {"qwen3-235b-a22b", 235093634560}, {"mixtral-8x7b", 46702792704},
    {"mixtral-8x22b", 140620634112},   {"olmoe-1b-7b", 6919161856},
    {"deepseek-v2-lite", 15706484224}, {"deepseek-v2", 235741434880},
    {"deepseek-v3", 671026419200},
};

START_TEST(counts_are_published)
{
    struct pl_model m = preset(published[_i].name);
    ck_assert_msg(pl_model_params(&m) == published[_i].params, "%s: %llu, not %llu",
                  published[_i].name, (unsigned long long)pl_model_params(&m),
                  (unsigned long long)published[_i].params);
    m.layers++;
    ck_assert(pl_model_params(&m) != published[_i].params);
}
END_TEST

/* Counts that the papers give to a few digits: |count - N| < half a unit of the last.
 */
START_TEST(counts_of_papers)
{
    static const struct {
        const char *name;
        double billions, half;
    } rows[] = {
        {"megatron-1.7b", 1.7, .05},     {"megatron-3.6b", 3.6, .05},
        {"megatron-7.5b", 7.5, .05},     {"megatron-18.4b", 18.4, .05},
        {"megatron-22b", 22, .5},        {"megatron-39.1b", 39.1, .05},
        {"megatron-76.1b", 76.1, .05},   {"megatron-145.6b", 145.6, .05},
        {"megatron-310.1b", 310.1, .05}, {"megatron-530b", 529.6, .05},
        {"megatron-1t", 1008, .5},       {"gpt-3-6.7b", 6.7, .05},
        {"gpt-3-175b", 175, .5},         {"moe-10b", 10.14, .005},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pl_model m = preset(rows[i].name);
        double n = (double)pl_model_params(&m) / 1e9;
        ck_assert_msg(fabs(n - rows[i].billions) < rows[i].half, "%s: %.4f",
                      rows[i].name, n);
    }
    struct pl_model m = preset("megatron-530b");
    /* the paper's formula, P = 12 l h^2 (1 + 13/12h + (V + s)/12lh), plus final norm */
    const uint64_t l = 105, h = 20480;
    ck_assert_uint_eq(pl_model_params(&m),
                      12 * l * h * h + 13 * l * h + (51200 + 2048) * h + 2 * h);
}
END_TEST

/* Active counts: total minus the experts that a token does not visit. */
START_TEST(active_counts)
{
    struct pl_model m = preset("mixtral-8x7b");
    struct pl_model_count c = pl_model_count(&m);
    ck_assert_uint_eq(c.n_active_params, 46702792704 - 32ull * 6 * 3 * 4096 * 14336);
    ck_assert_uint_eq(c.n_active_nonembedding, c.n_active_params - 2ull * 4096 * 32000);
    ck_assert_uint_eq(c.n_matmul, c.n_active_params - 4096ull * 32000);
    m = preset("olmoe-1b-7b");
    c = pl_model_count(&m);
    ck_assert_uint_eq(c.n_active_params, 6919161856 - 16ull * 56 * 3 * 2048 * 1024);
    ck_assert_double_eq_tol((double)c.n_active_params, 1.28e9, .005e9); /* its paper */
    m = preset("deepseek-v3");
    c = pl_model_count(&m);
    ck_assert_double_eq_tol((double)c.n_active_params, 37e9, 1e9); /* its paper: 37 B */
    m = preset("qwen3-30b-a3b");
    c = pl_model_count(&m);
    ck_assert_double_eq_tol((double)c.n_active_params, 3.3e9, .1e9); /* model card */
    m = preset("gpt-2-small");
    c = pl_model_count(&m);
    ck_assert_uint_eq(c.n_active_params, 124439808);
    ck_assert_uint_eq(c.n_matmul, 124439808 - 1024 * 768);
    ck_assert_uint_eq(c.n_active_nonembedding, c.n_matmul - 50257 * 768);
}
END_TEST

/* Latent attention: d of 12 L d T is the mean of query and value width. */
START_TEST(flops_per_token)
{
    struct pl_model m = preset("deepseek-v3");
    double n = (double)pl_model_count(&m).n_matmul;
    ck_assert_double_eq(pl_model_flops(&m, 4096),
                        6 * n + 6.0 * 61 * 128 * (192 + 128) * 4096);
    m = preset("llama-3-8b");
    ck_assert_double_eq(pl_model_flops(&m, 8192),
                        6 * (8030261248.0 - 4096.0 * 128256) + 12.0 * 32 * 4096 * 8192);
}
END_TEST

/* config.json as the model repositories have them, without keys that play no part. */
static const struct {
    const char *preset, *json;
} hf[] = {
    {"smollm-135m",
     "{\"model_type\":\"llama\",\"hidden_size\":576,\"num_hidden_layers\":30,"
     "\"num_attention_heads\":9,\"num_key_value_heads\":3,\"intermediate_size\":1536,"
     "\"vocab_size\":49152,\"tie_word_embeddings\":true,\"rope_theta\":10000.0,"
     "\"rms_norm_eps\":1e-05,\"attention_bias\":false,\"rope_scaling\":null}"},
    {"qwen2-7b",
     "{\"model_type\":\"qwen2\",\"hidden_size\":3584,\"num_hidden_layers\":28,"
     "\"num_attention_heads\":28,\"num_key_value_heads\":4,\"intermediate_size\":18944,"
     "\"vocab_size\":152064,\"tie_word_embeddings\":false,\"rope_theta\":1000000.0,"
     "\"rms_norm_eps\":1e-06,\"use_sliding_window\":false}"},
    {"qwen3-32b",
     "{\"model_type\":\"qwen3\",\"hidden_size\":5120,\"num_hidden_layers\":64,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":8,\"intermediate_size\":25600,"
     "\"vocab_size\":151936,\"tie_word_embeddings\":false,\"rope_theta\":1000000,"
     "\"rms_norm_eps\":1e-06,\"attention_bias\":false}"},
    {"qwen1.5-moe-a2.7b",
     "{\"model_type\":\"qwen2_moe\",\"hidden_size\":2048,\"num_hidden_layers\":24,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"intermediate_size\":5632,"
     "\"vocab_size\":151936,\"rope_theta\":1000000.0,\"rms_norm_eps\":1e-06,"
     "\"num_experts\":60,\"num_experts_per_tok\":4,\"moe_intermediate_size\":1408,"
     "\"shared_expert_intermediate_size\":5632,\"decoder_sparse_step\":1,"
     "\"norm_topk_prob\":false,\"router_aux_loss_coef\":0.001}"},
    {"qwen3-30b-a3b",
     "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"num_hidden_layers\":48,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,"
     "\"intermediate_size\":6144,\"vocab_size\":151936,\"rope_theta\":1000000.0,"
     "\"rms_norm_eps\":1e-06,\"num_experts\":128,\"num_experts_per_tok\":8,"
     "\"moe_intermediate_size\":768,\"mlp_only_layers\":[],"
     "\"norm_topk_prob\":true,\"router_aux_loss_coef\":0.001}"},
    {"mixtral-8x7b",
     "{\"model_type\":\"mixtral\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":32000,\"rope_theta\":1000000.0,\"rms_norm_eps\":1e-05,"
     "\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null,"
     "\"router_aux_loss_coef\":0.02}"},
    {"olmoe-1b-7b",
     "{\"model_type\":\"olmoe\",\"hidden_size\":2048,\"num_hidden_layers\":16,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"intermediate_size\":1024,"
     "\"vocab_size\":50304,\"rope_theta\":10000.0,\"rms_norm_eps\":1e-05,"
     "\"num_experts\":64,\"num_experts_per_tok\":8,\"norm_topk_prob\":false,"
     "\"router_aux_loss_coef\":0.01}"},
    {"deepseek-v2-lite",
     "{\"model_type\":\"deepseek_v2\",\"hidden_size\":2048,\"num_hidden_layers\":27,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"q_lora_rank\":null,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,"
     "\"v_head_dim\":128,\"intermediate_size\":10944,\"moe_intermediate_size\":1408,"
     "\"n_routed_experts\":64,\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
     "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"vocab_size\":102400,"
     "\"rope_theta\":10000,\"rms_norm_eps\":1e-06,\"aux_loss_alpha\":0.001,"
     "\"seq_aux\":true,\"norm_topk_prob\":false,\"routed_scaling_factor\":1.0}"},
    {"deepseek-v3",
     "{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"num_hidden_layers\":61,"
     "\"num_attention_heads\":128,\"num_key_value_heads\":128,\"q_lora_rank\":1536,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,"
     "\"v_head_dim\":128,\"intermediate_size\":18432,\"moe_intermediate_size\":2048,"
     "\"n_routed_experts\":256,\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
     "\"first_k_dense_replace\":3,\"vocab_size\":129280,\"num_nextn_predict_layers\":1,"
     "\"tie_word_embeddings\":false,\"rope_theta\":10000,\"rms_norm_eps\":1e-06,"
     "\"aux_loss_alpha\":1e-4,\"norm_topk_prob\":true,\"seq_aux\":true,"
     "\"routed_scaling_factor\":2.5}"},
    {"gpt-2-small",
     "{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,"
     "\"n_inner\":null,\"vocab_size\":50257,\"n_positions\":1024,\"n_ctx\":1024,"
     "\"layer_norm_epsilon\":1e-05,\"resid_pdrop\":0.1,\"attn_pdrop\":0.1}"},
};

/* Import a text as a model. */
static int import(const char *json, struct pl_model *out)
{
    struct pl_json_file *file;
    char *yaml;
    int rc = pl_json_parse(json, strlen(json), "config.json", &file);
    if (rc) return rc;
    rc = pl_model_import_json(pl_json_root(file), "config.json", &yaml);
    pl_json_free(file);
    if (rc) return rc;
    struct pl_config *config = pl_config_new();
    rc = pl_config_preset(config, yaml, "config.json", "model", false);
    if (!rc) rc = pl_model_read(config, out);
    pl_config_free(config);
    free(yaml);
    return rc;
}

static void numbers(const struct pl_model *m, double *out)
{
    const double all[] = {
        m->layers,
        m->hidden,
        m->heads,
        m->kv_heads,
        m->head_dim,
        m->ffn,
        m->vocab,
        m->tied,
        m->rope_theta,
        m->norm_eps,
        m->norm,
        m->mlp,
        m->bias,
        m->qk_norm,
        m->positions,
        m->dropout,
        m->experts,
        m->experts_per_token,
        m->expert_ffn,
        m->shared_ffn,
        m->shared_gate,
        m->router_bias,
        m->dense_layers,
        m->scoring,
        m->norm_topk,
        m->routed_scale,
        m->aux_loss,
        m->seq_aux,
        m->q_lora_rank,
        m->kv_lora_rank,
        m->qk_nope_head_dim,
        m->qk_rope_head_dim,
        m->v_head_dim,
    };
    for (size_t i = 0; i < 33; i++) out[i] = all[i];
    ck_assert_uint_eq(sizeof all / sizeof *all, 33);
}

START_TEST(hugging_face)
{
    struct pl_model a = preset(hf[_i].preset), b = {0};
    double x[33], y[33];
    ck_assert_msg(!import(hf[_i].json, &b), "%s: %s", hf[_i].preset, pl_error_text());
    numbers(&a, x);
    numbers(&b, y);
    for (int i = 0; i < 33; i++)
        ck_assert_msg(x[i] == y[i], "%s: number %d is %g, not %g", hf[_i].preset, i,
                      y[i], x[i]);
}
END_TEST

static const struct {
    const char *json, *message; /* part of it */
} broken[] = {
    {"{\"model_type\":\"llama\",", "config.json:1:"},
    {"", "config.json:1:"},
    {"[]", "config.json: the file is [], expected a map"},
    {"{\"hidden_size\":1}", "config.json: model_type is missing, expected a text"},
    {"{\"model_type\":3}", "config.json: model_type is 3, expected a text"},
    {"{\"model_type\":\"qwen4\"}", "did you mean 'qwen"},
    {"{\"model_type\":\"llama\",\"model_type\":\"llama\"}", "duplicate"},
    {"{\"model_type\":\"llama\"}",
     "num_attention_heads is missing, expected an integer"},
    {"{\"model_type\":\"llama\",\"num_attention_heads\":\"8\"}",
     "num_attention_heads is \"8\", expected an integer from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"num_attention_heads\":8.5}", "is 8.5, expected"},
    {"{\"model_type\":\"llama\",\"num_attention_heads\":99999999999999999999}",
     "config.json:1:"},
    {"{\"model_type\":\"gpt2\",\"n_embd\":9223372036854775807}", "n_embd is 92233"},
    {"{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":2,\"n_head\":2,"
     "\"vocab_size\":256,\"layer_norm_epsilon\":\"x\"}",
     "layer_norm_epsilon is \"x\", expected a number"},
};

START_TEST(broken_json)
{
    struct pl_model m = {.layers = -7};
    int rc = import(broken[_i].json, &m);
    ck_assert_msg(rc == PL_ECONFIG, "%s: %d", broken[_i].json, rc);
    ck_assert_msg(strstr(pl_error_text(), broken[_i].message) != NULL,
                  "%s: \"%s\" lacks \"%s\"", broken[_i].json, pl_error_text(),
                  broken[_i].message);
    ck_assert_int_eq(m.layers, -7);
}
END_TEST

/* Settings that are no model; the message names the key. */
static const struct {
    const char *settings[4], *message;
} wrong[] = {
    {{"model.kv_heads=3"}, "model.kv_heads is 3"},
    {{"model.head_dim=3"}, "model.head_dim is 3"},
    {{"model.hidden=2", "model.heads=4"}, "model.head_dim is 0"},
    {{"model.shared_ffn=8"}, "model.experts is 0"},
    {{"model.dense_layers=1"}, "model.experts is 0"},
    {{"model.experts=4", "model.experts_per_token=5"}, "model.experts_per_token is 5"},
    {{"model.experts=4", "model.dense_layers=8"}, "model.dense_layers is 8"},
    {{"model.experts=4", "model.shared_gate=yes"}, "model.shared_gate"},
    {{"model.kv_lora_rank=4"}, "model.qk_nope_head_dim is 0"},
    {{"model.preset=deepseek-v3", "model.bias=qkv"}, "model.bias and model.qk_norm"},
    {{"model.preset=llama-3-8", NULL}, "did you mean 'llama-3-8b'"},
    {{"model.preset=/nonexistent/x.yaml"}, "/nonexistent/x.yaml"},
    {{"model.layers=10000", "model.hidden=1048576", "model.ffn=1048576"},
     "at most 9e18 fit"},
};

START_TEST(wrong_models)
{
    struct pl_model m;
    if (_i == 12) { /* three settings and the ends of the ranges */
        const char *const huge[] = {"model.layers=10000",   "model.hidden=1048576",
                                    "model.heads=65536",    "model.head_dim=65536",
                                    "model.experts=65536",  "model.expert_ffn=1048576",
                                    "model.kv_heads=65536", NULL};
        ck_assert_int_eq(describe(huge, &m), PL_ECONFIG);
    } else {
        const char *const list[] = {wrong[_i].settings[0], wrong[_i].settings[1], NULL};
        ck_assert_int_lt(describe(list, &m), 0);
    }
    ck_assert_msg(strstr(pl_error_text(), wrong[_i].message) != NULL,
                  "\"%s\" lacks \"%s\"", pl_error_text(), wrong[_i].message);
}
END_TEST

/* What train/ cannot build is named; what it can is not. */
START_TEST(trainable_models)
{
    static const char *const others[][2] = {
        {"gpt-2-small", "model.dropout"},
        {"deepseek-v2", "model.kv_lora_rank"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct pl_model m = preset(others[i][0]);
        ck_assert_int_eq(pl_model_check_trainable(&m), PL_EUNSUP);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), others[i][1]));
    }
    struct pl_model m = preset("smollm-135m");
    ck_assert_int_eq(pl_model_check_trainable(&m), PL_OK);
    m = preset("gpt-2-small");
    m.dropout = false;
    ck_assert_int_eq(pl_model_check_trainable(&m), PL_OK);
    m = preset("qwen3-8b");
    ck_assert_int_eq(pl_model_check_trainable(&m), PL_OK);
    m = preset("mixtral-8x7b");
    ck_assert_int_eq(pl_model_check_trainable(&m), PL_OK);
    m.kv_lora_rank = 1;
    ck_assert_int_eq(pl_model_check_trainable(&m), PL_EUNSUP);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, counts_are_published, 0,
                        (int)(sizeof published / sizeof *published));
    tcase_add_test(t, counts_of_papers);
    tcase_add_test(t, active_counts);
    tcase_add_test(t, flops_per_token);
    tcase_add_loop_test(t, hugging_face, 0, (int)(sizeof hf / sizeof *hf));
    tcase_add_loop_test(t, broken_json, 0, (int)(sizeof broken / sizeof *broken));
    tcase_add_loop_test(t, wrong_models, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, trainable_models);
}

int main(void)
{
    return run_tests("model", fill);
}
