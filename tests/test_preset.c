/* Presets in the configuration: who wins, arms, printing and reading back, files. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "tests/runner.h"

static char folder[] = "/tmp/pipelag-test-XXXXXX";

static void enter(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave(void)
{
    static const char *const names[] = {"a.yaml", "preset.yaml", "x.toy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(names[i]);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

/* The configuration of a text, resolved; settings end with NULL. */
static int read_text(const char *text, const char *setting, struct pl_config **out)
{
    put("a.yaml", text);
    *out = pl_config_new();
    int rc = pl_config_load(*out, "a.yaml");
    if (!rc && setting) rc = pl_config_set(*out, setting, "--set");
    return rc ? rc : pl_config_resolve(*out);
}

static struct pl_config *good(const char *text, const char *setting)
{
    struct pl_config *config;
    int rc = read_text(text, setting, &config);
    ck_assert_msg(!rc, "%s", pl_error_text());
    return config;
}

static void expect_failure(const char *text, const char *setting, const char *message)
{
    struct pl_config *config;
    ck_assert_int_lt(read_text(text, setting, &config), 0);
    ck_assert_msg(strstr(pl_error_text(), message) != NULL, "\"%s\" lacks \"%s\"",
                  pl_error_text(), message);
    pl_config_free(config);
}

static int64_t layers(const struct pl_config *config)
{
    return pl_config_int(config, "model.layers");
}

START_TEST(everything_else_wins)
{
    struct pl_config *c = good("model: {preset: llama-3-8b}\n", NULL);
    ck_assert_int_eq(layers(c), 32);
    ck_assert_int_eq(pl_config_int(c, "model.hidden"), 4096);
    ck_assert_str_eq(pl_config_where(c, "model.layers"), "model preset 'llama-3-8b'");
    ck_assert(!pl_config_given(c, "model.experts"));
    pl_config_free(c);
    c = good("model: {layers: 5, preset: llama-3-8b}\n", NULL);
    ck_assert_int_eq(layers(c), 5);
    ck_assert_int_eq(pl_config_int(c, "model.hidden"), 4096);
    pl_config_free(c);
    c = good("model: {layers: 5, preset: llama-3-8b}\n", "model.layers=6");
    ck_assert_int_eq(layers(c), 6);
    pl_config_free(c);
    /* an explicit value that equals the default counts too */
    c = good("model: {layers: 8, preset: llama-3-8b}\n", NULL);
    ck_assert_int_eq(layers(c), 8);
    pl_config_free(c);
}
END_TEST

START_TEST(resolving_again_replaces)
{
    struct pl_config *c = good("model: {preset: qwen3-8b}\n", NULL);
    ck_assert_str_eq(pl_config_text(c, "model.qk_norm"), "head");
    ck_assert_int_eq(pl_config_set(c, "model.preset=llama-3-70b", "--set"), 0);
    ck_assert_int_eq(pl_config_resolve(c), 0);
    ck_assert_int_eq(layers(c), 80);
    ck_assert_str_eq(pl_config_text(c, "model.qk_norm"), "none"); /* default again */
    ck_assert_int_eq(pl_config_set(c, "model.preset=", "--set"), 0);
    ck_assert_int_eq(pl_config_resolve(c), 0);
    ck_assert_int_eq(layers(c), 8);
    ck_assert(!pl_config_given(c, "model.layers"));
    pl_config_free(c);
}
END_TEST

static const char arms[] = "model: {vocab: 1000, preset: gpt-2-small}\n"
                           "axes: {size: {small: {model: {preset: smollm-135m}},\n"
                           "  large: {model: {preset: llama-3-8b, layers: 3}}, plain: "
                           "{}, none: {model: {preset: ''}}}}\n";

static void check_arms(const struct pl_config *config)
{
    static const int want[][2] = {{30, 576}, {3, 4096}, {12, 768}, {8, 64}};
    ck_assert_int_eq(pl_config_n_arms(config), 4);
    for (int i = 0; i < 4; i++) {
        struct pl_config *arm;
        ck_assert_int_eq(pl_config_arm(config, i, &arm), 0);
        ck_assert_int_eq(layers(arm), want[i][0]);
        ck_assert_int_eq(pl_config_int(arm, "model.hidden"), want[i][1]);
        ck_assert_int_eq(pl_config_int(arm, "model.vocab"), 1000);
        pl_config_free(arm);
    }
}

