/* Units, statistics, random numbers, JSON, errors. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/units.h"
#include "tests/runner.h"

static const struct {
    const char *text;
    pl_tick ticks;
} durations[] = {
    {"0", 0},
    {"0 ms", 0},
    {"0.000", 0},
    {"18.522ms", 18522000000},
    {"0.378 ms", 378000000},
    {" 1 ps ", 1},
    {"1.4999 ps", 1},
    {"1.5 ps", 2},
    {"0.1 ns", 100},
    {"3 us", 3000000},
    {"1 min", 60000000000000},
    {"0.1 h", 360000000000000},
    {"1e3 ms", 1000000000000},
    {"1E-3s", 1000000000},
    {".5 s", 500000000000},
    {"5. s", 5000000000000},
    {"9223372036854775807 ps", INT64_MAX},
    {"9223372.036854775807 s", INT64_MAX},
    {"9223372.0368547758074 s", INT64_MAX},
    {"2562.0477880152155 h", 9223372036854775800},
    {"0.00000000000000000000000000000000000000000000001e50 ms", 1000000000000},
    {"1.00000000000000000000000000000000000000000000000000 s", 1000000000000},
};

START_TEST(duration_is_exact)
{
    pl_tick ticks = -1;
    int rc = pl_units_time(durations[_i].text, &ticks);
    ck_assert_msg(!rc, "%s", pl_error_text());
    ck_assert_msg(ticks == durations[_i].ticks, "%s is %lld", durations[_i].text,
                  (long long)ticks);
}
END_TEST

static const struct {
    const char *text, *message;
} bad_durations[] = {
    {"", "is not a duration"},
    {"ms", "is not a duration"},
    {".", "is not a duration"},
    {"nan ms", "is not a duration"},
    {"inf s", "is not a duration"},
    {"+1 s", "is not a duration"},
    {"-1 ms", "is negative"},
    {"-0", "is negative"},
    {"18", "has no unit, expected one of: ps ns us ms s min h"},
    {"18 mz", "unknown unit 'mz', did you mean 'ms'?"},
    {"18 MS", "unknown unit 'MS', did you mean 'ms'?"},
    {"18 mins", "unknown unit 'mins', did you mean 'min'?"},
    {"1 e3 ms", "unknown unit"},
    {"0x10 ms", "unknown unit"},
    {"1.2.3 ms", "unknown unit"},
    {"1 ms 2", "unknown unit"},
    {"0.5 ps", "is smaller than 1 ps"},
    {"1e-30 s", "is smaller than 1 ps"},
    {"1e-99999999999 s", "is smaller than 1 ps"},
    {"9223372036854775808 ps", "is too long a duration"},
    {"107 h e9", "unknown unit"},
    {"1e99999999999 s", "is too long a duration"},
    {"99999999999999999999999999999999999999999999999 h", "is too long a duration"},
};

START_TEST(bad_duration_is_refused)
{
    pl_tick ticks = 77;
    int rc = pl_units_time(bad_durations[_i].text, &ticks);
    ck_assert_msg(rc == PL_ECONFIG, "'%s' gave %d", bad_durations[_i].text, rc);
    ck_assert_msg(strstr(pl_error_text(), bad_durations[_i].message), "'%s': %s",
                  bad_durations[_i].text, pl_error_text());
    ck_assert_int_eq(ticks, 77);
}
END_TEST

/* Every duration that is printed exactly parses back to the same picosecond. */
START_TEST(duration_round_trip)
{
    char text[40];
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t bits[4];
        pl_rng_bits(1, PL_RNG_TEST, i, 0, bits);
        uint64_t wide = (uint64_t)bits[0] << 32 | bits[1];
        pl_tick ticks = (pl_tick)(wide >> (1 + bits[2] % 63)), back = -1;
        if (bits[3] & 1) ticks -= ticks % 1000000;
        pl_units_exact_time(ticks, text, sizeof text);
        ck_assert_int_eq(pl_units_time(text, &back), 0);
        ck_assert_msg(back == ticks, "%s: %lld", text, (long long)ticks);
    }
    ck_assert_str_eq(pl_units_exact_time(18522000000, text, sizeof text), "18.522 ms");
    ck_assert_str_eq(pl_units_exact_time(0, text, sizeof text), "0 ps");
    ck_assert_str_eq(pl_units_exact_time(1000000000000, text, sizeof text), "1 s");
    ck_assert_str_eq(pl_units_exact_time(INT64_MAX, text, sizeof text),
                     "9223372.036854775807 s");
}
END_TEST

