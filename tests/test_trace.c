/* Traces: every table of the schema survives a file, equal traces are equal bytes, a
 * difference is found and named, writing is whole or not at all. */
#include <config.h>
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/runner.h"
#include "tests/trace_sample.h"
#include "traces/table.h"

enum { SEEDS = 12 };

static char dir[] = "/tmp/pipelag-trace-XXXXXX";
static char path_a[64], path_b[64];

static void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path_a, sizeof path_a, "%s/a.h5", dir);
    snprintf(path_b, sizeof path_b, "%s/b.h5", dir);
}

static void teardown(void)
{
    unlink(path_a);
    unlink(path_b);
    ck_assert_int_eq(rmdir(dir), 0); /* no temporary stays behind */
}

static void same_bytes(const char *a, const char *b)
{
    char *x, *y;
    size_t n, m;
    ck_assert_int_eq(pl_file_read(a, 1 << 30, &x, &n), 0);
    ck_assert_int_eq(pl_file_read(b, 1 << 30, &y, &m), 0);
    ck_assert_uint_eq(n, m);
    ck_assert(!memcmp(x, y, n));
    free(x);
    free(y);
}

START_TEST(roundtrip)
{
    struct pl_trace *t = sample_trace((uint64_t)_i, _i < 2 ? _i : 200), *back = NULL;
    ck_assert_int_eq(pl_trace_write(t, path_a), 0);
    ck_assert_msg(!pl_trace_read(path_a, &back), "%s", pl_error_text());
    char *difference = pl_trace_diff(t, back, 0);
    ck_assert_msg(!difference, "%s", difference);
    ck_assert_int_eq(pl_trace_write(back, path_b), 0);
    same_bytes(path_a, path_b);
    const char **arms;
    ck_assert_int_eq(pl_trace_arms(back, &arms), 3);
    ck_assert_str_eq(arms[0], "zeta+2bw"); /* order of insertion, not of names */
    ck_assert_str_eq(arms[1], "adamw+gpipe");
    free(arms);
    for (const struct pl_table_type *type = pl_table_types; type->pattern; type++) {
        const char **paths;
        int n = pl_trace_tables(back, type->pattern, &paths);
        ck_assert_int_eq(n, !strchr(type->pattern, '<')       ? 1
                            : strstr(type->pattern, "<seed>") ? 4
                                                              : 3);
        free(paths);
    }
    pl_trace_free(t);
    pl_trace_free(back);
}
END_TEST

START_TEST(several_chunks)
{
    enum { N = 200000 };
    struct pl_trace *t = pl_trace_new(), *back = NULL;
    for (const struct pl_table_type *type = pl_table_types; type == pl_table_types;
         type++)
        for (const struct pl_column *c = type->columns; c->name; c++)
            sample_column(t, "/arms/x/timeline", c, N, 3);
    ck_assert_int_eq(pl_trace_write(t, path_a), 0);
    ck_assert_msg(!pl_trace_read(path_a, &back), "%s", pl_error_text());
    char *difference = pl_trace_diff(t, back, 0);
    ck_assert_msg(!difference, "%s", difference);
    pl_trace_free(t);
    pl_trace_free(back);
}
END_TEST

/* One change in each column of each table, and its name in the difference. */
START_TEST(differences)
{
    struct pl_trace *t = sample_trace(5, 20);
    for (int g = 0; g < t->n; g++)
        for (int v = 0; v < t->groups[g]->n_values; v++) {
            struct pl_trace *other = sample_trace(5, 20);
            struct pl_values *values = &other->groups[g]->values[v];
            if (!values->n) {
                pl_trace_free(other);
                continue;
            }
            int64_t last = values->n - 1;
            if (values->i64)
                values->i64[last] = (values->i64[last] % PL_N_KINDS + 1) % PL_N_KINDS;
            if (values->f64) values->f64[last] = 0.123;
            if (values->text) {
                free(values->text[last]);
                values->text[last] = pl_strdup("changed");
            }
            char expected[256];
            snprintf(expected, sizeof expected, "%s/%s[%d]: ", other->groups[g]->path,
                     values->column->name, (int)last);
            char *difference = pl_trace_diff(t, other, 0);
            ck_assert_ptr_nonnull(difference);
            ck_assert_msg(!strncmp(difference, expected, strlen(expected)), "%s | %s",
                          difference, expected);
            free(difference);
            pl_trace_free(other);
        }
    pl_trace_free(t);
}
END_TEST

static void expect_difference(struct pl_trace *a, struct pl_trace *b,
                              const char *expected)
{
    char *difference = pl_trace_diff(a, b, 1e-6);
    ck_assert_ptr_nonnull(difference);
    ck_assert_str_eq(difference, expected);
    free(difference);
}

