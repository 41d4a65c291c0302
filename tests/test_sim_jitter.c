/* Random times: their moments, that a draw depends on nothing but its op, outages, and
 * what is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim_case.h"

enum { N = 200000, NOMINAL = 1000000000 };

static struct pl_jitter one_of(const char *text)
{
    struct pl_jitter jitter = {.seed = 7};
    ck_assert_msg(pl_random_time_parse(text, "here", &jitter.time[0]) == PL_OK, "%s",
                  pl_error_text());
    return jitter;
}

/* Mean and standard deviation over the nominal time. */
static void moments(const struct pl_jitter *jitter, double *mean, double *sd)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < N; i++) {
        double x = (double)pl_jitter_time(jitter, PL_JITTER_F, 3, i, NOMINAL) / NOMINAL;
        sum += x;
        squares += x * x;
    }
    *mean = sum / N;
    *sd = sqrt(squares / N - *mean * *mean);
}

/* Standard errors: cv / sqrt(n) of the mean; of the deviation below 2 cv / sqrt(n) for
 * lognormal and gamma up to cv = .5; five of them. */
START_TEST(means)
{
    static const struct {
        const char *text;
        double cv;
    } rows[] = {{"normal 5%", .05},    {"normal 0.05", .05},  {"normal 50 us", .05},
                {"lognormal 20%", .2}, {"lognormal 50%", .5}, {"gamma 5%", .05},
                {"gamma 50%", .5},     {"gamma 200 us", .2},  {"lognormal 1%", .01}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pl_jitter jitter = one_of(rows[i].text);
        double mean, sd, error = rows[i].cv / sqrt(N);
        moments(&jitter, &mean, &sd);
        ck_assert_msg(fabs(mean - 1) < 5 * error && fabs(sd - rows[i].cv) < 10 * error,
                      "%s: mean %g, sd %g", rows[i].text, mean, sd);
        pl_jitter_free(&jitter);
    }
    struct pl_jitter wide = one_of("gamma 200%"); /* shape 1/4: the boosted branch */
    double mean, sd;
    moments(&wide, &mean, &sd);
    ck_assert_double_eq_tol(mean, 1, 5 * 2 / sqrt(N));
    ck_assert_double_eq_tol(sd, 2, .1);
    pl_jitter_free(&wide);
}
END_TEST

/* A normal time is never negative; cut at 0 its mean grows to sd phi(1) + Phi(1). */
START_TEST(cut)
{
    struct pl_jitter jitter = one_of("normal 100%");
    double mean, sd;
    moments(&jitter, &mean, &sd);
    ck_assert_double_eq_tol(mean, .8413447 + .2419707, 5 / sqrt(N));
    for (int64_t i = 0; i < 1000; i++)
        ck_assert_int_ge(pl_jitter_time(&jitter, PL_JITTER_F, 0, i, NOMINAL), 0);
    pl_jitter_free(&jitter);
    jitter = one_of("normal 1 ms"); /* absolute: also where the nominal time is 0 */
    int positive = 0;
    for (int64_t i = 0; i < 1000; i++)
        positive += pl_jitter_time(&jitter, PL_JITTER_F, 0, i, 0) > 0;
    ck_assert_int_gt(positive, 400);
    ck_assert_int_lt(positive, 600);
    pl_jitter_free(&jitter);
}
END_TEST

START_TEST(empirical)
{
    char path[] = "/tmp/pl_jitter_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    dprintf(fd, "# factors\n1\n\n 2 # twice\n3\r\n");
    close(fd);
    char *text = pl_printf("empirical %s", path);
    struct pl_jitter jitter = one_of(text);
    free(text);
    ck_assert_int_eq(jitter.time[0].n, 3);
    int seen[4] = {0};
    for (int64_t i = 0; i < 3000; i++)
        seen[pl_jitter_time(&jitter, PL_JITTER_F, 0, i, 10) / 10]++;
    for (int k = 1; k <= 3; k++) ck_assert_int_gt(seen[k], 850);
    ck_assert_int_eq(seen[1] + seen[2] + seen[3], 3000);
    pl_jitter_free(&jitter);
    unlink(path);
}
END_TEST

