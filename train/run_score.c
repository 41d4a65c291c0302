/* Scores of the model on texts and questions (train/score.h), at the stored iterate.
 *   text       mean loss per token; bits per byte = loss / (ln 2 bytes per token)
 *   questions  a choice's score is the log-likelihood of its tokens after the context,
 *              log p(context + choice) - log p(context); accuracy counts the questions
 *              whose answer scores best, accuracy_norm divides scores by the choice's
 *              bytes first (acc and acc_norm of EleutherAI's evaluation harness); loss
 *              is the answers' mean loss per token. Ties go to the first. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "train/run_state.h"

/* Negative log-likelihood of the n - 1 tokens that follow the first. */
static int surprise(struct pl_run_state *run, const int32_t *ids, int n, double *out)
{
    const struct pl_run_spec *spec = run->spec;
    struct pl_batch batch = {.B = 1, .T = n - 1};
    *out = 0;
    if (n < 2) return 0;
    int rc = pl_feed_put(run, ids, n - 1, &batch);
    if (!rc) rc = spec->problem->type->loss(spec->problem, &batch, run->forward, out);
    *out *= n - 1;
    return rc;
}

static int ask(struct pl_run_state *run, const struct pl_question *q,
               struct pl_score *score)
{
    double context, best = INFINITY, best_norm = INFINITY;
    int choice = 0, choice_norm = 0;
    int32_t *ids = run->feed.line;
    memcpy(ids, q->context, sizeof *ids * (size_t)q->n_context);
    int rc = surprise(run, ids, q->n_context, &context);
    for (int i = 0; i < q->n_choices && !rc; i++) {
        const struct pl_choice *c = &q->choices[i];
        double whole = 0;
        memcpy(ids + q->n_context, c->tokens, sizeof *ids * (size_t)c->n);
        rc = surprise(run, ids, q->n_context + c->n, &whole);
        double own = whole - context, norm = own / (double)c->bytes;
        if (own < best) choice = i;
        if (norm < best_norm) choice_norm = i;
        best = fmin(best, own);
        best_norm = fmin(best_norm, norm);
        if (i == q->answer) score->loss += own / c->n;
    }
    score->accuracy += choice == q->answer;
    score->accuracy_norm += choice_norm == q->answer;
    return rc;
}

static int ask_all(struct pl_run_state *run, const struct pl_score_set *set,
                   struct pl_score *score)
{
    const double n = set->n_questions;
    int rc = 0;
    score->loss = score->accuracy = score->accuracy_norm = 0;
    for (int i = 0; i < set->n_questions && !rc; i++) {
        if (pl_run_stopped(run->spec)) rc = pl_fail(PL_EINTR, "interrupted");
        if (!rc) rc = ask(run, &set->questions[i], score);
    }
    score->items = set->n_questions;
    score->loss /= n;
    score->accuracy /= n;
    score->accuracy_norm /= n;
    return rc;
}

static bool due(const struct pl_run_state *run, const struct pl_score_set *set)
{
    const int64_t n = run->store.version;
    return set->data || n == 0 || n == run->spec->versions->updates;
}

int64_t pl_run_n_scores(const struct pl_run_spec *spec)
{
    int64_t n = 0;
    for (int i = 0; spec->scores && i < spec->scores->n; i++)
        n += spec->scores->sets[i].data ? pl_run_n_evals(spec) : 2;
    return n;
}

int pl_run_scores(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages; s++)
        run->forward[s] = pl_wstore_stored(&run->store, s);
    for (int i = 0; spec->scores && i < spec->scores->n && !rc; i++) {
        const struct pl_score_set *set = &spec->scores->sets[i];
        struct pl_score score = {.update = run->store.version,
                                 .bits_per_byte = NAN,
                                 .accuracy = NAN,
                                 .accuracy_norm = NAN};
        if (!due(run, set)) continue;
        strncpy(score.name, set->name, sizeof score.name - 1);
        if (set->data) {
            rc = pl_run_loss(run, set->data, run->forward, &score.loss);
            score.items = (int64_t)spec->eval_sequences * spec->T;
            score.bits_per_byte = score.loss / log(2) / set->bytes_per_token;
        } else {
            rc = ask_all(run, set, &score);
        }
        if (!rc) run->result.scores[run->result.n_scores++] = score;
    }
    return rc;
}
