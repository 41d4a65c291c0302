/* The YAML reader: what it must accept, the one clear line for what it must refuse, and
 * bytes that must not crash it. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/config_case.h"
#include "tests/runner.h"

/* Text, and the message after "FILE:". */
static const struct {
    const char *text, *message;
} bad[] = {
    {"shedule: {name: x}", "1:1: unknown key 'shedule', did you mean 'schedule'?"},
    {"shedule.name: x",
     "1:1: unknown key 'shedule.name', did you mean 'schedule.name'?"},
    {"schedule:\n  nmae: x",
     "2:3: unknown key 'schedule.nmae', did you mean 'schedule.name'?"},
    {"lr: 1", "1:1: unknown key 'lr', did you mean 'optimizer.lr'?"},
    {"title: a\n<<: {x: 1}", "2:1: merge keys (<<) are not supported, write the keys"},
    {"schedule: {name: {a: 1}}", "1:18: a map, expected one value for 'schedule.name'"},
    {"schedule: {stages: [8]}",
     "1:20: a list, expected one value for 'schedule.stages'"},
    {"schedule: 3", "1:11: expected a map of keys under 'schedule'"},
    {"schedule: [1]", "1:11: expected a map of keys under 'schedule'"},
    {"schedule.stages:", "1:17: no value for 'schedule.stages'"},
    {"schedule.stages: ~", "1:18: no value for 'schedule.stages'"},
    {"schedule.stages: eight",
     "1:18: schedule.stages is 'eight', expected an integer in "
     "plain decimal digits, such as 1000"},
    {"schedule.microbatches: 1000000000000",
     "1:24: schedule.microbatches is 1000000000000, expected 0 to 1048576"},
    {"cost.forward: 3", "1:15: cost.forward: '3' has no unit, expected one of: "
                        "ps ns us ms s min h"},
    {"cost.forward: 3 GB",
     "1:15: cost.forward: '3 GB': unknown unit 'GB', expected one of: "
     "ps, ns, us, ms, s, min, h"},
    {"cost.forward: [1 ms, {a: 1}]",
     "1:22: a map, expected one value for 'cost.forward'"},
    {"cost.forward: []", "1:15: an empty list for 'cost.forward'"},
    {"train.seq: 1\ntrain: {seq: 2}",
     "2:9: duplicate key 'train.seq', first given in line 1"},
    {"train.seq: 1\n\"train.seq\": 2", "2:1: duplicate key 'train.seq'"},
    {"train: {seq: 1}\ntrain: {batch: 2}", "2:1: duplicate key 'train'"},
    {"train:\n\tseq: 1", "2:1: a tab in the indentation, use spaces"},
    {"train.seq: 1\n---\ntrain.seq: 2", "2:1: a second YAML document, expected one"},
    {"train.seq: 1\n...\n{", "3:1: did not find expected <document start>"},
    {"- 1", "1:1: expected a map"},
    {"text", "1:1: expected a map"},
    {"[a, b]: 1", "1:1: expected the name of a key"},
    {"'': 1", "1:1: expected the name of a key"},
    {"schedule: {name: *x}", "1:18: no anchor (complete) for alias x"},
    {"schedule: &x {name: *x}", "1:21: no anchor (complete) for alias x"},
    {"title: \"a\\0b\"", "1:8: a NUL character in 'title'"},
    {"title: [a]", "1:8: a list, expected one value for 'title'"},
    {"seeds: {a: 1}", "1:8: a map, expected one value for 'seeds'"},
    {"seeds: []", "1:8: an empty list for 'seeds'"},
    {"seeds: [1, -1]",
     "1:8: seed '-1', expected an integer from 0 to 18446744073709551615"},
    {"seeds: [1, 01, 1]", "1:8: seed 01 is given twice"},
    {"train.seq: \"1\\n2\"", "1:12: train.seq has a control character"},
    {"clip.scope: \"a\\n2\"", "1:13: clip.scope has a control character"},
    {"seeds: \"a\\n2\"", "1:8: seeds has a control character"},
    {"\"a\\n2\": 1", "1:1: a control character in the name of a key"},
    {"axes: [a]", "1:7: expected a map of axis: labels for 'axes'"},
    {"axes: {a: }", "1:11: expected a map of label: overrides for axis 'a'"},
    {"axes: {a: {}}", "1:11: expected a map of label: overrides for axis 'a'"},
    {"axes: {a: {x: {}, x: {}}}", "1:19: duplicate key 'x'"},
    {"axes: {a: {x: {}}, a: {y: {}}}", "1:20: duplicate key 'a'"},
    {"axes: {a: {x: 3}}", "1:15: expected a map"},
    {"axes: {a: {a b: {}}}",
     "1:12: expected a name of at most 64 of A-Z a-z 0-9 _ . -, not "
     "'a b'"},
    {"axes: {a: {..: {}}}", "1:12: expected a name with a letter or digit, not '..'"},
    {"axes: {.: {x: {}}}", "1:8: expected a name with a letter or digit, not '.'"},
    {"axes: {a: {x: {seeds: 3}}}", "1:16: an arm cannot set 'seeds'"},
    {"axes: {a: {x: {axes: {}}}}", "1:16: an arm cannot set 'axes'"},
    {"axes: {a: {x: {train.seq: 0}}}", "1:27: train.seq is 0, expected 1 to 1048576"},
    {"axes: {a: {x: {train.seq: 1, train: {seq: 2}}}}",
     "1:38: duplicate key 'train.seq', first given in line 1"},
    {"title: \xff", "1:8: invalid leading UTF-8 octet"},
    {"title: x\n\x01", "2:1: control characters are not allowed"},
};