/* Equal for equal (seed, kind, instance, microbatch), else not. */
START_TEST(pure)
{
    struct pl_jitter a = one_of("lognormal 10%"), b = one_of("lognormal 10%");
    b.seed = 8;
    a.time[1] = a.time[0];
    pl_tick x = pl_jitter_time(&a, PL_JITTER_F, 1, 2, NOMINAL);
    ck_assert_int_eq(x, pl_jitter_time(&a, PL_JITTER_F, 1, 2, NOMINAL));
    ck_assert_int_ne(x, pl_jitter_time(&a, PL_JITTER_F, 2, 1, NOMINAL));
    ck_assert_int_ne(x, pl_jitter_time(&a, PL_JITTER_F, 1, 3, NOMINAL));
    ck_assert_int_ne(x, pl_jitter_time(&a, PL_JITTER_B, 1, 2, NOMINAL));
    ck_assert_int_ne(x, pl_jitter_time(&b, PL_JITTER_F, 1, 2, NOMINAL));
    ck_assert_int_eq(0, pl_jitter_time(&a, PL_JITTER_F, 1, 2, 0));
    ck_assert_int_eq(5, pl_jitter_time(&a, PL_JITTER_W, 1, 2, 5)); /* none for W */
}
END_TEST

START_TEST(outages)
{
    struct pl_jitter jitter = {.seed = 1};
    ck_assert_int_eq(
        pl_outages_parse("2@10ms+5ms 0@1s+1s 2@20ms+1ms", "here", 3, &jitter), PL_OK);
    ck_assert_int_eq(jitter.n_outages, 3);
    pl_tick ms = 1000000000;
    ck_assert_int_eq(pl_jitter_end(&jitter, 1, 9 * ms, 9 * ms), 18 * ms);
    ck_assert_int_eq(pl_jitter_end(&jitter, 2, 9 * ms, ms), 10 * ms); /* just done */
    ck_assert_int_eq(pl_jitter_end(&jitter, 2, 9 * ms, 2 * ms), 17 * ms); /* anew */
    ck_assert_int_eq(pl_jitter_end(&jitter, 2, 12 * ms, ms), 16 * ms);
    ck_assert_int_eq(pl_jitter_end(&jitter, 2, 15 * ms, ms), 16 * ms);
    ck_assert_int_eq(pl_jitter_end(&jitter, 2, 9 * ms, 6 * ms),
                     27 * ms); /* hit twice */
    pl_jitter_free(&jitter);
}
END_TEST

START_TEST(refused)
{
    static const char *const times[] = {"norml 5%",   "normal",      "normal 5 kg",
                                        "none 5%",    "gamma -1%",   "lognormal 1e9%",
                                        "normal nan", "normal -2 ms"};
    static const char *const stops[] = {"3@1s+1s",    "1@1s",     "1@1s+1kg",
                                        "x@1s+1s",    "-1@1s+1s", "0@1s+2s 0@2s+1s",
                                        "0@2000h+1s", "1 @1s+1s"};
    struct pl_random_time none;
    struct pl_jitter jitter = {.seed = 1};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        ck_assert_msg(pl_random_time_parse(times[i], "here", &none) == PL_ECONFIG, "%s",
                      times[i]);
        ck_assert_msg(!strncmp(pl_error_text(), "here: ", 6), "%s", pl_error_text());
    }
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        ck_assert_msg(pl_outages_parse(stops[i], "here", 3, &jitter) == PL_ECONFIG,
                      "%s", stops[i]);
        ck_assert_msg(!strncmp(pl_error_text(), "here: ", 6), "%s", pl_error_text());
    }
    ck_assert_int_eq(pl_random_time_parse("empirical /nowhere", "here", &none),
                     PL_EINPUT);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, means);
    tcase_add_test(t, cut);
    tcase_add_test(t, empirical);
    tcase_add_test(t, pure);
    tcase_add_test(t, outages);
    tcase_add_test(t, refused);
}

int main(void)
{
    return run_tests("sim jitter", fill);
}
