/* Scores against counting by hand: questions on a problem whose likelihoods are known,
 * the reader's errors, bits per byte. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/run.h"
#include "tests/runner.h"

enum { T = 16 };
static const char path[] = "test_score.jsonl";

static void spit(const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

/* A "model" for which token x costs x / 100 nats, wherever it stands. */
static int loss_of(struct pl_problem *p, const struct pl_batch *b,
                   const float *const *weights, double *loss)
{
    (void)p, (void)weights;
    *loss = 0;
    for (int i = 0; i < b->B * b->T; i++) *loss += b->targets[i] / 100.0;
    *loss /= b->B * b->T;
    return 0;
}

static int gradient_of(struct pl_problem *p, const struct pl_batch *b,
                       const float *const *wf, const float *const *wb, double scale,
                       float *const *grads, double *loss)
{
    (void)wb, (void)scale, (void)grads;
    return loss_of(p, b, wf, loss);
}

static int init_of(struct pl_problem *p, uint64_t seed, float *const *weights)
{
    (void)p, (void)seed, (void)weights;
    return 0;
}

static size_t bytes_of(const struct pl_problem *p)
{
    (void)p;
    return 0;
}

static void score(struct pl_score_sets *sets, struct pl_run_result *out)
{
    static const struct pl_problem_type type = {.name = "count",
                                                .summary = "test",
                                                .source = "test",
                                                .init = init_of,
                                                .gradient = gradient_of,
                                                .loss = loss_of,
                                                .bytes = bytes_of};
    static struct pl_param param = {.rows = 1, .cols = 1, .kind = PL_PARAM_VECTOR};
    static int first[2] = {0, 1};
    static size_t floats = 1;
    struct pl_problem problem = {.type = &type,
                                 .device = &pl_device_ref,
                                 .n_stages = 1,
                                 .n_params = 1,
                                 .params = &param,
                                 .first_param = first,
                                 .stage_floats = &floats};
    const struct pl_segment segment = {4, pl_corrector_make("none", 0, PL_START_HOLD)};
    const int64_t tau = 0;
    struct pl_versions v;
    struct pl_data *data;
    ck_assert_int_eq(pl_data_open("grammar", NULL, NULL, .1, 256, T, &data), 0);
    pl_versions_constant(1, 4, 1, &tau, 1, &v);
    const struct pl_run_spec spec = {.device = &pl_device_ref,
                                     .problem = &problem,
                                     .data = data,
                                     .versions = &v,
                                     .batch = 2,
                                     .T = T,
                                     .seed = 1,
                                     .optim = {.type = pl_optim_find("sgd")},
                                     .rate = {.total = 4},
                                     .n_segments = 1,
                                     .segments = &segment,
                                     .eval_every = 2,
                                     .eval_sequences = 3,
                                     .bytes_per_token = 2,
                                     .scores = sets};
    ck_assert_msg(pl_run(&spec, out) == 0, "%s", pl_error_text());
    pl_versions_free(&v);
    pl_data_free(data);
}