START_TEST(bad_text_gets_one_line)
{
    struct pl_config *config = pl_config_new();
    int rc = load_text(config, bad[_i].text);
    char *expected = pl_printf("%s:%s", path, bad[_i].message);
    ck_assert_msg(rc == PL_ECONFIG, "%s: %d", bad[_i].text, rc);
    ck_assert_str_eq(pl_error_text(), expected);
    free(expected);
    pl_config_free(config);
}
END_TEST

START_TEST(keys_in_both_forms)
{
    const struct pl_key *k = &pl_keys[_i];
    const char *dot = strchr(k->name, '.');
    char *text[2] = {pl_printf("%s: \"%s\"\n", k->name, k->fallback),
                     dot ? pl_printf("%.*s:\n  %s: '%s'\n", (int)(dot - k->name),
                                     k->name, dot + 1, k->fallback)
                         : pl_printf("'%s': '%s'", k->name, k->fallback)};
    for (int i = 0; i < 2; i++) {
        struct pl_config *config = pl_config_new();
        ck_assert_msg(!load_text(config, text[i]), "%s", pl_error_text());
        ck_assert(pl_config_given(config, k->name));
        ck_assert_int_eq(strncmp(pl_config_where(config, k->name), path, strlen(path)),
                         0);
        for (const struct pl_key *other = pl_keys; other->name; other++)
            ck_assert(other == k || !pl_config_given(config, other->name));
        pl_config_free(config);
        free(text[i]);
    }
}
END_TEST

START_TEST(every_key_wants_a_scalar)
{
    for (int list = 0; list < 2; list++) {
        char *text = pl_printf("%s: %s", pl_keys[_i].name, list ? "[[1]]" : "{a: 1}");
        struct pl_config *config = pl_config_new();
        ck_assert_int_eq(load_text(config, text), PL_ECONFIG);
        ck_assert_msg(strstr(pl_error_text(), "expected one value for"), "%s",
                      pl_error_text());
        free(text);
        pl_config_free(config);
    }
}
END_TEST

START_TEST(accepted_text)
{
    static const char *const texts[] = {
        "",        "\n",           "# only a comment\n",
        "---\n",   "---\n...\n",   "{}",
        "~",       "\xef\xbb\xbf", "schedule:\n",
        "axes:\n", "axes: {}",     "%YAML 1.1\n---\n{}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct pl_config *config = pl_config_new();
        ck_assert_msg(!load_text(config, texts[i]), "%zu: %s", i, pl_error_text());
        ck_assert_int_eq(pl_config_n_seeds(config), 1);
        ck_assert_uint_eq(pl_config_seed(config, 0), 1);
        ck_assert_int_eq(pl_config_n_arms(config), 1);
        pl_config_free(config);
    }
}
END_TEST

START_TEST(aliases_and_lists)
{
    static const char text[] = "schedule: &s {stages: &n 4}\n"
                               "train: {seq: *n, replay: YES}\n"
                               "cost: {forward: &t [1 ms, 2us], backward: *t}\n"
                               "seeds: 3\n"
                               "axes: {a: {x: {schedule: *s}, \"no\": }}\n";
    struct pl_config *config = pl_config_new(), *arm;
    int n;
    ck_assert_msg(!load_text(config, text), "%s", pl_error_text());
    ck_assert_int_eq(pl_config_int(config, "train.seq"), 4);
    ck_assert(pl_config_bool(config, "train.replay"));
    const pl_tick *ticks = pl_config_times(config, "cost.backward", &n);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(ticks[1], 2000000);
    ck_assert_uint_eq(pl_config_seed(config, 0), 3);
    ck_assert_str_eq(pl_config_label(config, 0, 1), "no");
    ck_assert_int_eq(pl_config_arm(config, 0, &arm), 0);
    ck_assert_int_eq(pl_config_int(arm, "schedule.stages"), 4);
    pl_config_free(arm);
    pl_config_free(config);
}
END_TEST

START_TEST(unreadable_files)
{
    struct pl_config *config = pl_config_new();
    ck_assert_int_eq(pl_config_load(config, "/nonexistent/x.yaml"), PL_EINPUT);
    ck_assert_str_eq(pl_error_text(), "/nonexistent/x.yaml: No such file or directory");
    ck_assert_int_eq(pl_config_load(config, "/tmp"), PL_EINPUT);
    ck_assert_str_eq(pl_error_text(), "/tmp: Is a directory");
    ck_assert_int_eq(truncate(path, 100 << 20), 0); /* sparse */
    ck_assert_int_eq(pl_config_load(config, path), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "larger than 16.0 MiB"));
    pl_config_free(config);
}
END_TEST

