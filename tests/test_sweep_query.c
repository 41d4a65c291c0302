/* Questions to the table of a sweep: rows by --where, --sort and --top. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/sweep.h"
#include "cli/sweep_query.h"
#include "tests/runner.h"
#include "tests/sweep_case.h"

enum { ROWS = 6 };

static struct pl_trace *sample(void)
{
    static const char *const names[ROWS] = {"zb-h1", "1f1b", "zb-h1",
                                            "2bw",   "2bw",  "1f1b"};
    static const char *const status[ROWS] = {"ok", "ok", "ok", "m < P", "ok", "ok"};
    static const int64_t stages[ROWS] = {2, 2, 4, 4, 8, 8};
    static const double forward[ROWS] = {1e-3, 2e-3, 1e-3, 2e-3, 1e-3, 2e-3};
    double values[ROWS];
    struct pl_trace *t = pl_trace_new();
    pl_trace_text(t, "/sweep", "schedule.name", ROWS, names);
    pl_trace_i64(t, "/sweep", "schedule.stages", ROWS, stages);
    pl_trace_f64(t, "/sweep", "cost.forward", ROWS, forward);
    const struct pl_column *c = pl_schema_table("/sweep")->columns;
    for (; c->name; c++) {
        if (c->optional || c->type != PL_COLUMN_F64) continue;
        for (int i = 0; i < ROWS; i++)
            values[i] = !strcmp(c->name, "step_s")   ? (double[]){3, 1, 2, NAN, 1, 2}[i]
                        : !strcmp(c->name, "bubble") ? 0.1 * i
                                                     : 2;
        pl_trace_f64(t, "/sweep", c->name, ROWS, values);
    }
    pl_trace_text(t, "/sweep", "status", ROWS, status);
    return t;
}

static const struct {
    const char *where, *sort;
    int top;
    const char *rows;
} questions[] = {
    {NULL, NULL, 0, "012345"},
    {NULL, NULL, 4, "0123"},
    {"step_s<=2", NULL, 0, "1245"},
    {"step_s != 2", NULL, 0, "014"},
    {"step_s<1500 ms", NULL, 0, "14"},
    {"cost.forward = 1ms", NULL, 0, "024"},
    {"forward>0.0015 and stages>=4", NULL, 0, "35"},
    {"schedule.name=zb-*", NULL, 0, "02"},
    {"schedule.name!=2bw and status=ok", NULL, 0, "0125"},
    {"schedule == '2bw'", NULL, 0, "34"},
    {"step_s<tau_max", NULL, 0, "14"},
    {"bubble>0.05", "step_s", 0, "14253"},
    {NULL, "step_s", 0, "142503"},
    {NULL, "-step_s", 0, "025143"},
    {NULL, "schedule.name,-stages", 0, "514320"},
    {"stages>100", "step_s", 3, ""},
};

START_TEST(question_is_answered)
{
    struct pl_trace *t = sample();
    struct pl_sweep_view view;
    struct pl_sweep_query query;
    ck_assert_int_eq(pl_sweep_view_new(t, "x", &view), 0);
    ck_assert_msg(
        !pl_sweep_query_new(&view, questions[_i].where, questions[_i].sort, &query),
        "%s", pl_error_text());
    int64_t *rows, matching;
    int64_t n = pl_sweep_query_rows(&query, &view, questions[_i].top, &rows, &matching);
    char got[ROWS + 1] = "";
    for (int64_t i = 0; i < n; i++) got[i] = (char)('0' + rows[i]);
    ck_assert_str_eq(got, questions[_i].rows);
    ck_assert(matching >= n && (questions[_i].top || matching == n));
    free(rows);
    pl_sweep_query_free(&query);
    pl_sweep_view_free(&view);
    pl_trace_free(t);
}
END_TEST

static const struct {
    const char *where, *sort, *complaint;
} wrong[] = {
    {"bubbel<0.1", NULL, "--where: unknown column 'bubbel', did you mean 'bubble'?"},
    {NULL, "-bubbel", "--sort: unknown column 'bubbel', did you mean 'bubble'?"},
    {NULL, "bubble,", "--sort: unknown column ''"},
    {"bubble", NULL, "'bubble', expected COLUMN OP VALUE"},
    {"", NULL, "expected COLUMN OP VALUE"},
    {"<3", NULL, "expected COLUMN OP VALUE"},
    {"bubble<", NULL, "compared with '', expected a number"},
    {"bubble<0.1x", NULL, "'0.1x', expected a number"},
    {"bubble<3ms", NULL, "'3ms', expected a number"},
    {"bubble<nan", NULL, "'nan', expected a number"},
    {"step_s<3kg", NULL, "expected a number of seconds or a duration"},
    {"bubble<0.1 and ", NULL, "expected COLUMN OP VALUE"},
    {"schedule.name<2bw", NULL, "is text, expected = or !="},
};

START_TEST(wrong_question_is_refused)
{
    struct pl_config *config = load(three_keys);
    struct pl_sweep_view view;
    struct pl_sweep_query query;
    pl_sweep_view_planned(config, &view); /* before there are any rows */
    ck_assert_int_eq(pl_sweep_query_new(&view, wrong[_i].where, wrong[_i].sort, &query),
                     PL_EUSAGE);
    ck_assert_msg(strstr(pl_error_text(), wrong[_i].complaint), "%s", pl_error_text());
    pl_sweep_view_free(&view);
    pl_config_free(config);
}
END_TEST

/* What is planned is what a finished sweep has. */
START_TEST(planned_columns_are_there)
{
    struct pl_config *config = load(three_keys), *point = NULL;
    struct pl_sweep_view planned, view;
    struct pl_sweep sweep;
    pl_sweep_view_planned(config, &planned);
    ck_assert_int_eq(pl_sweep_new(config, "x", &sweep), 0);
    struct pl_bytes bytes = {0};
    for (int64_t i = 0; i < sweep.n; i++) pl_sweep_point(&sweep, i, &point, &bytes);
    ck_assert_int_eq(pl_sweep_take(&sweep, &bytes), 0);
    free(bytes.data);
    struct pl_trace *t = pl_trace_new();
    pl_sweep_record(&sweep, t);
    ck_assert_int_eq(pl_sweep_view_new(t, "x", &view), 0);
    ck_assert_int_eq(view.n, sweep.n);
    ck_assert_int_eq(view.n_columns, planned.n_columns);
    for (int c = 0; c < view.n_columns; c++)
        ck_assert_ptr_eq(view.columns[c].type, planned.columns[c].type);
    const char *const *lists =
        pl_trace_get_text(t, "/sweep", "cost.forward.stages", NULL);
    const double *mean = pl_trace_get_f64(t, "/sweep", "cost.forward", NULL);
    ck_assert_str_eq(lists[1], "[1 ms, 2 ms]");
    ck_assert_double_eq(mean[1], 1.5e-3);
    ck_assert_ptr_nonnull(strstr(sweep.status[1], "cost.forward")); /* P = 1, 2 costs */
    pl_trace_free(t);
    pl_sweep_view_free(&planned);
    pl_sweep_view_free(&view);
    pl_sweep_free(&sweep);
    pl_config_free(point);
    pl_config_free(config);
}
END_TEST

static void fill(TCase *t)
{
    pl_cmd_register_families();
    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_loop_test(t, question_is_answered, 0,
                        sizeof questions / sizeof *questions);
    tcase_add_loop_test(t, wrong_question_is_refused, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, planned_columns_are_there);
}

int main(void)
{
    return run_tests("sweep_query", fill);
}
