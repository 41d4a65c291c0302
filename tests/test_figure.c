/* Figures: well-formed XML with every arm in it, whole or absent. */
#include <config.h>
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/runner.h"
#include "tests/trace_sample.h"
#include "traces/figure.h"

static char dir[] = "/tmp/pipelag-figure-XXXXXX";
static char svg[64], png[64];

static void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(svg, sizeof svg, "%s/a.svg", dir);
    snprintf(png, sizeof png, "%s/a.png", dir);
}

static void teardown(void)
{
    unlink(svg);
    unlink(png);
    ck_assert_int_eq(rmdir(dir), 0);
}

static char *slurp(const char *path)
{
    char *text;
    size_t n;
    ck_assert_msg(!pl_file_read(path, 1 << 28, &text, &n), "%s", pl_error_text());
    return text;
}

/* Tags balance, attributes are quoted, & starts an entity: enough to catch bad
 * escaping. Returns the complaint or NULL. */
static const char *xml_fault(const char *s)
{
    const char *open[64];
    int depth = 0;
    for (; *s; s++) {
        if (*s == '&' && strncmp(s, "&amp;", 5) && strncmp(s, "&lt;", 4) &&
            strncmp(s, "&gt;", 4))
            return "bare &";
        if (*s != '<') continue;
        if (s[1] == '?') {
            s = strchr(s, '>');
            continue;
        }
        const char *name = s + 1 + (s[1] == '/'), *end = s;
        size_t length = strcspn(name, " />");
        for (bool quoted = false; *end && (quoted || *end != '>'); end++)
            if (*end == '"') quoted = !quoted;
        if (!*end) return "unclosed tag";
        if (s[1] == '/') {
            if (!depth--) return "end without start";
            if (strncmp(open[depth], name, length)) return "mismatched end tag";
        } else if (end[-1] != '/') {
            if (!isalpha((unsigned char)*name) || depth == 64) return "bad tag";
            open[depth++] = name;
        }
        s = end;
    }
    return depth ? "missing end tag" : NULL;
}

START_TEST(xml_checker)
{
    ck_assert_ptr_null(xml_fault("<?xml?>\n<a b=\"<\"><c/>x &amp; y</a>\n"));
    ck_assert_ptr_nonnull(xml_fault("<a>x & y</a>"));
    ck_assert_ptr_nonnull(xml_fault("<a><b></a></b>"));
    ck_assert_ptr_nonnull(xml_fault("<a><b></b>"));
    ck_assert_ptr_nonnull(xml_fault("<a>1 < 2</a>"));
}
END_TEST

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

START_TEST(gantt_as_svg)
{
    static const int shapes[][3] = {{1, 1, 1}, {4, 8, 1}, {16, 64, 1}, {8, 8, 5}};
    const int *shape = shapes[_i];
    struct pl_trace *t = pl_trace_new();
    sample_arm(t, "a<b>&\"c\"", shape[0], shape[1], shape[2]);
    ck_assert_msg(!pl_figure_gantt(t, "a<b>&\"c\"", svg), "%s", pl_error_text());
    char *text = slurp(svg);
    const char *fault = xml_fault(text);
    ck_assert_msg(!fault, "%s", fault);
    ck_assert_ptr_nonnull(strstr(text, "a&lt;b&gt;&amp;\"c\": gpipe, P = "));
    ck_assert_ptr_nonnull(strstr(text, "simulated time [ms]"));
    /* every op is there: one rectangle with a tooltip each */
    ck_assert_int_eq(count(text, "<title>F microbatch"),
                     shape[0] * shape[1] * shape[2]);
    ck_assert_int_eq(count(text, "<title>BW microbatch"),
                     shape[0] * shape[1] * shape[2]);
    ck_assert_int_eq(count(text, "<title>U update"), shape[0] * shape[2]);
    free(text);
    struct pl_gantt_options options = {.updates = 1};
    ck_assert_int_eq(pl_figure_gantt_with(t, "a<b>&\"c\"", &options, svg), 0);
    text = slurp(svg);
    ck_assert_int_ge(count(text, "<title>U update 0"), shape[0]);
    ck_assert_int_eq(count(text, "<title>BW microbatch"), shape[0] * shape[1]);
    free(text);
    pl_trace_free(t);
}
END_TEST

