/* Sweeps: the points of a configuration, the file of finished rows under damage. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/sweep.h"
#include "tests/runner.h"
#include "tests/sweep_case.h"

static size_t read_file(char *data, size_t room)
{
    FILE *in = fopen(path, "rb");
    size_t n = fread(data, 1, room, in);
    fclose(in);
    return n;
}

START_TEST(points_are_the_product)
{
    static const int stages[] = {1, 2, 3, 4, 16, 64, 100, 115, 130};
    static const int lists[] = {1, 2, 1};
    struct pl_config *config = load(three_keys), *point = NULL;
    ck_assert_int_eq(pl_config_n_swept(config), 3);
    ck_assert_str_eq(pl_config_swept(config, 1), "schedule.stages");
    ck_assert_int_eq(pl_config_n_points(config), 2 * 9 * 3);
    ck_assert(!pl_config_swept_lists(config, 1) && pl_config_swept_lists(config, 2));
    for (int i = 53; i >= 0; i--) { /* in any order */
        int n;
        pl_config_point(config, i, &point);
        ck_assert_str_eq(pl_config_text(point, "schedule.name"),
                         i / 27 ? "2bw" : "1f1b");
        ck_assert_int_eq(pl_config_int(point, "schedule.stages"), stages[i / 3 % 9]);
        ck_assert_int_eq(pl_config_times(point, "cost.forward", &n)[0],
                         i % 3 == 2 ? 3000000000 : 1000000000);
        ck_assert_int_eq(n, lists[i % 3]);
        ck_assert_int_eq(pl_config_int(point, "schedule.updates"), 2);
        ck_assert_int_eq(pl_config_n_swept(point), 0);
    }
    pl_config_free(point);
    pl_config_free(config);
}
END_TEST

START_TEST(settings_fix_a_key)
{
    struct pl_config *config = load(three_keys), *point = NULL;
    ck_assert_int_eq(pl_config_set(config, "schedule.stages=7", "--set"), 0);
    ck_assert_int_eq(pl_config_n_points(config), 2 * 3);
    ck_assert_int_eq(pl_config_n_values(config, 1), 1);
    pl_config_point(config, 4, &point);
    ck_assert_int_eq(pl_config_int(point, "schedule.stages"), 7);
    ck_assert_str_eq(pl_config_text(point, "schedule.name"), "2bw");
    pl_config_free(point);
    pl_config_free(config);
}
END_TEST

START_TEST(printed_sweep_reads_back)
{
    struct pl_config *config = load(three_keys);
    ck_assert_int_eq(pl_config_set(config, "schedule.name=1f1b", "--set"), 0);
    char *text = pl_config_dump(config, false);
    struct pl_config *back = load(text);
    char *again = pl_config_dump(back, false);
    ck_assert_str_eq(text, again);
    ck_assert_int_eq(pl_config_n_points(back), 9 * 3);
    free(text);
    free(again);
    pl_config_free(back);
    pl_config_free(config);
}
END_TEST

/* A preset supplies what neither the file nor the point gives. */
START_TEST(presets_are_swept)
{
    struct pl_config *config = load("model.hidden: 640\n"
                                    "sweep:\n"
                                    "  model.preset: [smollm-135m, llama-3-8b]\n"
                                    "  model.heads: [5, 10]\n");
    struct pl_config *point = NULL;
    for (int i = 7; i >= 0; i--) {
        ck_assert_int_eq(pl_config_point(config, i % 4, &point), 0);
        ck_assert_int_eq(pl_config_int(point, "model.layers"), i % 4 / 2 ? 32 : 30);
        ck_assert_int_eq(pl_config_int(point, "model.hidden"), 640);
        ck_assert_int_eq(pl_config_int(point, "model.heads"), i % 2 ? 10 : 5);
    }
    char *text = pl_config_dump(config, false);
    struct pl_config *back = load(text), *other = NULL;
    ck_assert_int_eq(pl_config_point(back, 3, &other), 0);
    ck_assert_int_eq(pl_config_int(other, "model.layers"), 32);
    free(text);
    pl_config_free(other);
    pl_config_free(back);
    pl_config_free(point);
    pl_config_free(config);
    config = load("sweep: {model.preset: [smollm-135m, llama-3-8x]}\n");
    struct pl_sweep sweep;
    ck_assert_int_eq(pl_sweep_new(config, "x", &sweep), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), ":1:37: unknown model preset"));
    pl_config_free(config);
}
END_TEST

