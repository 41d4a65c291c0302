/* Runs of mixtures of experts: what rows and evaluations say of the routers, and that
 * selection biases even the load out, outside of every norm. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/moe_case.h"
#include "tests/runner.h"
#include "train/run.h"

enum { B = 4, T = 8, P = 2 };

/* A run on two stages; members may be changed before pl_run. */
struct job {
    struct pl_run_spec spec;
    struct pl_versions versions;
    struct pl_segment segment;
    struct pl_data *data;
    volatile sig_atomic_t stop;
    int64_t stop_at;
};

static void on_row(void *context, const struct pl_row *row)
{
    struct job *job = context;
    if (row->update == job->stop_at) job->stop = 1;
}

static void job_open(struct job *j, const struct pl_device *dev,
                     const struct pl_model *model, int64_t updates, int64_t tau)
{
    const int64_t taus[P] = {tau, tau};
    struct pl_problem *p;
    ck_assert_int_eq(dev->open(), 0);
    ck_assert_msg(pl_problem_net(dev, model, P, B, T, &p) == 0, "%s", pl_error_text());
    ck_assert_int_eq(pl_data_open("grammar", NULL, NULL, .1, 256, T, &j->data), 0);
    pl_versions_constant(P, updates, 2, taus, 1, &j->versions);
    j->segment =
        (struct pl_segment){updates, pl_corrector_make("none", NAN, PL_START_HOLD)};
    j->stop = 0;
    j->stop_at = -1;
    j->spec = (struct pl_run_spec){.device = dev,
                                   .problem = p,
                                   .data = j->data,
                                   .versions = &j->versions,
                                   .fidelity = PL_FIDELITY_STASH,
                                   .batch = B,
                                   .T = T,
                                   .optim = {.type = pl_optim_find("adamw"),
                                             .lr = 1e-4,
                                             .beta1 = .9,
                                             .beta2 = .95,
                                             .eps = 1e-8},
                                   .rate = {.kind = PL_RATE_CONSTANT, .total = updates},
                                   .n_segments = 1,
                                   .segments = &j->segment,
                                   .eval_every = updates,
                                   .eval_sequences = 6, /* a batch and half of one */
                                   .bytes_per_token = 1,
                                   .diverged_above = 100,
                                   .stop = &j->stop,
                                   .on_row = on_row,
                                   .context = j};
}

static void job_run(const struct job *j, struct pl_run_result *r)
{
    ck_assert_msg(pl_run(&j->spec, r) == 0, "%s", pl_error_text());
}

static void job_close(struct job *j)
{
    pl_versions_free(&j->versions);
    pl_data_free(j->data);
    pl_problem_free(j->spec.problem);
}

static struct pl_model bytes_kind(int i)
{
    struct pl_model m = kind(i);
    m.vocab = 256;
    return m;
}

/* On `ref` a row of a batch is the same in any batch, so choices are, fused or not. */
START_TEST(rows_say_what_routers_do)
{
    const struct pl_model model = bytes_kind(_i);
    struct pl_run_result r[2];
    for (int replay = 0; replay < 2; replay++) {
        struct job j;
        job_open(&j, &pl_device_ref, &model, 4, 0);
        j.spec.replay = replay;
        job_run(&j, &r[replay]);
        job_close(&j);
    }
    const struct pl_row *a = &r[0].rows[0], *b = &r[1].rows[0];
    ck_assert_double_eq_tol(a->balance_loss, b->balance_loss, 1e-12);
    ck_assert(a->balance_loss > 0.5 && a->balance_loss < EXPERTS);
    ck_assert(a->load_max == b->load_max);
    ck_assert(a->load_max >= 1 && a->load_max <= EXPERTS / 2.0);
    const double choices = a->load_max * B * T * 2 / EXPERTS; /* counts are whole */
    ck_assert_double_eq_tol(choices, round(choices), 1e-9);
    ck_assert_int_eq(isnan(a->z_loss), model.z_loss == 0);
    if (model.z_loss > 0) {
        ck_assert_double_eq_tol(a->z_loss, b->z_loss, 1e-12);
        ck_assert_double_eq_tol(a->z_loss, pow(log(EXPERTS), 2), 0.1);
    }
    for (int i = 0; i < 2; i++) {
        const double top = r[0].evals[i].load_max;
        ck_assert(top >= 1 && top <= EXPERTS / 2.0);
    }
    for (int i = 0; i < 2; i++) pl_run_free(&r[i]);
}
END_TEST

