/* Models to config.json and back: every built-in model that has a type of Hugging Face
 * is the same after the way there and back. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/builtin.h"
#include "base/err.h"
#include "base/mem.h"
#include "sim/model_hf.h"
#include "tests/runner.h"

static char path[64];

static struct pl_model preset(const char *name)
{
    struct pl_model m = {0};
    struct pl_config *config = pl_config_new();
    int rc = pl_config_set_value(config, "model.preset", name, "test");
    if (!rc) rc = pl_config_resolve(config);
    if (!rc) rc = pl_model_read(config, &m);
    ck_assert_msg(!rc, "%s: %s", name, pl_error_text());
    pl_config_free(config);
    return m;
}

static void write_text(const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static int write_model(const struct pl_model *m)
{
    FILE *f = fopen(path, "w");
    int rc = pl_model_hf_write(m, 2048, "float32", f);
    ck_assert_int_eq(fclose(f), 0);
    return rc;
}

#define SAME(member) ck_assert_msg(a->member == b->member, "%s: " #member, name)

static void same(const struct pl_model *a, const struct pl_model *b, const char *name)
{
    SAME(layers);
    SAME(hidden);
    SAME(heads);
    SAME(kv_heads);
    SAME(head_dim);
    SAME(vocab);
    SAME(tied);
    if (!a->positions) SAME(rope_theta);
    SAME(norm_eps);
    SAME(norm);
    SAME(mlp);
    SAME(bias);
    SAME(qk_norm);
    SAME(positions);
    SAME(dropout);
    SAME(experts);
    SAME(experts_per_token);
    SAME(shared_ffn);
    SAME(shared_gate);
    SAME(router_bias);
    SAME(dense_layers);
    SAME(scoring);
    SAME(norm_topk);
    SAME(routed_scale);
    SAME(aux_loss);
    if (a->experts) SAME(expert_ffn);
    if (a->experts == 0 || a->dense_layers) SAME(ffn);
    ck_assert_msg(pl_model_params(a) == pl_model_params(b), "%s: parameters", name);
}

START_TEST(there_and_back)
{
    static const char *const known[] = {"llama", "gpt2",  "qwen2",   "qwen2_moe",
                                        "qwen3", "olmoe", "mixtral", "qwen3_moe"};
    bool seen[8] = {false};
    pl_model_register();
    for (const char *const *name = pl_builtin_names("models"); *name; name++) {
        struct pl_model m = preset(*name), back;
        const char *type = pl_model_hf_type(&m);
        char *read;
        if (!type) {
            ck_assert_int_eq(write_model(&m), PL_EUNSUP);
            continue;
        }
        ck_assert_msg(!write_model(&m), "%s: %s", *name, pl_error_text());
        ck_assert_msg(!pl_model_hf_read(path, &back, &read), "%s: %s", *name,
                      pl_error_text());
        ck_assert_str_eq(read, type);
        free(read);
        same(&m, &back, *name);
        for (int i = 0; i < 8; i++) seen[i] |= !strcmp(known[i], type);
    }
    for (int i = 0; i < 8; i++) ck_assert_msg(seen[i], "%s", known[i]);
}
END_TEST

static const char llama[] = "\"model_type\":\"llama\",\"num_hidden_layers\":2,"
                            "\"hidden_size\":16,\"num_attention_heads\":2,"
                            "\"intermediate_size\":24,\"vocab_size\":64";

/* Defaults of transformers' configuration classes where the file says nothing. */
START_TEST(defaults_of_types)
{
    static const struct {
        const char *type;
        double norm_eps, rope_theta;
    } cases[] = {{"llama", 1e-6, 1e4}, {"qwen2", 1e-6, 1e4}, {"qwen3", 1e-6, 1e4}};
    pl_model_register();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pl_model m;
        char *type, *text = pl_printf("{%.14s%s%s}", llama, cases[i].type, llama + 19);
        write_text(text);
        ck_assert_msg(!pl_model_hf_read(path, &m, &type), "%s", pl_error_text());
        ck_assert_str_eq(type, cases[i].type);
        ck_assert(m.norm_eps == cases[i].norm_eps);
        ck_assert(m.rope_theta == cases[i].rope_theta);
        free(type);
        free(text);
    }
}
END_TEST

START_TEST(settings_beyond_the_keys)
{
    static const struct {
        const char *more, *place; /* NULL: it is taken */
    } cases[] = {
        {"\"rope_scaling\":null", NULL},
        {"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}", "rope_scaling"},
        {"\"rope_parameters\":{\"rope_theta\":777,\"rope_type\":\"default\"}", NULL},
        {"\"rope_parameters\":{\"rope_type\":\"yarn\"}", "rope_parameters.rope_type"},
        {"\"hidden_act\":\"silu\"", NULL},
        {"\"hidden_act\":\"relu\"", "hidden_act"},
        {"\"use_sliding_window\":true", "use_sliding_window"},
        {"\"clip_qkv\":8.0", "clip_qkv"},
    };
    pl_model_register();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pl_model m;
        char *type, *text = pl_printf("{%s,%s}", llama, cases[i].more);
        write_text(text);
        int rc = pl_model_hf_read(path, &m, &type);
        if (cases[i].place) {
            ck_assert_int_eq(rc, PL_EUNSUP);
            ck_assert_msg(strstr(pl_error_text(), cases[i].place) != NULL, "%s",
                          pl_error_text());
        } else {
            ck_assert_msg(!rc, "%s", pl_error_text());
            ck_assert_str_eq(type, "llama");
            ck_assert(m.rope_theta == (strstr(text, "777") ? 777 : 10000));
            free(type);
        }
        free(text);
    }
}
END_TEST

static void setup(void)
{
    strcpy(path, "/tmp/test_model_hf.XXXXXX.json");
    int fd = mkstemps(path, 5);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

static void fill(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, there_and_back);
    tcase_add_test(tests, defaults_of_types);
    tcase_add_test(tests, settings_beyond_the_keys);
}

int main(void)
{
    return run_tests("model_hf", fill);
}