START_TEST(sizes_and_rates)
{
    uint64_t bytes;
    double rate;
    ck_assert_int_eq(pl_units_bytes("80 GB", &bytes), 0);
    ck_assert_uint_eq(bytes, 80000000000);
    ck_assert_int_eq(pl_units_bytes("1.5 KiB", &bytes), 0);
    ck_assert_uint_eq(bytes, 1536);
    ck_assert_int_eq(pl_units_bytes("18446744073709551615 B", &bytes), 0);
    ck_assert_uint_eq(bytes, UINT64_MAX);
    ck_assert_int_eq(pl_units_bytes("16777216 TiB", &bytes), PL_ECONFIG);
    ck_assert_int_eq(pl_units_bytes("0.5 B", &bytes), PL_ECONFIG);
    ck_assert_int_eq(pl_units_bytes("1 ms", &bytes), PL_ECONFIG);
    ck_assert_int_eq(pl_units_rate("400 Gbit/s", &rate), 0);
    ck_assert_double_eq(rate, 50e9);
    ck_assert_int_eq(pl_units_rate("50GB/s", &rate), 0);
    ck_assert_double_eq(rate, 50e9);
    ck_assert_int_eq(pl_units_rate("50 GB", &rate), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "unknown unit 'GB'"));
    ck_assert_int_eq(pl_units_rate("1e999 GB/s", &rate), PL_ECONFIG);
}
END_TEST

START_TEST(human_text)
{
    static const struct {
        double value;
        const char *text;
    } times[] =
        {{0.01852, "18.52 ms"}, {0, "0 s"},         {59.9999, "1 min"}, {7200, "2 h"},
         {1e-12, "1 ps"},       {1e-14, "0.01 ps"}, {1, "1 s"},         {NAN, "nan s"}},
      sizes[] = {{1288490188.8, "1.2 GiB"},
                 {0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1.0 KiB"},
                 {1048575, "1.0 MiB"}};
    char buf[24];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        ck_assert_str_eq(pl_units_format_time(times[i].value, buf, sizeof buf),
                         times[i].text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ck_assert_str_eq(pl_units_format_bytes(sizes[i].value, buf, sizeof buf),
                         sizes[i].text);
    pl_units_format_time(-1.7976931348623157e308, buf, sizeof buf);
    ck_assert_uint_lt(strlen(buf), sizeof buf - 1);
    pl_units_format_bytes(-1.7976931348623157e308, buf, sizeof buf);
    ck_assert_uint_lt(strlen(buf), sizeof buf - 1);
}
END_TEST

/* Two-sided 95 % points of Student's t, printed tables (Abramowitz & Stegun 26.10). */
START_TEST(t_interval)
{
    static const struct {
        int df;
        double t;
    } table[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},
                 {9, 2.262},  {10, 2.228}, {30, 2.042}, {120, 1.980}};
    double x[121];
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        int n = table[k].df + 1;
        for (int i = 0; i < n; i++) x[i] = i * i;
        double t = pl_t95(x, n) * sqrt(n) / pl_sd(x, n);
        ck_assert_double_eq_tol(t, table[k].t,
                                0.0005 + 1e-9); /* three printed decimals */
    }
    ck_assert(isnan(pl_t95(x, 1)));
}
END_TEST

