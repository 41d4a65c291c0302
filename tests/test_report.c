/* The report's arithmetic on made-up curves: gaps, recovered share, crossing times,
 * annealed times, diverged seeds. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/report.h"
#include "tests/runner.h"

static const char yaml[] =
    "title: made up\n"
    "seeds: [1, 2, 3]\n"
    "baseline: sync\n"
    "model: {layers: 2}\n"
    "train: {updates: 10, batch: 4}\n"
    "schedule: {stages: 2, microbatches: 4}\n"
    "axes:\n"
    "  optimizer:\n"
    "    adamw: {}\n"
    "    muon: {optimizer: {name: muon}}\n"
    "  pipeline:\n"
    "    sync: {}\n"
    "    2bw: {schedule: {name: 2bw}}\n"
    "    2bw-x1.5: {schedule: {name: 2bw}, train: {updates: 15}}\n"
    "    2bw-x2: {schedule: {name: 2bw}, train: {updates: 20}}\n"
    "    2bw-ef: {schedule: {name: 2bw}, corrector: {name: feedback}}\n"
    "arms: {skip: muon+2bw-*}\n";

enum { SYNC, BW, BW15, BW2, EF, MUON_SYNC, MUON_BW, ARMS, SEEDS = 3 };

static struct pl_config *config;
static struct pl_experiment experiment;
static struct pl_run_result results[ARMS * SEEDS];

/* Losses fall linearly from 5 at time 0 to end + shift of the seed. */
static void fill(int arm, double end)
{
    for (int s = 0; s < SEEDS; s++) {
        struct pl_run_result *r = &results[arm * SEEDS + s];
        *r = (struct pl_run_result){.n_evals = 11, .evals = PL_NEW(11, struct pl_eval)};
        for (int i = 0; i <= 10; i++)
            r->evals[i] = (struct pl_eval){
                .update = i,
                .time_s = experiment.arms[arm].end_s * i / 10,
                .loss = 5 + (end + 0.01 * s - 5) * i / 10,
                .loss_y = 5 + (end + 0.5 - 5) * i / 10,
            };
    }
}

static void setup(void)
{
    char path[] = "/tmp/pipelag-report-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && write(fd, yaml, sizeof yaml - 1) == sizeof yaml - 1);
    close(fd);
    pl_cmd_register_families();
    config = pl_config_new();
    ck_assert_msg(pl_config_load(config, path) == 0, "%s", pl_error_text());
    unlink(path);
    ck_assert_msg(pl_experiment_new(config, &experiment) == 0, "%s", pl_error_text());
    ck_assert_int_eq(experiment.n_arms, ARMS);
    static const double end[ARMS] = {2.0, 2.4, 2.2, 1.8, 2.1, 1.5, 1.55};
    for (int a = 0; a < ARMS; a++) fill(a, end[a]);
}

static void teardown(void)
{
    for (int j = 0; j < ARMS * SEEDS; j++) pl_run_free(&results[j]);
    pl_experiment_free(&experiment);
    pl_config_free(config);
}

#define NEAR(x, y) ck_assert_double_eq_tol((x), (y), 1e-9)

START_TEST(gaps)
{
    struct pl_report r;
    ck_assert_int_eq(pl_report_new(&experiment, results, &r), 0);
    NEAR(r.rows[SYNC].mean, 2.01);
    NEAR(r.rows[SYNC].sd, 0.01);
    NEAR(r.rows[SYNC].noise, sqrt(2) * 0.01);
    NEAR(r.rows[BW].gap, 0.4);
    NEAR(r.rows[BW].gap_half, 0); /* seeds shift both alike: paired */
    NEAR(r.rows[EF].recovered, 0.75);
    NEAR(r.rows[BW].loss_y, 2.9);
    ck_assert(isnan(r.rows[BW].recovered));
    ck_assert_int_eq(r.rows[MUON_BW].baseline, MUON_SYNC);
    NEAR(r.rows[MUON_BW].gap, 0.05);
    pl_report_free(&r);
}
END_TEST

START_TEST(times)
{
    struct pl_report r;
    ck_assert_int_eq(pl_report_new(&experiment, results, &r), 0);
    double sync = experiment.arms[SYNC].end_s, end = experiment.arms[BW].end_s;
    NEAR(r.rows[SYNC].reach_s, sync);
    ck_assert(isnan(r.rows[BW].reach_s)); /* ends at 2.41, the target is 2.01 */
    /* 2bw-x2 falls from 5 to 1.81: crosses 2.01 at (5 - 2.01) / 3.19 of its time. */
    NEAR(r.rows[BW2].reach_s, experiment.arms[BW2].end_s * 2.99 / 3.19);
    NEAR(r.rows[BW].equal_s, fmin(sync, end));
    NEAR(r.rows[BW].equal_loss, 2.41);
    NEAR(r.rows[BW].equal_baseline, 5 - 2.99 * end / sync);

    int n;
    double limit, reached = pl_report_annealed(&r, BW, &n, &limit);
    ck_assert_int_eq(n, 3);
    NEAR(limit, experiment.arms[BW2].end_s);
    /* end losses 2.41, 2.21, 1.81: 2.01 lies half way between the last two. */
    NEAR(reached, (experiment.arms[BW15].end_s + experiment.arms[BW2].end_s) / 2);
    reached = pl_report_annealed(&r, MUON_BW, &n, &limit);
    ck_assert_int_eq(n, 1);
    ck_assert(isnan(reached));
    pl_report_free(&r);
}
END_TEST

START_TEST(diverged)
{
    results[EF * SEEDS + 1].status = PL_RUN_DIVERGED;
    struct pl_report r;
    ck_assert_int_eq(pl_report_new(&experiment, results, &r), 0);
    ck_assert_int_eq(r.rows[EF].diverged, 1);
    ck_assert(isinf(r.rows[EF].losses[1]) && isinf(r.rows[EF].gap));
    ck_assert(isnan(r.rows[EF].gap_half));
    pl_report_print(&r, stderr);
    pl_report_free(&r);
}
END_TEST

START_TEST(wrong_baseline)
{
    ck_assert_int_eq(pl_config_set(config, "baseline=snyc", "--set"), 0);
    struct pl_report r;
    ck_assert_int_eq(pl_report_new(&experiment, results, &r), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "snyc"));
}
END_TEST

START_TEST(roots)
{
    ck_assert_int_eq(pl_label_root("2bw-x1.3"), 3);
    ck_assert_int_eq(pl_label_root("2bw-ef-x1.1"), 6);
    ck_assert_int_eq(pl_label_root("2bw-ef"), 6);
    ck_assert_int_eq(pl_label_root("2bw-x"), 5);
    ck_assert_int_eq(pl_label_root("a-xlarge"), 8);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, gaps);
    tcase_add_test(t, times);
    tcase_add_test(t, diverged);
    tcase_add_test(t, wrong_baseline);
    tcase_add_test(t, roots);
}

int main(void)
{
    return run_tests("report", add_tests);
}
