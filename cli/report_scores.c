#include "cli/report_scores.h"

#include <math.h>
#include <string.h>

struct mean {
    int seeds;
    double loss, spread, bits, accuracy, accuracy_norm;
    int64_t items;
};

/* The last score of that name, when it is of the last version. */
static const struct pl_score *last(const struct pl_run_result *r, const char *name)
{
    if (r->status != PL_RUN_DONE) return NULL;
    for (int64_t i = r->n_scores; i-- > 0;)
        if (!strcmp(r->scores[i].name, name)) return &r->scores[i];
    return NULL;
}

static struct mean mean_of(const struct pl_experiment *e,
                           const struct pl_run_result *results, int arm,
                           const char *name)
{
    struct mean m = {0};
    double square = 0;
    for (int k = 0; k < e->n_seeds; k++) {
        const struct pl_score *s = last(&results[arm * e->n_seeds + k], name);
        if (!s) continue;
        m.seeds++;
        m.loss += s->loss;
        square += s->loss * s->loss;
        m.bits += s->bits_per_byte;
        m.accuracy += s->accuracy;
        m.accuracy_norm += s->accuracy_norm;
        m.items = s->items;
    }
    const double n = m.seeds;
    m.loss /= n;
    m.bits /= n;
    m.accuracy /= n;
    m.accuracy_norm /= n;
    m.spread =
        m.seeds > 1 ? sqrt(fmax(0, square - n * m.loss * m.loss) / (n - 1)) : NAN;
    return m;
}

/* The scores that name the sets: those of the first run that has any. */
static const struct pl_run_result *first_scored(const struct pl_experiment *e,
                                                const struct pl_run_result *results)
{
    for (int j = 0; j < pl_experiment_jobs(e); j++)
        if (results[j].n_scores) return &results[j];
    return NULL;
}

/* Is score i of the run the first of its name? */
static bool names_set(const struct pl_run_result *r, int64_t i)
{
    for (int64_t k = 0; k < i; k++)
        if (!strcmp(r->scores[k].name, r->scores[i].name)) return false;
    return true;
}

/* A number, a dash where there is none, or a text in its place. */
static void number(FILE *out, int width, int digits, double x, const char *text)
{
    if (text || isnan(x))
        fprintf(out, "%*s", width, text ? text : "-");
    else
        fprintf(out, "%*.*f", width, digits, x);
}

static void print_set(const struct pl_experiment *e,
                      const struct pl_run_result *results, const struct pl_score *set,
                      FILE *out)
{
    const bool text = isnan(set->accuracy);
    fprintf(out, "\n%-22s%10s%10s%12s%10s%10s%10s\n", set->name, "loss", "sd",
            "perplexity", text ? "bits/B" : "acc", text ? "" : "acc_norm",
            text ? "tokens" : "questions");
    for (int i = 0; i < e->n_arms; i++) {
        const struct mean m = mean_of(e, results, i, set->name);
        if (!m.seeds) continue;
        fprintf(out, "%-22s", e->arms[i].name);
        number(out, 10, 4, m.loss, NULL);
        number(out, 10, 4, m.spread, NULL);
        fprintf(out, "%12.4g", exp(m.loss));
        number(out, 10, text ? 4 : 3, text ? m.bits : m.accuracy, NULL);
        number(out, 10, 3, m.accuracy_norm, text ? "" : NULL);
        fprintf(out, "%10lld\n", (long long)m.items);
    }
}

void pl_scores_print(const struct pl_experiment *e, const struct pl_run_result *results,
                     FILE *out)
{
    const struct pl_run_result *r = first_scored(e, results);
    if (!r) return;
    fprintf(out,
            "\nScores at the last version, stored iterate, mean over seeds. Texts: "
            "loss in nats per token;\nquestions: loss of the answers' tokens; a choice "
            "counts by log p(choice | context), acc_norm: per byte.\n");
    for (int64_t i = 0; i < r->n_scores; i++)
        if (names_set(r, i)) print_set(e, results, &r->scores[i], out);
}

void pl_scores_json(const struct pl_experiment *e, const struct pl_run_result *results,
                    struct pl_json *json)
{
    const struct pl_run_result *r = first_scored(e, results);
    if (!r) return;
    pl_json_begin(json, "scores", '[');
    for (int64_t i = 0; i < r->n_scores; i++)
        for (int arm = 0; names_set(r, i) && arm < e->n_arms; arm++) {
            const struct mean m = mean_of(e, results, arm, r->scores[i].name);
            if (!m.seeds) continue;
            pl_json_begin(json, NULL, '{');
            pl_json_text(json, "set", r->scores[i].name);
            pl_json_text(json, "arm", e->arms[arm].name);
            pl_json_int(json, "seeds", m.seeds);
            pl_json_int(json, "items", m.items);
            pl_json_real(json, "loss", m.loss);
            pl_json_real(json, "loss_sd", m.spread);
            pl_json_real(json, "bits_per_byte", m.bits);
            pl_json_real(json, "accuracy", m.accuracy);
            pl_json_real(json, "accuracy_norm", m.accuracy_norm);
            pl_json_end(json, '}');
        }
    pl_json_end(json, ']');
}