/* ' ' is 32, 'a' 97, 'z' 122, '!' 33: sums decide without, means with normalisation. */
START_TEST(questions_are_counted)
{
    spit("{\"context\": \"q\", \"choices\": [\"a\", \"z\"], \"answer\": 0}\n"
         "\n"
         "{\"ctx\": \"q\", \"endings\": [\"aa\", \"z\"], \"label\": 0}\n"
         "{\"context\": \"\", \"choices\": [\"!!!\", \"a\"], \"answer\": 1}\n");
    struct pl_score_set set;
    ck_assert_msg(pl_score_questions(path, NULL, 256, T, &set) == 0, "%s",
                  pl_error_text());
    set.name = pl_strdup("quiz");
    ck_assert_int_eq(set.n_questions, 3);
    struct pl_score_sets sets = {1, PL_NEW(1, struct pl_score_set)};
    sets.sets[0] = set;
    struct pl_run_result r;
    score(&sets, &r);
    ck_assert_int_eq(r.n_scores, 2);
    ck_assert_int_eq(r.scores[0].update, 0);
    ck_assert_int_eq(r.scores[1].update, 4);
    const struct pl_score *s = &r.scores[1];
    ck_assert_str_eq(s->name, "quiz");
    ck_assert_int_eq(s->items, 3);
    /* plain: a < z right; aa = 194 > z wrong; !!! = 99 > a right */
    ck_assert_double_eq_tol(s->accuracy, 2. / 3, 1e-12);
    /* per byte: a < z right; 97 < 122 right; ! < a wrong */
    ck_assert_double_eq_tol(s->accuracy_norm, 2. / 3, 1e-12);
    ck_assert_double_eq_tol(s->loss, (.97 + .97 + .97) / 3, 1e-9);
    ck_assert(isnan(s->bits_per_byte));
    ck_assert_double_eq_tol(r.evals[0].bits_per_byte, r.evals[0].loss / log(2) / 2,
                            1e-12);
    pl_run_free(&r);
    pl_score_free(&sets);
}
END_TEST

/* A context that does not fit loses its beginning; the choices stay whole. */
START_TEST(long_contexts_are_cut)
{
    spit("{\"context\": \"0123456789abcdefghij\", \"choices\": [\"xyz\", \"x\"], "
         "\"answer\": 0}");
    struct pl_score_set set;
    ck_assert_int_eq(pl_score_questions(path, NULL, 256, T, &set), 0);
    ck_assert_int_eq(set.questions[0].n_context, T + 1 - 3);
    ck_assert_int_eq(set.questions[0].context[T + 1 - 4], 'j');
    ck_assert_int_eq(set.questions[0].choices[0].n, 3);
    ck_assert_uint_eq(set.questions[0].choices[0].bytes, 3);
    struct pl_score_sets sets = {1, PL_NEW(1, struct pl_score_set)};
    sets.sets[0] = set;
    pl_score_free(&sets);
}
END_TEST

START_TEST(bad_questions_are_refused)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "no questions"},
        {"{\"choices\": [\"a\", \"b\"], \"answer\": 0}", ":1: has no \"context\""},
        {"{\"context\": \"a\", \"answer\": 0}", "no \"choices\""},
        {"{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": 0}", "fewer than 2"},
        {"{\"context\": \"a\", \"choices\": \"bc\", \"answer\": 0}", "expected a list"},
        {"{\"context\": \"a\", \"choices\": [\"b\", \"\"], \"answer\": 0}", "is empty"},
        {"{\"context\": \"a\", \"choices\": [\"b\", 3], \"answer\": 0}",
         "expected a text"},
        {"{\"context\": \"a\", \"choices\": [\"b\", \"c\"]}", "no \"answer\""},
        {"{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 2}", "0 to 1"},
        {"{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": -1}", "0 to 1"},
        {"{\"context\": \"a\", \"choices\": [\"b\", \"0123456789abcdefg\"], "
         "\"answer\": 0}",
         "longer than train.seq"},
        {"{\"context\": \"\xc3\xa9\", \"choices\": [\"b\", \"c\"], \"answer\": 0}",
         "model.vocab"},
        {"\n\n[1]", ":3"},
        {"{", ":1"},
    };
    struct pl_score_set set;
    spit(bad[_i].text);
    ck_assert_int_eq(pl_score_questions(path, NULL, 128, T, &set), PL_EINPUT);
    ck_assert_msg(strstr(pl_error_text(), bad[_i].error) != NULL, "%s",
                  pl_error_text());
    ck_assert_msg(strstr(pl_error_text(), path) != NULL, "%s", pl_error_text());
}
END_TEST

static void cleanup(void)
{
    unlink(path);
}

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, NULL, cleanup);
    tcase_add_test(t, questions_are_counted);
    tcase_add_test(t, long_contexts_are_cut);
    tcase_add_loop_test(t, bad_questions_are_refused, 0, 14);
}

int main(void)
{
    return run_tests("score", fill);
}
