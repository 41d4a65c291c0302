/* The Gantt chart as text. */
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/trace_sample.h"
#include "traces/figure.h"

static char *draw(const struct pl_gantt *gantt, int width)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(f);
    pl_gantt_ascii(gantt, width, f);
    fclose(f);
    return text;
}

START_TEST(ascii)
{
    int8_t kind[] = {PL_KIND_F,  PL_KIND_F,  PL_KIND_BW, PL_KIND_F, PL_KIND_BW,
                     PL_KIND_BW, PL_KIND_BW, PL_KIND_F,  PL_KIND_U};
    int32_t device[] = {0, 0, 1, 1, 1, 0, 0, 1, 0};
    int64_t micro[] = {0, 1, 0, 0, 1, 0, 1, 1, 0};
    int64_t start[] = {0, 1, 2, 1, 5, 4, 7, 4, 9}, end[] = {1, 2, 4, 2, 7, 6, 9, 5, 9};
    for (int i = 0; i < 9; i++) {
        start[i] *= 1000000;
        end[i] *= 1000000;
    }
    struct pl_gantt gantt = {2, 2, 9, kind, device, micro, start, end, NULL, 0};
    char *text = draw(&gantt, 13);
    const char *expected = " 0 01..aa.b|\n"
                           " 1 .0aa1bb..\n";
    ck_assert_msg(!strncmp(text, expected, strlen(expected)), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "us 0"));
    ck_assert_ptr_nonnull(strstr(text, "column: 1 us"));
    free(text);
}
END_TEST

/* Two chunks on device 0: a row each, blank while the other runs; a pair in one row. */
START_TEST(ascii_chunks)
{
    int8_t kind[] = {PL_KIND_F, PL_KIND_F, PL_KIND_W, PL_KIND_F, PL_KIND_BW, PL_KIND_U};
    int32_t device[] = {0, 0, 0, 1, 1, 0}, chunk[] = {0, 3, 0, 1, 1, 3};
    int64_t micro[] = {0, 1, 2, 3, 4, 0};
    int64_t start[] = {0, 2, 5, 1, 1, 4}, end[] = {2, 4, 6, 5, 5, 4};
    for (int i = 0; i < 6; i++) {
        start[i] *= 1000000;
        end[i] *= 1000000;
    }
    struct pl_gantt gantt = {2, 2, 6, kind, device, micro, start, end, chunk, 2};
    char *text = draw(&gantt, 20);
    const char *expected = " 0 c0  0000    ..CC\n"
                           "   c1'     1111|.  \n"
                           " 1 c1  ..3e3e3e3e..\n";
    ck_assert_msg(!strncmp(text, expected, strlen(expected)), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "row: chunk of a device"));
    free(text);
}
END_TEST

/* Any width, any length: lines fit, no op kind is lost for good. */
START_TEST(ascii_fits)
{
    int width = 20 + 10 * _i;
    struct pl_trace *t = pl_trace_new();
    sample_arm(t, "x", 3, 5, 9);
    int64_t n;
    const int64_t *columns[4];
    const char *names[] = {"kind", "device", "micro", "start"};
    for (int k = 0; k < 4; k++)
        columns[k] = pl_trace_get_i64(t, "/arms/x/timeline", names[k], &n);
    int8_t *kind = PL_NEW(n, int8_t);
    int32_t *device = PL_NEW(n, int32_t);
    for (int64_t i = 0; i < n; i++) {
        kind[i] = (int8_t)columns[0][i];
        device[i] = (int32_t)columns[1][i];
    }
    struct pl_gantt gantt = {
        3,          5,
        n,          kind,
        device,     columns[2],
        columns[3], pl_trace_get_i64(t, "/arms/x/timeline", "end", &n),
        NULL,       0};
    char *text = draw(&gantt, width);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (line[2] == ' ' && isdigit((unsigned char)line[1]))
            ck_assert_msg((int)strlen(line) <= width, "%s", line);
    free(text);
    free(kind);
    free(device);
    pl_trace_free(t);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, ascii);
    tcase_add_test(t, ascii_chunks);
    tcase_add_loop_test(t, ascii_fits, 0, 12);
}

int main(void)
{
    return run_tests("ascii", fill);
}