START_TEST(arms_choose)
{
    struct pl_config *c = good(arms, NULL);
    ck_assert_int_eq(layers(c), 12);
    check_arms(c);
    char *all = pl_config_dump(c, false), *given = pl_config_dump(c, true);
    ck_assert_ptr_null(strstr(all, "\nmodel.layers:")); /* left to the arms */
    ck_assert_ptr_nonnull(strstr(all, "model.vocab: 1000"));
    ck_assert_ptr_null(strstr(given, "model.hidden:"));
    ck_assert_ptr_nonnull(strstr(given, "model.preset: gpt-2-small"));
    struct pl_config *again = good(all, NULL);
    check_arms(again);
    pl_config_free(again);
    free(all);
    free(given);
    pl_config_free(c);
    c = good(arms, "model.preset=smollm-360m"); /* wins over the arms */
    struct pl_config *arm;
    ck_assert_int_eq(pl_config_arm(c, 2, &arm), 0);
    ck_assert_int_eq(layers(arm), 32);
    pl_config_free(arm);
    all = pl_config_dump(c, false);
    ck_assert_ptr_nonnull(strstr(all, "model.layers: 32"));
    free(all);
    pl_config_free(c);
}
END_TEST

START_TEST(arm_with_unknown_preset)
{
    struct pl_config *c = good("axes: {a: {x: {model: {preset: gpt-2-smal}}}}\n", NULL);
    struct pl_config *arm = NULL;
    ck_assert_int_eq(pl_config_arm(c, 0, &arm), PL_ECONFIG);
    ck_assert_ptr_null(arm);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "did you mean 'gpt-2-small'"));
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "a.yaml:1:"));
    pl_config_free(c);
}
END_TEST

START_TEST(files)
{
    put("preset.yaml", "# mine\nmodel: {layers: 3, hidden: 32}\n");
    struct pl_config *c = good("model: {preset: preset.yaml}\n", NULL);
    ck_assert_int_eq(layers(c), 3);
    ck_assert_str_eq(pl_config_where(c, "model.layers"), "preset.yaml:2:17");
    pl_config_free(c);
    const char *use = "model: {preset: ./preset.yaml}\n";
    put("preset.yaml", "model: {layers: 3}\ntrain: {seq: 4}\n");
    expect_failure(use, NULL, "preset.yaml:2:1: 'train' in a model preset");
    put("preset.yaml", "modelx: {layers: 3}\n");
    expect_failure(use, NULL, "'modelx' in a model preset");
    put("preset.yaml", "seeds: [1]\n");
    expect_failure(use, NULL, "'seeds' in a model preset, expected keys model.* only");
    put("preset.yaml", "model: {layer: 3}\n");
    expect_failure(use, NULL, "preset.yaml:1:9: unknown key 'model.layer'");
    put("preset.yaml", "model: {layers: x}\n");
    expect_failure(use, NULL, "preset.yaml:1:17: model.layers is 'x'");
    put("preset.yaml", "model: {layers: 3, layers: 4}\n");
    expect_failure(use, NULL, "duplicate key");
    put("preset.yaml", "model: {preset: gpt-2-small}\n");
    expect_failure(use, NULL, "a preset cannot choose a preset");
    put("preset.yaml", "model: {layers: 3\n");
    expect_failure(use, NULL, "preset.yaml:2:1");
    put("preset.yaml", "");
    c = good(use, NULL);
    ck_assert_int_eq(layers(c), 8);
    pl_config_free(c);
    expect_failure("model: {preset: ./absent.yaml}\n", NULL, "absent.yaml");
    expect_failure("model: {preset: llama}\n", NULL,
                   "a.yaml:1:17: unknown model preset");
}
END_TEST

static int toy(const char *path, char **yaml)
{
    if (access(path, R_OK)) return pl_fail(PL_EINPUT, "%s: absent", path);
    *yaml = pl_strdup("model.layers: 7\n");
    return 0;
}

START_TEST(imports)
{
    pl_config_register_import("model", ".toy", toy);
    expect_failure("model: {preset: x.toy}\n", NULL, "x.toy: absent");
    put("x.toy", "anything");
    struct pl_config *c = good("model: {preset: x.toy}\n", NULL);
    ck_assert_int_eq(layers(c), 7);
    ck_assert_str_eq(pl_config_where(c, "model.layers"), "x.toy");
    pl_config_free(c);
    /* a text without a file, for one group */
    c = pl_config_new();
    ck_assert_int_eq(pl_config_set(c, "model.hidden=16", "--set"), 0);
    ck_assert_int_eq(
        pl_config_preset(c, "model: {hidden: 8, layers: 4}", "text", "model", false),
        0);
    ck_assert_int_eq(layers(c), 4);
    ck_assert_int_eq(pl_config_int(c, "model.hidden"), 16);
    ck_assert_int_eq(pl_config_preset(c, "model: {layers: 4}", "text", "link", false),
                     PL_ECONFIG);
    pl_config_free(c);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_test(t, everything_else_wins);
    tcase_add_test(t, resolving_again_replaces);
    tcase_add_test(t, arms_choose);
    tcase_add_test(t, arm_with_unknown_preset);
    tcase_add_test(t, files);
    tcase_add_test(t, imports);
}

int main(void)
{
    return run_tests("preset", fill);
}
