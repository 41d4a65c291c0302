/* The presets inside the program: each is there, reads as a configuration and sets the
 * keys of its own group only. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/builtin.h"
#include "base/config.h"
#include "base/err.h"
#include "tests/runner.h"

/* Read a text as a configuration file. */
static int load(struct pl_config *config, const char *text)
{
    char path[] = "/tmp/pipelag-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    int rc = pl_config_load(config, path);
    unlink(path);
    return rc;
}

/* Keys that the text gives outside GROUP.*; -1: it does not load. */
static int foreign_keys(const char *text, const char *group)
{
    struct pl_config *config = pl_config_new();
    int n = load(config, text) ? -1 : 0;
    for (const struct pl_key *k = pl_keys; k->name && n >= 0; k++)
        n += pl_config_given(config, k->name) &&
             strncmp(k->name, group, strlen(group)) != 0;
    pl_config_free(config);
    return n;
}

START_TEST(each_preset_loads)
{
    int n = 0;
    for (const struct pl_builtin_kind *k = pl_builtin_kinds; k->kind; k++)
        for (int i = 0; k->names[i]; i++, n++) {
            char group[40];
            snprintf(group, sizeof group, "%.*s.", (int)strlen(k->kind) - 1, k->kind);
            const char *text = pl_builtin_text(k->kind, k->names[i]);
            ck_assert_ptr_eq(text, k->texts[i]); /* no name twice */
            ck_assert_msg(foreign_keys(text, group) == 0, "%s/%s: %s", k->kind,
                          k->names[i], pl_error_text());
        }
    ck_assert_int_ge(n, 5);
    ck_assert_int_eq(foreign_keys("model: {layers: 2}\ntrain: {seq: 2}\n", "model."),
                     1);
    ck_assert_int_eq(foreign_keys("model: {layer: 2}\n", "model."), -1);
}
END_TEST

START_TEST(names)
{
    const char *const *models = pl_builtin_names("models");
    int n = 0;
    while (models[n] && strcmp(models[n], "smollm-135m")) n++;
    ck_assert_ptr_nonnull(models[n]);
    ck_assert_ptr_nonnull(strstr(pl_builtin_text("models", "smollm-135m"), "576"));
    ck_assert_ptr_nonnull(strstr(pl_builtin_text("models", "llama-3-405b"), "16384"));
    ck_assert_ptr_null(strstr(pl_builtin_text("models", "llama-3-8b"), "16384"));
    ck_assert_ptr_null(pl_builtin_text("models", "smollm"));
    ck_assert_ptr_null(pl_builtin_text("model", "smollm-135m"));
    ck_assert_ptr_null(pl_builtin_names("planets")[0]);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, each_preset_loads);
    tcase_add_test(t, names);
}

int main(void)
{
    return run_tests("builtin", fill);
}