static const struct {
    const char *text, *complaint;
} bad[] = {
    {"sweep: 3\n", ":1:8: expected a map of key: list of values"},
    {"sweep: [1]\n", ":1:8: expected a map"},
    {"sweep: {schedule.stages: []}\n", ":1:26: an empty list for 'schedule.stages'"},
    {"sweep:\n  schedule.stages: [1, 0]\n", ":2:24: schedule.stages is 0"},
    {"sweep:\n  schedule.stages: [1, 2, 1]\n", ":2:20: sweep: schedule.stages has the "
                                               "value 1 twice"},
    {"sweep:\n  schedule.stages: [1..4, 3]\n", "has the value 3 twice"},
    {"sweep:\n  schedule.stages: 8..2\n",
     ":2:20: schedule.stages is '8..2', expected a "
     "range"},
    {"sweep:\n  schedule.stages: 0..8 x2\n", "expected a range"},
    {"sweep:\n  schedule.stages: 1..8 x1\n", "expected a range"},
    {"sweep:\n  schedule.stages: 1..8 +0\n", "expected a range"},
    {"sweep:\n  schedule.stages: 1..8 2\n", "expected a range"},
    {"sweep:\n  schedule.stages: 1..99999\n", "4097, expected 1 to 4096"},
    {"sweep:\n  schedule.microbatches: 0..100000\n", "has more than 100000 values"},
    {"sweep:\n  schedule.microbatches: 0..999999999999999999\n",
     "has more than 100000 values"},
    {"sweep:\n  schedule.nam: [2bw]\n", "did you mean 'schedule.name'"},
    {"sweep:\n  schedule.name: [2bw, 2bx]\n", ":2:24: unknown schedule.name '2bx'"},
    {"sweep:\n  schedule: {name: {a: 2bw}}\n", ":2:20: a map, expected one value for"},
    {"sweep:\n  cost.forward: [[1ms, 2kg]]\n", "kg"},
    {"sweep:\n  optimizer.lr: [[1, 2]]\n", "a list, expected one value for"},
    {"sweep:\n  seeds: [1, 2]\n", ":2:3: a sweep cannot vary 'seeds'"},
    {"sweep: {schedule.stages: 1, schedule: {stages: 2}}\n", "duplicate key"},
    {"axes: {a: {b: {sweep: {schedule.stages: 1}}}}\n", "an arm cannot set 'sweep'"},
    {"sweap: {schedule.stages: 1}\n", "did you mean 'sweep'"},
};

START_TEST(bad_sweep_is_refused)
{
    struct pl_config *config = pl_config_new();
    write_file(bad[_i].text, strlen(bad[_i].text));
    ck_assert_int_eq(pl_config_load(config, path), PL_ECONFIG);
    ck_assert_msg(strstr(pl_error_text(), bad[_i].complaint), "%s", pl_error_text());
    pl_config_free(config);
}
END_TEST

START_TEST(too_many_points)
{
    struct pl_config *config = load("sweep:\n"
                                    "  schedule.microbatches: 1..10000\n"
                                    "  schedule.stages: 1..4096\n"
                                    "  schedule.updates: 1..90000\n"
                                    "  train.updates: 1..90000\n"
                                    "  train.batch: 1..90000\n");
    struct pl_sweep sweep;
    ck_assert_int_eq(pl_config_n_points(config), INT64_MAX);
    ck_assert_int_eq(pl_sweep_new(config, "x.yaml", &sweep), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "x.yaml: sweep: more than 10000000"));
    pl_config_free(config);
    config = pl_config_new();
    ck_assert_int_eq(pl_sweep_new(config, "x.yaml", &sweep), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "nothing to sweep"));
    pl_config_free(config);
}
END_TEST

/* The file of rows */

enum { POINTS = 24 };

static const char small[] = "sweep:\n"
                            "  schedule.name: [1f1b, 2bw]\n"
                            "  schedule.stages: 1..4\n"
                            "  schedule.microbatches: [1, 2, 3]\n";

static void add_row(struct pl_sweep *sweep, int64_t i, double makespan,
                    const char *status)
{
    struct pl_sweep_result result = {.makespan_s = makespan, .bubble = 0.5};
    struct pl_bytes bytes = {0};
    pl_sweep_encode(&bytes, i, &result, status);
    ck_assert_msg(!pl_sweep_take(sweep, &bytes), "%s", pl_error_text());
    ck_assert_uint_eq(bytes.n, 0);
    free(bytes.data);
}

/* All rows but the last two, in an order of their own; the size of the file after each
 * is in ends. */
static size_t write_rows(const struct pl_config *config, size_t *ends, char *data,
                         size_t room)
{
    struct pl_sweep sweep;
    unlink(path);
    ck_assert_int_eq(pl_sweep_new(config, "x", &sweep), 0);
    ck_assert_msg(!pl_sweep_keep(&sweep, path, false), "%s", pl_error_text());
    ends[0] = read_file(data, room);
    for (int k = 1; k <= POINTS - 2; k++) {
        int64_t i = (k * 5) % POINTS; /* 5 and 24 have no common factor */
        add_row(&sweep, i, 1.0 / (double)(i + 1), i == 10 ? "no: 2bw" : "ok");
        ends[k] = read_file(data, room);
    }
    ck_assert_int_eq(sweep.done, POINTS - 2);
    pl_sweep_free(&sweep);
    return ends[POINTS - 2];
}

/* The number of rows that a file of these bytes still holds, each of them right; -1
 * when it is refused. */
