/* Predictions against published measurements: the targets of the project, and what is
 * known to miss them. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench/accuracy.h"
#include "cli/cmd.h"
#include "cli/fit.h"
#include "tests/runner.h"

static char *folder;
static struct pl_accuracy rows[PL_N_ACCURACY];
static struct pl_depth *depths;
static int n_depths;

static const struct pl_accuracy *row(const char *name)
{
    for (int i = 0; i < PL_N_ACCURACY; i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    ck_abort_msg("no row %s", name);
}

START_TEST(within_targets)
{
    for (int i = 0; i < PL_N_ACCURACY; i++) {
        ck_assert_double_gt(rows[i].value, 0); /* nothing agrees to the last digit */
        if (isnan(rows[i].target) || rows[i].missing) continue;
        ck_assert_msg(rows[i].value <= rows[i].target, "%s: %.2f %%, target %.2f %%",
                      rows[i].name, rows[i].value, rows[i].target);
    }
}
END_TEST

START_TEST(better_than_peers)
{
    for (int i = 0; i < PL_N_ACCURACY; i++)
        if (!isnan(rows[i].peer_value))
            ck_assert_msg(rows[i].value < rows[i].peer_value, "%s: %.2f %%, %s %.2f %%",
                          rows[i].name, rows[i].value, rows[i].peer,
                          rows[i].peer_value);
}
END_TEST

/* 48 predictions, 29 with tp 8; the formula alone reaches 5.0 % on them, as known. The
 * target of 4 % for all is missed: the others scatter. What holds: below 5.0 %. */
START_TEST(deeper_pipelines)
{
    const struct pl_accuracy *all = row("accuracy_vtrain_depth_mape");
    int eight = 0;
    for (int i = 0; i < n_depths; i++) {
        eight += depths[i].tp == 8;
        printf("# %-22s from %2d stages %+6.1f %%, bubble formula %+6.1f %%\n",
               depths[i].note, depths[i].from, depths[i].error, depths[i].by_bubble);
    }
    ck_assert_int_eq(n_depths, 48);
    ck_assert_int_eq(eight, 29);
    ck_assert_double_eq_tol(all->peer_value, 5.03, .005);
    ck_assert_double_lt(all->value, 5.0);
    if (all->value > all->target)
        printf("# KNOWN MISS %s: %.2f %%, target %.2f %%: %s\n", all->name, all->value,
               all->target, all->missing);
}
END_TEST

/* The cluster's own fraction is what one calibration gives, to its three digits. */
START_TEST(shipped_calibration)
{
    static const struct pl_cmd_settings nothing = {0, NULL};
    struct pl_measured data;
    struct pl_fit fit;
    char *path = pl_printf("%s/korthikanti-table5.csv", folder);
    ck_assert_msg(!pl_measured_read(path, NULL, &nothing, &data), "%s",
                  pl_error_text());
    ck_assert_msg(!pl_fit_new(&data, "cluster.gpu.gemm_fraction", &fit), "%s",
                  pl_error_text());
    ck_assert_double_eq_tol(fit.key[0].value, fit.key[0].before, .0005001);
    ck_assert_double_le(fit.error_left_out, .05);
    pl_fit_free(&fit);
    pl_measured_free(&data);
    free(path);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, within_targets);
    tcase_add_test(t, better_than_peers);
    tcase_add_test(t, deeper_pipelines);
    tcase_add_test(t, shipped_calibration);
}

int main(void)
{
    const char *top = getenv("top_srcdir");
    folder = pl_printf("%s/experiments/measured", top ? top : ".");
    pl_cmd_register_families();
    if (pl_accuracy_measure(folder, rows, &depths, &n_depths)) {
        printf("Bail out! %s\n", pl_error_text());
        return 1;
    }
    pl_accuracy_print(rows, "# ", stdout);
    int status = run_tests("accuracy", fill);
    for (int i = 0; i < n_depths; i++) free(depths[i].note);
    free(depths);
    free(folder);
    return status;
}
