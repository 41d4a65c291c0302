/* The loop on the real net and on the library's quadratic: it learns, devices agree,
 * fused and replayed agree, a tied head follows the rule of shared tensors. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "train/run.h"
#include "tests/runner.h"

enum { UPDATES = 30, BATCH = 8, T = 16 };

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

struct setting {
    const char *device, *optimizer, *corrector;
    int64_t tau[2];
    int m;
    bool tied, replay;
    int at_once;
};

static const struct pl_model decoder = {.layers = 2,
                                        .hidden = 32,
                                        .heads = 4,
                                        .kv_heads = 2,
                                        .head_dim = 8,
                                        .ffn = 48,
                                        .vocab = 256,
                                        .rope_theta = 1e4,
                                        .norm_eps = 1e-5};

/* A two-layer decoder on two stages, on the grammar. */
static int train(const struct setting *set, struct pl_run_result *r)
{
    struct pl_model model = decoder;
    const struct pl_optim_type *rule = pl_optim_find(set->optimizer);
    struct pl_optim optim = rule->defaults;
    model.tied = set->tied;
    optim.type = rule;
    if (optim.refresh) optim.refresh = 15; /* eigenvectors take long */
    const struct pl_segment segment = {
        UPDATES, pl_corrector_make(set->corrector, NAN, PL_START_HOLD)};
    const struct pl_device *device;
    struct pl_problem *problem;
    struct pl_data *data;
    struct pl_versions v;
    must(pl_device_get(set->device, &device));
    must(pl_data_open("grammar", NULL, NULL, .1, 256, T, &data));
    pl_versions_constant(2, UPDATES, set->m, set->tau, 1, &v);
    struct pl_run_spec spec = {.device = device,
                               .data = data,
                               .versions = &v,
                               .fidelity = PL_FIDELITY_STASH,
                               .batch = BATCH,
                               .at_once = set->at_once,
                               .T = T,
                               .seed = 1,
                               .optim = optim,
                               .rate = {PL_RATE_COSINE, 3, UPDATES, .1, 0},
                               .clip = 1,
                               .clip_scope = PL_CLIP_STAGE,
                               .n_segments = 1,
                               .segments = &segment,
                               .replay = set->replay,
                               .eval_every = 10,
                               .eval_sequences = BATCH + 3}; /* and a part */
    must(pl_problem_net(device, &model, 2, pl_run_at_once(&spec), T, &problem));
    spec.problem = problem;
    int rc = pl_run(&spec, r);
    pl_versions_free(&v);
    pl_data_free(data);
    pl_problem_free(problem);
    return rc;
}

static double worst_loss(const struct pl_run_result *a, const struct pl_run_result *b)
{
    double worst = 0;
    ck_assert_int_eq(a->n_rows, b->n_rows);
    ck_assert_int_eq(a->n_evals, b->n_evals);
    for (int64_t i = 0; i < a->n_rows; i++)
        worst = fmax(worst, fabs(a->rows[i].loss - b->rows[i].loss));
    for (int64_t i = 0; i < a->n_evals; i++)
        worst = fmax(worst, fabs(a->evals[i].loss - b->evals[i].loss));
    return worst;
}

/* Every optimizer, delayed and corrected, lowers the validation loss. */
START_TEST(learns)
{
    struct setting set = {
        "host", pl_optim_types[_i]->name, "feedback", {1, 1}, 1, false, false, 0};
    struct pl_run_result r;
    must(train(&set, &r));
    ck_assert_int_eq(r.status, PL_RUN_DONE);
    ck_assert_int_eq(r.n_rows, UPDATES);
    ck_assert_int_eq(r.n_evals, 4);
    ck_assert_double_eq_tol(r.evals[0].loss, log(256), .3);
    ck_assert_double_lt(r.evals[3].loss, r.evals[0].loss);
    for (int64_t i = 0; i < r.n_rows; i++) {
        ck_assert(isfinite(r.rows[i].grad_norm) && r.rows[i].grad_norm > 0);
        ck_assert(r.rows[i].update_norm > 0 || i == 0); /* soap's first is none */
        ck_assert((r.rows[i].stale_norm > 0) ==
                  (i > 0 && r.rows[i - 1].update_norm > 0));
    }
    pl_run_free(&r);
}
END_TEST