static int64_t rows_of(const struct pl_config *config, const void *data, size_t n)
{
    struct pl_sweep sweep;
    write_file(data, n);
    ck_assert_int_eq(pl_sweep_new(config, "x", &sweep), 0);
    int code = pl_sweep_keep(&sweep, path, false);
    int64_t rows = code ? -1 : sweep.done, seen = 0;
    for (int64_t i = 0; i < POINTS && !code; i++) {
        if (!sweep.status[i]) continue;
        seen++;
        ck_assert_double_eq(sweep.results[i].makespan_s, 1.0 / (double)(i + 1));
        ck_assert_str_eq(sweep.status[i], i == 10 ? "no: 2bw" : "ok");
    }
    if (!code) {
        ck_assert_int_eq(seen, rows);
        for (int64_t i = 0; i < POINTS; i++) /* goes on behind what was whole */
            if (!sweep.status[i])
                add_row(&sweep, i, 1.0 / (double)(i + 1), i == 10 ? "no: 2bw" : "ok");
    }
    pl_sweep_free(&sweep);
    if (code) return -1;
    ck_assert_int_eq(pl_sweep_new(config, "x", &sweep), 0);
    ck_assert_int_eq(pl_sweep_keep(&sweep, path, false), 0);
    ck_assert_int_eq(sweep.done, POINTS);
    pl_sweep_free(&sweep);
    return rows;
}

START_TEST(rows_survive_any_cut)
{
    static char data[1 << 16], copy[1 << 16];
    size_t ends[POINTS];
    struct pl_config *config = load(small);
    size_t n = write_rows(config, ends, data, sizeof data);
    for (size_t cut = 0; cut <= n; cut += 7) {
        int whole = 0;
        while (whole + 1 <= POINTS - 2 && ends[whole + 1] <= cut) whole++;
        ck_assert_int_eq(rows_of(config, data, cut), whole);
    }
    for (size_t at = ends[0]; at < n; at += 11) { /* one bit wrong in a row */
        memcpy(copy, data, n);
        copy[at] ^= 4;
        int before = 0;
        while (ends[before + 1] <= at) before++;
        ck_assert_int_eq(rows_of(config, copy, n), before);
    }
    for (size_t at = 0; at < ends[0]; at += 3) { /* not this sweep */
        memcpy(copy, data, n);
        copy[at] ^= 4;
        ck_assert_int_eq(rows_of(config, copy, n), -1);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), "rows of another sweep"));
    }
    pl_config_free(config);
}
END_TEST

START_TEST(rows_of_another_sweep)
{
    static char data[1 << 16];
    size_t ends[POINTS];
    struct pl_config *config = load(small);
    size_t n = write_rows(config, ends, data, sizeof data);
    struct pl_config *other = load(small);
    ck_assert_int_eq(pl_config_set(other, "cost.forward=2ms", "--set"), 0);
    ck_assert_int_eq(rows_of(other, data, n), -1);
    pl_config_free(other);
    /* the same words, but the file that a key names has changed */
    char *named = pl_printf("cost.profile=%s.txt", path),
         *file = strchr(named, '=') + 1;
    for (int change = 0; change < 2; change++) {
        FILE *out = fopen(file, "w");
        fprintf(out, "a file of version %d", change);
        fclose(out);
        other = load(small);
        ck_assert_int_eq(pl_config_set(other, named, "--set"), 0);
        if (!change) n = write_rows(other, ends, data, sizeof data);
        ck_assert_int_eq(rows_of(other, data, n), change ? -1 : POINTS - 2);
        if (!change) pl_config_free(other);
    }
    unlink(file);
    free(named);
    write_file(data, n);
    struct pl_sweep sweep, second;
    ck_assert_int_eq(pl_sweep_new(other, "x", &sweep), 0);
    ck_assert_int_eq(pl_sweep_keep(&sweep, path, true), 0); /* --force */
    ck_assert_int_eq(sweep.done, 0);
    ck_assert_int_eq(pl_sweep_new(other, "x", &second), 0);
    ck_assert_int_eq(pl_sweep_keep(&second, path, true), PL_EUSAGE);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "in use"));
    pl_sweep_free(&second);
    pl_sweep_drop(&sweep);
    ck_assert_int_ne(access(path, F_OK), 0);
    pl_sweep_free(&sweep);
    pl_config_free(other);
    pl_config_free(config);
}
END_TEST

int main(void)
{
    pl_cmd_register_families();
    Suite *suite = suite_create("sweep");
    TCase *config = tcase_create("config"), *rows = tcase_create("rows");
    tcase_add_checked_fixture(config, enter, leave);
    tcase_add_test(config, points_are_the_product);
    tcase_add_test(config, settings_fix_a_key);
    tcase_add_test(config, printed_sweep_reads_back);
    tcase_add_test(config, presets_are_swept);
    tcase_add_loop_test(config, bad_sweep_is_refused, 0, sizeof bad / sizeof *bad);
    tcase_add_test(config, too_many_points);
    tcase_add_checked_fixture(rows, enter, leave);
    tcase_add_test(rows, rows_survive_any_cut);
    tcase_add_test(rows, rows_of_another_sweep);
    suite_add_tcase(suite, config);
    suite_add_tcase(suite, rows);
    return run_suite(suite);
}
