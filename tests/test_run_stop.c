/* A stop inside an evaluation: it ends there, and a resumed run evaluates anew and is
 * the run in one piece. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/runner.h"
#include "train/run.h"

enum { UPDATES = 6, EVERY = 3, BATCH = 2, T = 8, WINDOWS = 7 };
enum { CHUNKS = (WINDOWS + BATCH - 1) / BATCH };

static char path[] = "/tmp/pipelag-stop-XXXXXX";
static volatile sig_atomic_t stop;
static int calls, stop_at; /* of the problem's loss */
static struct pl_problem_type counting;

static int count_loss(struct pl_problem *p, const struct pl_batch *batch,
                      const float *const *weights, double *loss)
{
    stop |= ++calls == stop_at;
    return pl_problem_model.loss(p, batch, weights, loss);
}

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

/* A model of two stages on delay 1, stopped in loss number `at` (0: never). */
static void train(int at, bool resume, struct pl_run_result *r)
{
    const struct pl_model model = {.layers = 2,
                                   .hidden = 16,
                                   .heads = 2,
                                   .kv_heads = 2,
                                   .head_dim = 8,
                                   .ffn = 24,
                                   .vocab = 256,
                                   .rope_theta = 1e4,
                                   .norm_eps = 1e-5};
    const int64_t tau[2] = {1, 1};
    const struct pl_segment segment = {
        UPDATES, pl_corrector_make("feedback", NAN, PL_START_HOLD)};
    const struct pl_device *device;
    struct pl_problem *problem;
    struct pl_data *data;
    struct pl_versions v;
    must(pl_device_get("host", &device));
    must(pl_data_open("grammar", NULL, NULL, .1, 256, T, &data));
    must(pl_problem_net(device, &model, 2, BATCH, T, &problem));
    pl_versions_constant(2, UPDATES, 1, tau, 1, &v);
    const struct pl_optim_type *rule = pl_optim_find("adamw");
    struct pl_optim optim = rule->defaults;
    optim.type = rule;
    optim.lr = 1e-2;
    const struct pl_run_spec spec = {
        .device = device,
        .problem = problem,
        .data = data,
        .versions = &v,
        .fidelity = PL_FIDELITY_STASH,
        .batch = BATCH,
        .T = T,
        .seed = 1,
        .optim = optim,
        .rate = {.kind = PL_RATE_CONSTANT, .total = UPDATES, .floor = 1},
        .n_segments = 1,
        .segments = &segment,
        .eval_every = EVERY,
        .eval_sequences = WINDOWS,
        .checkpoint = path,
        .resume = resume,
        .stop = &stop};
    counting = pl_problem_model;
    counting.loss = count_loss;
    problem->type = &counting;
    stop = calls = 0;
    stop_at = at;
    must(pl_run(&spec, r));
    pl_versions_free(&v);
    pl_problem_free(problem);
    pl_data_free(data);
}

/* Chunks of a run: the first evaluation, then two of x and of y each. Stopped in the
 * first chunk, in the middle, and in one of y. */
START_TEST(stops_inside)
{
    static const int at[] = {
        1, 2, CHUNKS + 1, CHUNKS + 2, 2 * CHUNKS + 1, 4 * CHUNKS - 1};
    struct pl_run_result whole, cut, rest;
    unlink(path);
    train(0, false, &whole);
    ck_assert_int_eq(whole.status, PL_RUN_DONE);
    ck_assert_int_eq(calls, 5 * CHUNKS);
    unlink(path);
    train(at[_i], false, &cut);
    ck_assert_int_eq(cut.status, PL_RUN_INTERRUPTED);
    ck_assert_int_eq(calls, at[_i]); /* not to the end of the evaluation */
    ck_assert_int_eq(cut.n_rows, at[_i] <= CHUNKS ? 0 : at[_i] <= 3 * CHUNKS ? 3 : 6);
    ck_assert_int_eq(cut.n_evals, at[_i] <= CHUNKS ? 0 : at[_i] <= 3 * CHUNKS ? 1 : 2);
    train(0, true, &rest);
    ck_assert_int_eq(rest.status, PL_RUN_DONE);
    ck_assert_int_eq(rest.n_rows, whole.n_rows);
    ck_assert_int_eq(rest.n_evals, whole.n_evals);
    for (int64_t i = 0; i < whole.n_rows; i++)
        ck_assert_double_eq(rest.rows[i].loss, whole.rows[i].loss);
    for (int64_t i = 0; i < whole.n_evals; i++) {
        ck_assert_int_eq(rest.evals[i].update, whole.evals[i].update);
        ck_assert_double_eq(rest.evals[i].loss, whole.evals[i].loss);
        ck_assert_double_eq(rest.evals[i].loss_y, whole.evals[i].loss_y);
    }
    pl_run_free(&whole);
    pl_run_free(&cut);
    pl_run_free(&rest);
    unlink(path);
}
END_TEST

static void fill(TCase *t)
{
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    unlink(path);
    tcase_add_loop_test(t, stops_inside, 0, 6);
}

int main(void)
{
    return run_tests("run_stop", fill);
}
