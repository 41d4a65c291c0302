/* The table of a model's tensors: for every built-in model that can be trained it adds
 * up to the count of sim/, however the model is cut; names, shapes, order. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/builtin.h"
#include "base/err.h"
#include "tests/runner.h"
#include "train/problem.h"

static struct pl_model model_of(const char *const *settings)
{
    struct pl_config *config = pl_config_new();
    struct pl_model m = {0};
    int rc = 0;
    for (; *settings && !rc; settings++) rc = pl_config_set(config, *settings, "test");
    if (!rc) rc = pl_config_resolve(config);
    if (!rc) rc = pl_model_read(config, &m);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    pl_config_free(config);
    return m;
}

static struct pl_model preset(const char *name)
{
    char setting[80];
    snprintf(setting, sizeof setting, "model.preset=%s", name);
    return model_of((const char *[]){setting, NULL});
}

static uint64_t total(const struct pl_param *params, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += pl_param_size(&params[i]);
    return sum;
}

/* By stage, then offset, without holes; what is balanced, not optimised, comes last. */
static void check_order(const struct pl_param *params, int n, int P)
{
    size_t end = 0;
    for (int i = 0; i < n; i++) {
        bool same = i > 0 && params[i - 1].stage == params[i].stage;
        if (!same) end = 0;
        ck_assert_uint_eq(params[i].offset, end);
        end += pl_param_size(&params[i]);
        ck_assert_int_ge(params[i].stage, i ? params[i - 1].stage : 0);
        if (same && params[i - 1].kind == PL_PARAM_BALANCE)
            ck_assert_int_eq(params[i].kind, PL_PARAM_BALANCE);
        if (params[i].kind == PL_PARAM_VECTOR) ck_assert_int_eq(params[i].rows, 1);
    }
    ck_assert_int_eq(params[n - 1].stage, P - 1);
}

START_TEST(counts_are_those_of_sim)
{
    const char *name = pl_builtin_names("models")[_i];
    struct pl_model m = preset(name);
    const int cuts[] = {1, 2, 7};
    for (int k = 0; k < 3; k++) {
        struct pl_param *params;
        int n, rc = pl_net_params(&m, cuts[k], &n, &params);
        if (m.kv_lora_rank) {
            ck_assert_int_eq(rc, PL_EUNSUP);
            ck_assert_ptr_null(params);
            ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.kv_lora_rank"));
            return;
        }
        ck_assert_msg(rc == 0, "%s: %s", name, pl_error_text());
        ck_assert_msg(total(params, n) == pl_model_params(&m), "%s: %llu, not %llu",
                      name, (unsigned long long)total(params, n),
                      (unsigned long long)pl_model_params(&m));
        check_order(params, n, cuts[k]);
        free(params);
    }
}
END_TEST

/* Every mixture of the switches: the tables of sim/ and train/ are two lists. */
START_TEST(counts_of_mixtures)
{
    for (int bits = 0; bits < 1 << 9; bits++) {
        struct pl_model m = {.layers = 3,
                             .hidden = 8,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 6,
                             .ffn = 5,
                             .vocab = 7,
                             .rope_theta = 100,
                             .tied = bits & 1,
                             .norm = (enum pl_norm)(bits >> 1 & 1),
                             .mlp = (enum pl_mlp)(bits >> 2 & 1),
                             .bias = (enum pl_bias)(bits >> 3 & 3),
                             .qk_norm = (enum pl_qk_norm)(bits >> 5 & 3) % 3,
                             .positions = bits & 16 ? 9 : 0};
        if (bits >> 7) {
            m.experts = 1 + bits % 3;
            m.experts_per_token = 1;
            m.expert_ffn = 3;
            m.dense_layers = bits >> 8;
            m.shared_ffn = bits & 4 ? 4 : 0;
            m.shared_gate = m.shared_ffn && bits & 8;
            m.router_bias = bits & 32;
        }
        struct pl_param *params;
        int n;
        ck_assert_msg(pl_net_params(&m, 2, &n, &params) == 0, "%s", pl_error_text());
        ck_assert_msg(total(params, n) == pl_model_params(&m), "mixture %d", bits);
        check_order(params, n, 2);
        free(params);
    }
}
END_TEST