START_TEST(gantt_shows_tau)
{
    struct pl_trace *t = pl_trace_new();
    sample_arm(t, "x", 1, 2, 1);
    int64_t zero[] = {0, 0}, micro[] = {0, 1}, update[] = {3, 3}, forward[] = {1, 3};
    pl_trace_i64(t, "/arms/x/versions", "stage", 2, zero);
    pl_trace_i64(t, "/arms/x/versions", "micro", 2, micro);
    pl_trace_i64(t, "/arms/x/versions", "update", 2, update);
    pl_trace_i64(t, "/arms/x/versions", "forward", 2, forward);
    pl_trace_i64(t, "/arms/x/versions", "backward", 2, forward);
    ck_assert_int_eq(pl_figure_gantt(t, "x", svg), 0);
    char *text = slurp(svg);
    ck_assert_ptr_nonnull(
        strstr(text, "<title>F microbatch 0, update 0, tau 2</title>"));
    ck_assert_ptr_nonnull(
        strstr(text, "<title>BW microbatch 1, update 0, tau 0</title>"));
    free(text);
    struct pl_gantt_options options = {.shade = PL_SHADE_TAU};
    ck_assert_int_eq(pl_figure_gantt_with(t, "x", &options, svg), 0);
    text = slurp(svg);
    ck_assert_ptr_nonnull(strstr(text, "delay tau 0 to 2 updates"));
    ck_assert_int_eq(count(text, "#bfdcec"), 2); /* legend and F 0: 75 % lighter */
    ck_assert_int_eq(count(text, "#0072b2"), 2); /* legend and F 1, tau 0 */
    free(text);
    pl_trace_free(t);
}
END_TEST

static struct pl_gantt_options shade(enum pl_shade by)
{
    return (struct pl_gantt_options){.shade = by};
}

static double height_of(const char *text)
{
    return atof(strstr(text, "height=\"") + 8);
}

/* Chunks by shade, split ops and pairs: boxes of full and of half height. */
START_TEST(gantt_of_chunks)
{
    struct pl_trace *t = pl_trace_new();
    sample_v_arm(t, "x", 3, 6, _i == 1);
    struct pl_gantt_options options = shade(PL_SHADE_AUTO);
    ck_assert_msg(!pl_figure_gantt_with(t, NULL, &options, svg), "%s", pl_error_text());
    char *text = slurp(svg);
    ck_assert_ptr_null(xml_fault(text));
    ck_assert_int_eq(count(text, "<title>F microbatch"), 36);
    ck_assert_int_eq(
        count(text, "<title>B microbatch") + count(text, "<title>BW microbatch"), 36);
    ck_assert_int_eq(count(text, "<title>B microbatch"),
                     count(text, "<title>W microbatch"));
    ck_assert_int_eq(count(text, "<title>BW microbatch") > 0, _i == 1);
    ck_assert_ptr_nonnull(strstr(text, "<title>F microbatch 3, chunk 5, update 0"));
    /* the dark and the light forward; half height in pairs only */
    ck_assert_int_eq(count(text, "fill=\"#0072b2\""), 18 + 1); /* and the legend */
    ck_assert_int_eq(count(text, "fill=\"#8cc0dc\""), 18 + 1);
    ck_assert_int_gt(count(text, "height=\"19\""), 36);
    ck_assert_int_eq(count(text, "height=\"8.9\""), 2 * count(text, "<title>BW m"));
    ck_assert_ptr_nonnull(strstr(text, "the 2 chunks of a device"));
    free(text);
    options = shade(PL_SHADE_UPDATE);
    ck_assert_int_eq(pl_figure_gantt_with(t, "x", &options, svg), 0);
    text = slurp(svg);
    ck_assert_int_eq(count(text, "fill=\"#8cc0dc\""), 0);
    free(text);
    options = shade(PL_SHADE_TAU);
    ck_assert_int_eq(pl_figure_gantt_with(t, "x", &options, svg), PL_EUNSUP);
    pl_trace_free(t);
}
END_TEST

/* A narrow figure is folded and then drops numbers, but never an op. */
START_TEST(gantt_width)
{
    struct pl_trace *t = pl_trace_new();
    sample_arm(t, "x", 4, 64, 4);
    char *text;
    double last = 0;
    int numbers = 1 << 30;
    for (double width = 6400; width > 40; width /= 4) {
        struct pl_gantt_options options = {.width = width};
        ck_assert_int_eq(pl_figure_gantt_with(t, "x", &options, svg), 0);
        text = slurp(svg);
        ck_assert_ptr_null(xml_fault(text));
        ck_assert_int_eq(count(text, "<title>F microbatch"), 4 * 64 * 4);
        ck_assert_double_ge(height_of(text), last);
        ck_assert_int_le(count(text, "<text"), numbers + 200);
        last = height_of(text);
        numbers = count(text, "<text");
        free(text);
    }
    ck_assert_double_ge(last, 8 * 4 * 22); /* as many panels as there may be */
    ck_assert_int_lt(numbers, 200);
    pl_trace_free(t);
}
END_TEST