START_TEST(statistics)
{
    double x[] = {4, 1, 3, 2}, one[] = {5}, t[] = {0, 1, 2, 3}, y[] = {4, 2, 3, 1};
    ck_assert_double_eq(pl_mean(x, 4), 2.5);
    ck_assert_double_eq_tol(pl_sd(x, 4), sqrt(5.0 / 3), 1e-15);
    ck_assert_double_eq(pl_sd(one, 1), 0);
    ck_assert_double_eq(pl_quantile(x, 4, 0), 1);
    ck_assert_double_eq(pl_quantile(x, 4, 0.5), 2.5);
    ck_assert_double_eq(pl_quantile(x, 4, 1), 4);
    ck_assert_double_eq(pl_quantile(one, 1, 0.3), 5);
    ck_assert_double_eq(x[0], 4); /* the input is not sorted in place */
    ck_assert_double_eq(pl_crossing(t, y, 4, 3), 0.5);
    ck_assert_double_eq(pl_crossing(t, y, 4, 2), 1);
    ck_assert_double_eq(pl_crossing(t, y, 4, 1.5), 2.75);
    ck_assert_double_eq(pl_crossing(t, y, 4, 9), 0);
    ck_assert(isnan(pl_crossing(t, y, 4, 0.5)));
    ck_assert(isnan(pl_crossing(t, y, 0, 0.5)));
    ck_assert_double_eq(pl_interpolate(t, y, 4, 0.5), 3);
    ck_assert_double_eq(pl_interpolate(t, y, 4, 2), 3);
    ck_assert_double_eq(pl_interpolate(t, y, 4, -1), 4);
    ck_assert_double_eq(pl_interpolate(t, y, 4, 9), 1);
}
END_TEST

/* The line through the crossing meets the level there: two functions agree. */
START_TEST(crossing_inverts_interpolation)
{
    for (uint32_t trial = 0; trial < 500; trial++) {
        double x[20], y[20];
        for (uint32_t i = 0; i < 20; i++) {
            x[i] = (i ? x[i - 1] : 0) + pl_rng_uniform(2, PL_RNG_TEST, trial, 2 * i);
            y[i] = pl_rng_uniform(2, PL_RNG_TEST, trial, 2 * i + 1);
        }
        double at = pl_crossing(x, y, 20, 0.25);
        if (isnan(at) || y[0] <= 0.25) continue;
        /* slopes reach 1/x-spacing; spacings below 1e-6 are rarer than the trials */
        ck_assert_double_eq_tol(pl_interpolate(x, y, 20, at), 0.25, 1e-9);
        for (int i = 0; i < 20 && x[i] < at; i++) ck_assert_double_gt(y[i], 0.25);
    }
}
END_TEST

START_TEST(json_text)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    pl_json_int(&json, "a", INT64_MIN);
    pl_json_real(&json, "b", 0.1);
    pl_json_real(&json, "nan", NAN);
    pl_json_real(&json, "inf", -INFINITY);
    pl_json_begin(&json, "list", '[');
    pl_json_bool(&json, NULL, true);
    pl_json_begin(&json, NULL, '{');
    pl_json_text(&json, "k\"", "q\"\\\n\t\x01 \xc3\xa9");
    pl_json_text(&json, "none", NULL);
    pl_json_end(&json, '}');
    pl_json_begin(&json, NULL, '[');
    pl_json_end(&json, ']');
    pl_json_end(&json, ']');
    pl_json_end(&json, '}');
    pl_json_close(&json);
    fclose(out);
    ck_assert_str_eq(
        text, "{\n  \"a\": -9223372036854775808,\n  \"b\": 0.10000000000000001,"
              "\n  \"nan\": null,\n  \"inf\": null,\n  \"list\": [true, {\"k\\\""
              "\": \"q\\\"\\\\\\n\\t\\u0001 \xc3\xa9\", \"none\": null}, []]\n}\n");
    free(text);
}
END_TEST

START_TEST(json_lines)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    for (int i = 0; i < 2; i++) {
        struct pl_json json;
        pl_json_open(&json, out);
        json.one_line = true;
        pl_json_begin(&json, NULL, '{');
        pl_json_uint(&json, "seed", UINT64_MAX);
        pl_json_text(&json, "arm", "a\n\"b");
        pl_json_end(&json, '}');
        pl_json_close(&json);
    }
    fclose(out);
    const char line[] = "{\"seed\": 18446744073709551615, \"arm\": \"a\\n\\\"b\"}\n";
    ck_assert_uint_eq(n, 2 * strlen(line));
    ck_assert_mem_eq(text, line, strlen(line));
    ck_assert_mem_eq(text + strlen(line), line, strlen(line));
    free(text);
}
END_TEST