/* Text repeated n times, as a file that must end in one line of complaint. */
static void refuse_repeated(const char *before, const char *piece, int n)
{
    struct pl_config *config = pl_config_new();
    size_t used = strlen(before), size = strlen(piece);
    char *text = pl_alloc(used + size * (size_t)n + 1, 1);
    memcpy(text, before, used);
    for (int i = 0; i < n; i++, used += size) memcpy(text + used, piece, size);
    ck_assert_int_eq(load_bytes(config, text, used), PL_ECONFIG);
    ck_assert_int_eq(strncmp(pl_error_text(), path, strlen(path)), 0);
    ck_assert_ptr_null(strchr(pl_error_text(), '\n'));
    free(text);
    pl_config_free(config);
}

START_TEST(pathological_files)
{
    refuse_repeated("", "[", 100000);
    refuse_repeated("", "{a: ", 100000);
    refuse_repeated("", "- ", 3000);
    refuse_repeated("axes: {a: {x: ", "{schedule: ", 40);
    refuse_repeated("", "\xff", 100000);
    refuse_repeated("", "x", 1000000);
    refuse_repeated("title: \"", "x", 1000000);
    refuse_repeated("axes: &a {a: {b: ", "*a", 1);
    refuse_repeated("cost.forward: [1 ms", ", 1 ms", 5000);
    refuse_repeated("cost.forward: [1 ms", ", 1 ms", 5000);
}
END_TEST

START_TEST(too_many_arms)
{
    char *text = pl_alloc(100000, 1), *p = text;
    p += sprintf(p, "axes:\n");
    for (int a = 0; a < 5; a++) {
        p += sprintf(p, "  a%d: {", a);
        for (int l = 0; l < 10; l++) p += sprintf(p, "l%d: {}, ", l);
        p += sprintf(p, "}\n");
    }
    struct pl_config *config = pl_config_new();
    ck_assert_int_eq(load_text(config, text), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "more than 10000 arms"));
    pl_config_free(config);
    free(text);
}
END_TEST

/* Random damage to a good file: read or refused in one line that starts with the place.
 */
START_TEST(damaged_files)
{
    static const char good[] =
        "title: \"t\\u00e9\"\nseeds: [1, 2]\nschedule: &s {name: 2bw}\n"
        "cost:\n  forward: [1 ms, 2 ms]\ntrain:\n  seq: 4 # c\n"
        "axes:\n  a: {x: {schedule: *s}, y: }\n  b:\n    z:\n"
        "      train.seq: 3\n";
    static const char signs[] = "{}[]:,-#&*!|>'\"%@`\t\n ?~\\\xff\xc3\xa9 019aE.";
    int accepted = 0, refused = 0;
    for (uint32_t trial = 0; trial < 6000; trial++) {
        char text[sizeof good + 16];
        size_t n = sizeof good - 1;
        memcpy(text, good, n);
        for (uint32_t i = 0; i < 1 + trial % 3; i++) {
            uint32_t r[4];
            pl_rng_bits(5, PL_RNG_TEST, trial, i, r);
            size_t at = r[0] % n;
            if (r[1] % 4 == 0) { /* delete a few bytes */
                size_t cut = 1 + r[2] % 9;
                if (cut > n - at) cut = n - at;
                memmove(text + at, text + at + cut, n - at - cut);
                n -= cut;
            } else {
                text[at] = signs[r[2] % (sizeof signs - 1)];
            }
            if (!n) break;
        }
        struct pl_config *config = pl_config_new();
        if (load_bytes(config, text, n)) {
            refused++;
            ck_assert_msg(!strncmp(pl_error_text(), path, strlen(path)), "%s",
                          pl_error_text());
        } else {
            accepted++;
            char *copy = pl_config_dump(config, false);
            struct pl_config *again = pl_config_new();
            ck_assert_msg(!load_bytes(again, copy, strlen(copy)), "%s\n%s",
                          pl_error_text(), copy);
            pl_config_free(again);
            free(copy);
        }
        pl_config_free(config);
    }
    ck_assert_int_gt(accepted, 100); /* both ways were taken */
    ck_assert_int_gt(refused, 100);
}
END_TEST

static void fill(TCase *t)
{
    int n_keys = 0;
    while (pl_keys[n_keys].name) n_keys++;
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_loop_test(t, bad_text_gets_one_line, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_loop_test(t, keys_in_both_forms, 0, n_keys);
    tcase_add_loop_test(t, every_key_wants_a_scalar, 0, n_keys);
    tcase_add_test(t, accepted_text);
    tcase_add_test(t, aliases_and_lists);
    tcase_add_test(t, unreadable_files);
    tcase_add_test(t, pathological_files);
    tcase_add_test(t, too_many_arms);
    tcase_add_test(t, damaged_files);
}

int main(void)
{
    return run_tests("yaml", fill);
}
