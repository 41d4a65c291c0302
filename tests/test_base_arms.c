/* Arms of an experiment, --set, registered names, misspelled keys. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "tests/config_case.h"
#include "tests/runner.h"

START_TEST(misspelled_key_is_named)
{
    const char *name = pl_keys[_i].name;
    struct pl_config *config = pl_config_new();
    for (size_t drop = 0; name[drop]; drop++) {
        char *wrong = pl_printf("%.*s%s", (int)drop, name, name + drop + 1);
        int rc = pl_config_set_value(config, wrong, "1", "--set");
        if (rc)
            ck_assert_msg(strstr(pl_error_text(), "did you mean"), "%s",
                          pl_error_text());
        free(wrong);
    }
    ck_assert_int_eq(pl_config_set_value(config, "zzzzzzzzzzzzzzzzzz", "1", "x"),
                     PL_ECONFIG);
    pl_config_free(config);
}
END_TEST

START_TEST(arms_are_the_product)
{
    struct pl_config *config = pl_config_new(), *arm;
    int rc =
        load_text(config, "optimizer: {lr: 0.5}\n"
                          "axes:\n"
                          "  optimizer:\n"
                          "    adamw: {optimizer: {name: adamw}, optimizer.lr: 0.25}\n"
                          "    muon: {optimizer: {name: muon}, train.seq: 7}\n"
                          "    plain:\n"
                          "  pipeline:\n"
                          "    sync: {schedule: {name: 1f1b}}\n"
                          "    async: {schedule: {name: 2bw}}\n");
    ck_assert_msg(!rc, "%s", pl_error_text());
    ck_assert_int_eq(pl_config_set(config, "train.seq=9", "--set"), 0);
    ck_assert_int_eq(pl_config_n_axes(config), 2);
    ck_assert_str_eq(pl_config_axis(config, 1), "pipeline");
    ck_assert_int_eq(pl_config_n_labels(config, 0), 3);
    ck_assert_str_eq(pl_config_label(config, 0, 2), "plain");
    ck_assert_int_eq(pl_config_n_arms(config), 6);
    static const char *const names[] = {"adamw", "muon",
                                        "adamw"}; /* plain: the default */
    static const double rates[] = {0.25, 0.5, 0.5};
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(pl_config_arm_label(config, i, 0), i / 2);
        ck_assert_int_eq(pl_config_arm_label(config, i, 1), i % 2);
        ck_assert_int_eq(pl_config_arm(config, i, &arm), 0);
        ck_assert_str_eq(pl_config_text(arm, "optimizer.name"), names[i / 2]);
        ck_assert_double_eq(pl_config_real(arm, "optimizer.lr"), rates[i / 2]);
        ck_assert_str_eq(pl_config_text(arm, "schedule.name"), i % 2 ? "2bw" : "1f1b");
        ck_assert_int_eq(pl_config_int(arm, "train.seq"), 9); /* --set wins */
        ck_assert_int_eq(pl_config_n_arms(arm), 1);
        pl_config_free(arm);
    }
    ck_assert_int_eq(pl_config_arm(config, 5, &arm), 0);
    char *where = pl_printf("%s:9:30", path);
    ck_assert_str_eq(pl_config_where(arm, "schedule.name"), where);
    ck_assert_str_eq(pl_config_where(arm, "train.seq"), "--set");
    free(where);
    pl_config_free(arm);
    pl_config_free(config);
}
END_TEST

START_TEST(set_before_load_wins)
{
    struct pl_config *config = pl_config_new();
    ck_assert_int_eq(pl_config_set(config, "train.seq=9", "--set"), 0);
    ck_assert_int_eq(pl_config_set(config, "seeds=4,5", "--set"), 0);
    ck_assert_int_eq(pl_config_set(config, "title=a=b", "--set"), 0);
    ck_assert_int_eq(
        load_text(config, "title: x\nseeds: [1]\ntrain: {seq: 1, batch: 2}"), 0);
    ck_assert_int_eq(pl_config_int(config, "train.seq"), 9);
    ck_assert_int_eq(pl_config_int(config, "train.batch"), 2);
    ck_assert_int_eq(pl_config_n_seeds(config), 2);
    ck_assert_str_eq(pl_config_title(config), "a=b");
    pl_config_free(config);
}
END_TEST

START_TEST(bad_assignments)
{
    static const char *const bad[][2] = {
        {"train.seq", "expected KEY=VALUE"},
        {"=3", "expected KEY=VALUE"},
        {"", "expected KEY=VALUE"},
        {"train=3", "group of keys"},
        {"axes=3", "in a file"},
        {"seeds=", "seed ''"},
        {"seeds=1,1", "given twice"},
        {"seeds=-1", "seed '-1'"},
        {"seeds=18446744073709551616", "18446744073709551615"},
        {"lr=1", "did you mean 'optimizer.lr'?"},
        {"shedule.name=x", "did you mean 'schedule.name'?"},
        {"<<=1", "merge keys"},
        {"title=\xff", "UTF-8"},
    };
    struct pl_config *config = pl_config_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(pl_config_set(config, bad[i][0], "--set"), PL_ECONFIG);
        ck_assert_msg(strstr(pl_error_text(), bad[i][1]), "%s", pl_error_text());
    }
    pl_config_free(config);
}
END_TEST

START_TEST(registered_names)
{
    static const char *const names[] = {"gpipe", "1f1b", NULL};
    struct pl_config *config = pl_config_new();
    ck_assert_ptr_null(pl_config_choices("schedule.name"));
    ck_assert_int_eq(pl_config_set(config, "schedule.name=any", "--set"), 0);
    pl_config_register("schedule.name", names);
    ck_assert_ptr_eq(pl_config_choices("schedule.name"), names);
    ck_assert_int_eq(pl_config_set(config, "schedule.name=gpipe", "--set"), 0);
    ck_assert_int_eq(pl_config_set(config, "schedule.name=gpip", "--set"), PL_ECONFIG);
    ck_assert_str_eq(pl_error_text(),
                     "--set: unknown schedule.name 'gpip', did you mean 'gpipe'?");
    ck_assert_str_eq(pl_config_text(config, "schedule.name"), "gpipe");
    ck_assert_ptr_nonnull(pl_config_choices("clip.scope"));
    pl_config_free(config);
}
END_TEST

START_TEST(wrong_type_is_a_bug)
{
    struct pl_config *config = pl_config_new();
    fclose(stderr); /* the assertion's own line */
    pl_config_int(config, "optimizer.lr");
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_loop_test(t, misspelled_key_is_named, 0, n_keys());
    tcase_add_test(t, arms_are_the_product);
    tcase_add_test(t, set_before_load_wins);
    tcase_add_test(t, bad_assignments);
    tcase_add_test(t, registered_names);
    tcase_add_test_raise_signal(t, wrong_type_is_a_bug, 6);
}

int main(void)
{
    return run_tests("arms", fill);
}