/* More than any machine has is refused, a little is not. */
START_TEST(memory_is_checked)
{
    ck_assert_double_gt(pl_memory_available(), 0);
    ck_assert_int_eq(pl_memory_check(1, "a byte"), 0);
    ck_assert_int_eq(pl_memory_check(1e18, "a lot"), PL_EMEM);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "a lot needs"));
}
END_TEST

START_TEST(json_unclosed_is_a_bug)
{
    struct pl_json json;
    pl_json_open(&json, fopen("/dev/null", "w"));
    pl_json_begin(&json, NULL, '{');
    fclose(stderr); /* the assertion's own line */
    pl_json_close(&json);
}
END_TEST

/* Known answer of Random123's kat_vectors: philox4x32 10, all zero and all ones. */
START_TEST(philox_known_answer)
{
    uint32_t bits[4], again[4];
    pl_rng_bits(UINT64_MAX, (enum pl_purpose)UINT32_MAX, UINT64_MAX, UINT32_MAX, bits);
    ck_assert_uint_eq(bits[0], 0x408f276d);
    ck_assert_uint_eq(bits[1], 0x41c83b0e);
    ck_assert_uint_eq(bits[2], 0xa20bc7c6);
    ck_assert_uint_eq(bits[3], 0x6d5451fd);
    pl_rng_bits(UINT64_MAX, PL_RNG_TEST, UINT64_MAX, UINT32_MAX, again);
    ck_assert_mem_ne(bits, again, sizeof bits);
}
END_TEST

START_TEST(errors)
{
    static const char *const names[] = {"1f1b", "gpipe", "2bw", NULL};
    ck_assert_int_eq(pl_fail(PL_EIO, "a %d", 1), PL_EIO);
    ck_assert_int_eq(pl_fail(PL_EINPUT, "b: %s", pl_error_text()), PL_EINPUT);
    ck_assert_str_eq(pl_error_text(), "b: a 1");
    pl_fail(PL_EINPUT, "%s: bad", "a\nb\tc\x01\xc3\xa9");
    ck_assert_str_eq(pl_error_text(), "a\\nb\\tc\\x01\xc3\xa9: bad");
    ck_assert_str_eq(pl_nearest("gpip", names), "gpipe");
    ck_assert_ptr_null(pl_nearest("zerobubble", names));
    static const char *const clusters[] = {"h800", "dgx-h100-80", "dgx-h100", NULL};
    ck_assert_str_eq(pl_nearest("h100", clusters), "dgx-h100"); /* contains it */
    ck_assert_str_eq(pl_nearest("h80", clusters), "h800");
    ck_assert_ptr_null(pl_nearest("gx", clusters)); /* too short to mean one */
    ck_assert_int_eq(pl_exit_status(0), 0);
    ck_assert_int_eq(pl_exit_status(PL_EINTR), 130);
    ck_assert_int_eq(pl_exit_status(PL_ECHECK), 3);
    ck_assert_int_eq(pl_exit_status(PL_ECONFIG), 2);
    ck_assert_int_eq(pl_exit_status(-1000), 1);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("units");
    tcase_add_loop_test(t, duration_is_exact, 0, COUNT(durations));
    tcase_add_loop_test(t, bad_duration_is_refused, 0, COUNT(bad_durations));
    tcase_add_test(t, duration_round_trip);
    tcase_add_test(t, sizes_and_rates);
    tcase_add_test(t, human_text);
    suite_add_tcase(s, t);
    t = tcase_create("numbers");
    tcase_add_test(t, t_interval);
    tcase_add_test(t, statistics);
    tcase_add_test(t, crossing_inverts_interpolation);
    tcase_add_test(t, philox_known_answer);
    suite_add_tcase(s, t);
    t = tcase_create("text");
    tcase_add_test(t, json_text);
    tcase_add_test(t, json_lines);
    tcase_add_test(t, memory_is_checked);
    tcase_add_test_raise_signal(t, json_unclosed_is_a_bug, 6);
    tcase_add_test(t, errors);
    suite_add_tcase(s, t);
    return run_suite(s);
}