static const struct {
    const char *preset, *name;
    int rows, cols;
    enum pl_param_kind kind;
} tensors[] = {
    {"gpt-2-small", "model.embed_tokens.weight", 50257, 768, PL_PARAM_EMBED},
    {"gpt-2-small", "model.embed_positions.weight", 1024, 768, PL_PARAM_EMBED},
    {"gpt-2-small", "model.layers.3.input_layernorm.bias", 1, 768, PL_PARAM_VECTOR},
    {"gpt-2-small", "model.layers.11.self_attn.k_proj.bias", 1, 768, PL_PARAM_VECTOR},
    {"gpt-2-small", "model.layers.0.self_attn.o_proj.bias", 1, 768, PL_PARAM_VECTOR},
    {"gpt-2-small", "model.layers.0.mlp.up_proj.weight", 3072, 768, PL_PARAM_MATRIX},
    {"gpt-2-small", "model.layers.0.mlp.up_proj.bias", 1, 3072, PL_PARAM_VECTOR},
    {"gpt-2-small", "model.norm.bias", 1, 768, PL_PARAM_VECTOR},
    {"qwen2-7b", "model.layers.5.self_attn.v_proj.bias", 1, 512, PL_PARAM_VECTOR},
    {"qwen3-8b", "model.layers.5.self_attn.k_norm.weight", 1, 128, PL_PARAM_VECTOR},
    {"olmoe-1b-7b", "model.layers.5.self_attn.q_norm.weight", 1, 2048, PL_PARAM_VECTOR},
    {"olmoe-1b-7b", "model.layers.2.mlp.gate.weight", 64, 2048, PL_PARAM_MATRIX},
    {"olmoe-1b-7b", "model.layers.15.mlp.experts.63.down_proj.weight", 2048, 1024,
     PL_PARAM_MATRIX},
    {"qwen1.5-moe-a2.7b", "model.layers.0.mlp.shared_expert.up_proj.weight", 5632, 2048,
     PL_PARAM_MATRIX},
    {"qwen1.5-moe-a2.7b", "model.layers.0.mlp.shared_expert_gate.weight", 1, 2048,
     PL_PARAM_VECTOR},
};

START_TEST(names_are_hugging_face)
{
    struct pl_model m = preset(tensors[_i].preset);
    struct pl_param *params;
    int n, found = 0;
    ck_assert_int_eq(pl_net_params(&m, 2, &n, &params), 0);
    for (int i = 0; i < n; i++) {
        if (strcmp(params[i].name, tensors[_i].name)) continue;
        found++;
        ck_assert_int_eq(params[i].rows, tensors[_i].rows);
        ck_assert_int_eq(params[i].cols, tensors[_i].cols);
        ck_assert_int_eq(params[i].kind, tensors[_i].kind);
    }
    ck_assert_msg(found == 1, "%d tensors %s", found, tensors[_i].name);
    free(params);
}
END_TEST

START_TEST(selection_biases)
{
    struct pl_model m = preset("olmoe-1b-7b");
    m.router_bias = true;
    m.shared_ffn = 100;
    struct pl_param *params;
    int n, biases = 0, shared = 0;
    ck_assert_int_eq(pl_net_params(&m, 4, &n, &params), 0);
    for (int i = 0; i < n; i++) {
        biases += params[i].kind == PL_PARAM_BALANCE && params[i].cols == m.experts &&
                  strstr(params[i].name, ".mlp.gate.e_score_correction_bias");
        shared +=
            strstr(params[i].name, ".mlp.shared_experts.down_proj.weight") != NULL;
    }
    ck_assert_int_eq(biases, m.layers);
    ck_assert_int_eq(shared, m.layers);
    ck_assert_uint_eq(total(params, n), pl_model_params(&m));
    free(params);
}
END_TEST

START_TEST(refused)
{
    struct pl_model m = preset("mixtral-8x7b");
    struct pl_param *params;
    int n;
    ck_assert_int_eq(pl_net_params(&m, m.layers + 1, &n, &params), PL_ECONFIG);
    ck_assert_int_eq(pl_net_params(&m, 0, &n, &params), PL_ECONFIG);
    m.layers = 10000;
    m.experts = 65536;
    ck_assert_int_eq(pl_net_params(&m, 1, &n, &params), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.experts"));
    m = preset("smollm-135m");
    m.vocab = m.hidden = 1 << 17;
    ck_assert_int_eq(pl_net_params(&m, 1, &n, &params), PL_ECONFIG);
    ck_assert(n == 0 && !params);
}
END_TEST

static void fill(TCase *t)
{
    int presets = 0;
    while (pl_builtin_names("models")[presets]) presets++;
    if (presets < 30) abort();
    tcase_add_loop_test(t, counts_are_those_of_sim, 0, presets);
    tcase_add_test(t, counts_of_mixtures);
    tcase_add_loop_test(t, names_are_hugging_face, 0,
                        (int)(sizeof tensors / sizeof *tensors));
    tcase_add_test(t, selection_biases);
    tcase_add_test(t, refused);
}

int main(void)
{
    return run_tests("net_params", fill);
}