START_TEST(gantt_errors)
{
    struct pl_trace *t = pl_trace_new();
    ck_assert_int_eq(pl_figure_gantt(t, "x", svg), PL_EINPUT);
    sample_arm(t, "adamw+gpipe", 2, 2, 1);
    ck_assert_int_eq(pl_figure_gantt(t, "adamw+gpip", svg), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "did you mean 'adamw+gpipe'"));
    ck_assert_int_eq(pl_figure_gantt(t, "adamw+gpipe", "/nonexistent/a.svg"), PL_EIO);
    ck_assert_int_eq(pl_figure_gantt(t, "adamw+gpipe", "a.jpeg"), PL_EUSAGE);
    ck_assert_int_eq(pl_figure_curves(t, svg), PL_EINPUT);
    int64_t bad[] = {-5};
    pl_trace_i64(t, "/arms/adamw+gpipe/timeline", "device", 1, bad);
    for (int k = 0; k < 5; k++)
        pl_trace_i64(t, "/arms/adamw+gpipe/timeline",
                     (const char *[]){"kind", "chunk", "micro", "start", "end"}[k], 1,
                     (int64_t[]){0});
    ck_assert_int_eq(pl_figure_gantt(t, "adamw+gpipe", svg), PL_EINPUT);
    ck_assert(access(svg, F_OK));
    pl_trace_free(t);
}
END_TEST

START_TEST(curves)
{
    static const char *const optimizers[] = {"adamw", "nadamw", "muon", "soap<1>"};
    static const char *const pipelines[] = {"gpipe", "2bw", "pipedream"};
    struct pl_trace *t = pl_trace_new();
    for (int o = 0; o < 4; o++)
        for (int p = 0; p < 3; p++) {
            char *arm = pl_printf("%s+%s", optimizers[o], pipelines[p]);
            for (int seed = 1; seed <= 3; seed++)
                sample_evals(t, arm, seed, o == 2 && p == 2 && seed == 3 ? 7 : 31,
                             1.5 + 0.1 * o + 0.03 * p, p ? 0.8e-2 : 1.1e-2);
            free(arm);
        }
    pl_trace_attr_text(t, "/arms/muon+pipedream/seeds/3", "status", "diverged");
    ck_assert_msg(!pl_figure_curves(t, svg), "%s", pl_error_text());
    char *text = slurp(svg);
    const char *fault = xml_fault(text), *last = text;
    ck_assert_msg(!fault, "%s", fault);
    /* legend in the order of the trace */
    for (int o = 0; o < 4; o++)
        for (int p = 0; p < 3; p++) {
            char *arm = pl_printf(">%s+%s", o == 3 ? "soap&lt;1&gt;" : optimizers[o],
                                  pipelines[p]);
            ck_assert_msg((last = strstr(last, arm)) != NULL, "%s", arm);
            free(arm);
        }
    ck_assert_int_eq(count(text, "(diverged)"), 1);
    ck_assert_int_eq(count(text, "<polyline"), 24);
    ck_assert_int_eq(count(text, "<polygon"), 24);
    ck_assert_int_eq(count(text, "nan") + count(text, "inf"), 0);
    free(text);
    pl_trace_free(t);
}
END_TEST

/* Whatever the numbers, the drawing is XML without nan. */
START_TEST(curves_of_anything)
{
    struct pl_trace *t = sample_trace((uint64_t)_i, 30);
    ck_assert_msg(!pl_figure_curves(t, svg), "%s", pl_error_text());
    char *text = slurp(svg);
    ck_assert_ptr_null(xml_fault(text));
    ck_assert_ptr_null(strstr(text, "\"nan"));
    ck_assert_ptr_null(strstr(text, "inf"));
    free(text);
    pl_trace_free(t);
}
END_TEST

START_TEST(png_or_a_reason)
{
    struct pl_trace *t = pl_trace_new();
    sample_arm(t, "x", 2, 2, 1);
    int status = pl_figure_gantt(t, "x", png);
    if (status) {
        ck_assert_int_eq(status, PL_EUNSUP);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), "rsvg-convert"));
        ck_assert(access(png, F_OK));
    } else {
        char *data = slurp(png);
        ck_assert(!memcmp(data, "\x89PNG", 4));
        free(data);
    }
    ck_assert_int_eq(setenv("PATH", "/nonexistent", 1), 0);
    ck_assert_int_eq(pl_figure_gantt(t, "x", png), PL_EUNSUP);
    pl_trace_free(t);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 20);
    tcase_add_test(t, xml_checker);
    tcase_add_loop_test(t, gantt_as_svg, 0, 4);
    tcase_add_test(t, gantt_shows_tau);
    tcase_add_loop_test(t, gantt_of_chunks, 0, 2);
    tcase_add_test(t, gantt_width);
    tcase_add_test(t, gantt_errors);
    tcase_add_test(t, curves);
    tcase_add_loop_test(t, curves_of_anything, 0, 10);
    tcase_add_test(t, png_or_a_reason);
}

int main(void)
{
    return run_tests("figure", fill);
}