START_TEST(difference_of_shape)
{
    struct pl_trace *a = pl_trace_new(), *b = pl_trace_new();
    double x[] = {1, 2, 3}, y[] = {1, 2 + 1e-7, 3};
    pl_trace_f64(a, "/table", "gap", 3, x);
    pl_trace_f64(b, "/table", "gap", 3, y);
    ck_assert_ptr_null(pl_trace_diff(a, b, 1e-6));
    pl_trace_f64(b, "/table", "gap", 2, y);
    expect_difference(a, b, "/table/gap: 3 vs 2 rows");
    pl_trace_f64(b, "/table", "gap", 3, y);
    pl_trace_f64(b, "/table", "recovered", 3, y);
    expect_difference(a, b, "/table/recovered: only in the second");
    expect_difference(b, a, "/table/recovered: only in the first");
    pl_trace_f64(a, "/table", "recovered", 3, y);
    pl_trace_attr_int(b, "/arms/q", "P", 1);
    expect_difference(a, b, "/arms/q: only in the second");
    pl_trace_attr_int(a, "/arms/q", "P", 2);
    expect_difference(a, b, "/arms/q/@P: 2 vs 1");
    pl_trace_free(a);
    pl_trace_free(b);
}
END_TEST

START_TEST(replaces_and_reads)
{
    struct pl_trace *t = pl_trace_new();
    int64_t i[] = {1, 2}, n = 9, integer;
    double real;
    pl_trace_i64(t, "/table", "diverged", 2, i);
    pl_trace_i64(t, "/table", "diverged", 1, i + 1);
    ck_assert_int_eq(*pl_trace_get_i64(t, "/table", "diverged", &n), 2);
    ck_assert_int_eq(n, 1);
    ck_assert_ptr_null(pl_trace_get_f64(t, "/table", "gap", &n));
    ck_assert_int_eq(n, 0);
    pl_trace_attr_text(t, "/", "device", "ref");
    pl_trace_attr_text(t, "/", "device", pl_trace_get_attr_text(t, "/", "device"));
    ck_assert_str_eq(pl_trace_get_attr_text(t, "/", "device"), "ref");
    ck_assert(!pl_trace_get_attr_real(t, "/", "device", &real));
    pl_trace_attr_real(t, "/", "device", 2.5);
    ck_assert(pl_trace_get_attr_real(t, "/", "device", &real) && real == 2.5);
    ck_assert(!pl_trace_get_attr_int(t, "/", "device", &integer));
    pl_trace_free(t);
}
END_TEST

START_TEST(unknown_column_is_a_bug)
{
    double x = 1;
    pl_trace_f64(pl_trace_new(), "/table", "nonsense", 1, &x);
}
END_TEST

/* A write that cannot finish leaves the old file and no temporary. */
START_TEST(disk_full)
{
    struct pl_trace *t = sample_trace(1, 50), *back = NULL;
    ck_assert_int_eq(pl_trace_write(t, path_a), 0);
    struct pl_trace *large = sample_trace(2, 5000);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {100000, 100000};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(pl_trace_write(large, path_a), PL_EIO);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), path_a));
    ck_assert_int_eq(pl_trace_read(path_a, &back), 0);
    ck_assert_ptr_null(pl_trace_diff(t, back, 0));
    pl_trace_free(back);
    pl_trace_free(large);
    pl_trace_free(t);
}
END_TEST

START_TEST(no_such_folder)
{
    struct pl_trace *t = pl_trace_new();
    ck_assert_int_eq(pl_trace_write(t, "/nonexistent/x.h5"), PL_EIO);
    pl_trace_free(t);
}
END_TEST

START_TEST(csv)
{
    struct pl_trace *t = pl_trace_new();
    const char *arms[] = {"a", "b \"c\", d"};
    double step[] = {0.5, NAN};
    pl_trace_text(t, "/table", "arm", 2, arms);
    pl_trace_f64(t, "/table", "step_s", 2, step);
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    ck_assert_int_eq(pl_trace_csv(t, "/table", f), 0);
    ck_assert_int_eq(pl_trace_csv(t, "/tabel", f), PL_EINPUT);
    fclose(f);
    ck_assert_str_eq(text, "arm,step_s [s]\na,0.5\n\"b \"\"c\"\", d\",nan\n");
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "did you mean '/table'"));
    free(text);
    pl_trace_free(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *t = tcase_create("trace");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, roundtrip, 0, SEEDS);
    tcase_add_test(t, several_chunks);
    tcase_add_test(t, differences);
    tcase_add_test(t, difference_of_shape);
    tcase_add_test(t, replaces_and_reads);
    tcase_add_test(t, disk_full);
    tcase_add_test(t, no_such_folder);
    tcase_add_test(t, csv);
    suite_add_tcase(s, t);
    TCase *bugs = tcase_create("bugs");
    tcase_add_test_raise_signal(bugs, unknown_column_is_a_bug, SIGABRT);
    suite_add_tcase(s, bugs);
    return run_suite(s);
}