/* Losses of about 5 in single precision (6e-7) after 30 updates of Adam, which
 * amplifies rounding where v is small: 1e-3 is what a wrong version or sample exceeds
 * at once. */
START_TEST(devices_and_paths_agree)
{
    struct setting set = {"host", "adamw", "nesterov", {2, 1}, 2, false, false, 0};
    struct pl_run_result host, other, wrong;
    must(train(&set, &host));
    if (_i == 0) set.device = "ref";
    if (_i == 1) set.replay = true;
    if (_i == 2) set.at_once = 3; /* of microbatches of 4: 3 and 1 */
    if (_i == 3) set.at_once = 5; /* a whole one */
    must(train(&set, &other));
    ck_assert_double_le(worst_loss(&host, &other), 1e-3);
    set.tau[1] = 0;
    must(train(&set, &wrong));
    ck_assert_double_gt(worst_loss(&host, &wrong), 1e-3);
    pl_run_free(&host);
    pl_run_free(&other);
    pl_run_free(&wrong);
}
END_TEST

/* One tensor on two stages: trained where both read one version, refused elsewhere. */
START_TEST(tied_head)
{
    struct setting set = {"host", "adamw", "none", {1, 1}, 1, true, false, 0};
    struct pl_run_result r;
    must(train(&set, &r));
    ck_assert_double_lt(r.evals[3].loss, r.evals[0].loss);
    pl_run_free(&r);
    set.tau[1] = 0;
    ck_assert_int_eq(train(&set, &r), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.tied: no"));
}
END_TEST

/* Plain gradient descent on the quadratic, delay 0: x_i = (1 - lr h_i)^n exactly. */
START_TEST(quadratic_closed_form)
{
    const double h[2] = {1, 3}, lr = .1;
    const int64_t tau[1] = {0};
    const struct pl_segment segment = {10,
                                       pl_corrector_make("none", NAN, PL_START_HOLD)};
    struct pl_problem *problem;
    struct pl_versions v;
    struct pl_run_result r;
    const struct pl_problem_spec two = {
        .type = pl_problem_find("quadratic"),
        .size = 2,
        .spectrum = {.kind = PL_SPECTRUM_LIST, .n_values = 2, .values = h}};
    must(two.type->open(&two, &pl_device_ref, 1, &problem));
    pl_versions_constant(1, 10, 1, tau, 1, &v);
    const struct pl_run_spec spec = {.device = &pl_device_ref,
                                     .problem = problem,
                                     .versions = &v,
                                     .batch = 1,
                                     .T = 1,
                                     .optim = {.type = pl_optim_find("sgd"), .lr = lr},
                                     .rate = {.total = 10},
                                     .n_segments = 1,
                                     .segments = &segment,
                                     .eval_every = 1,
                                     .eval_sequences = 1};
    must(pl_run(&spec, &r));
    for (int n = 0; n <= 10; n++) {
        double a = pow(1 - lr, n), b = pow(1 - 3 * lr, n);
        ck_assert_double_eq_tol(r.evals[n].loss, .5 * (a * a + 3 * b * b), 1e-5);
    }
    pl_run_free(&r);
    pl_versions_free(&v);
    pl_problem_free(problem);
}
END_TEST

static void fill(TCase *t)
{
    int rules = 0;
    while (pl_optim_types[rules]) rules++;
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, learns, 0, rules);
    tcase_add_loop_test(t, devices_and_paths_agree, 0, 4);
    tcase_add_test(t, tied_head);
    tcase_add_test(t, quadratic_closed_form);
}

int main(void)
{
    return run_tests("run_llama", fill);
}