START_TEST(dense_models_have_none)
{
    struct pl_model model = bytes_kind(0);
    struct pl_run_result r;
    struct job j;
    model.experts = model.experts_per_token = model.expert_ffn = 0;
    model.aux_loss = model.z_loss = 0;
    job_open(&j, &pl_device_host, &model, 2, 1);
    job_run(&j, &r);
    ck_assert(isnan(r.rows[1].balance_loss) && isnan(r.rows[1].z_loss));
    ck_assert(isnan(r.rows[1].load_max) && isnan(r.evals[1].load_max));
    pl_run_free(&r);
    job_close(&j);
}
END_TEST

START_TEST(resumed_rows_are_equal)
{
    const struct pl_model model = bytes_kind(0);
    char path[] = "/tmp/pl-moe-XXXXXX";
    struct pl_run_result whole, r;
    struct job j;
    job_open(&j, &pl_device_host, &model, 8, 1);
    job_run(&j, &whole);
    close(mkstemp(path));
    unlink(path);
    j.spec.checkpoint = path;
    j.stop_at = 4;
    job_run(&j, &r);
    ck_assert(r.status == PL_RUN_INTERRUPTED && r.n_rows == 5);
    pl_run_free(&r);
    j.spec.resume = true;
    j.stop = 0;
    j.stop_at = -1;
    job_run(&j, &r);
    ck_assert(r.n_rows == 8 && r.n_evals == whole.n_evals);
    ck_assert(!memcmp(r.rows, whole.rows, sizeof *r.rows * 8));
    ck_assert(!memcmp(r.evals, whole.evals, sizeof *r.evals * (size_t)r.n_evals));
    ck_assert(isfinite(r.rows[7].balance_loss) && isfinite(r.rows[7].z_loss));
    unlink(path);
    pl_run_free(&whole);
    pl_run_free(&r);
    job_close(&j);
}
END_TEST

enum { UPDATES = 120 };

/* Kind 2 with these biases. */
static void train(bool biased, double rate, int64_t tau, struct pl_run_result *r)
{
    struct pl_model model = bytes_kind(2);
    struct job j;
    model.router_bias = biased;
    model.bias_rate = rate;
    model.aux_loss = 0;
    job_open(&j, &pl_device_host, &model, UPDATES, tau);
    job_run(&j, r);
    job_close(&j);
}

/* Load of the fullest expert above the mean, mean over the second half. */
static double excess(const struct pl_run_result *r)
{
    double sum = 0;
    for (int i = UPDATES / 2; i < UPDATES; i++) sum += r->rows[i].load_max - 1;
    return sum / (UPDATES - UPDATES / 2);
}

/* A step is small against the spread of a token's scores, about 0.03 here (large ones
 * swing, the more so under delay), and the rate is low enough for the router to stay.
 */
START_TEST(biases_even_the_load)
{
    struct pl_run_result still, moving;
    train(true, 0, _i, &still);
    train(true, 0.001, _i, &moving);
    ck_assert_msg(excess(&moving) < 0.5 * excess(&still), "%g of %g", excess(&moving),
                  excess(&still));
    pl_run_free(&still);
    pl_run_free(&moving);
}
END_TEST

/* The first update: biases are 0, so nothing differs but that they are there. */
START_TEST(biases_are_in_no_norm)
{
    struct pl_run_result with, without;
    train(true, 0.02, 0, &with);
    train(false, 0, 0, &without);
    ck_assert(with.rows[0].loss == without.rows[0].loss);
    ck_assert(with.rows[0].grad_norm == without.rows[0].grad_norm);
    ck_assert(with.rows[0].update_norm == without.rows[0].update_norm);
    ck_assert(with.rows[UPDATES - 1].loss != without.rows[UPDATES - 1].loss);
    pl_run_free(&with);
    pl_run_free(&without);
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, rows_say_what_routers_do, 0, KINDS);
    tcase_add_test(t, dense_models_have_none);
    tcase_add_test(t, resumed_rows_are_equal);
    tcase_add_loop_test(t, biases_even_the_load, 0, 2);
    tcase_add_test(t, biases_are_in_no_norm);
}

int main(void)
{
    return run_tests("moe_run", fill);
}
