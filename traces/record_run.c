/* Training rows and verdicts to a trace. */
#include "traces/record.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A member of structs as a column; optional: none where the first is NaN. */
struct member {
    const char *name;
    size_t offset;
    bool optional;
};

static void put_reals(struct pl_trace *t, const char *path, const char *name, int64_t n,
                      const void *first, size_t stride)
{
    double *column = PL_NEW(n, double);
    for (int64_t i = 0; i < n; i++)
        memcpy(&column[i], (const char *)first + (size_t)i * stride, sizeof *column);
    pl_trace_f64(t, path, name, n, column);
    free(column);
}

/* The members of n structs from base on. */
static void put_members(struct pl_trace *t, const char *path, int64_t n,
                        const char *base, size_t stride, const struct member *members)
{
    for (const struct member *m = members; m->name; m++) {
        double first = NAN;
        if (n) memcpy(&first, base + m->offset, sizeof first);
        if (!m->optional || !isnan(first))
            put_reals(t, path, m->name, n, base + m->offset, stride);
    }
}

static void put_ints(struct pl_trace *t, const char *path, const char *name, int64_t n,
                     const void *first, size_t stride)
{
    int64_t *column = PL_NEW(n, int64_t);
    for (int64_t i = 0; i < n; i++)
        memcpy(&column[i], (const char *)first + (size_t)i * stride, sizeof *column);
    pl_trace_i64(t, path, name, n, column);
    free(column);
}

static void record_rows(struct pl_trace *t, const char *run, int64_t n,
                        const struct pl_row *rows)
{
    static const struct member reals[] = {
        {"time_s", offsetof(struct pl_row, time_s), false},
        {"loss", offsetof(struct pl_row, loss), false},
        {"rate", offsetof(struct pl_row, rate), false},
        {"grad_norm", offsetof(struct pl_row, grad_norm), false},
        {"update_norm", offsetof(struct pl_row, update_norm), false},
        {"stale_norm", offsetof(struct pl_row, stale_norm), false},
        {"balance_loss", offsetof(struct pl_row, balance_loss), true},
        {"z_loss", offsetof(struct pl_row, z_loss), true},
        {"load_max", offsetof(struct pl_row, load_max), true},
        {0},
    };
    char *path = pl_printf("%s/rows", run);
    const char *base = n ? (const char *)rows : ""; /* rows may be NULL */
    put_ints(t, path, "update", n, base + offsetof(struct pl_row, update),
             sizeof *rows);
    put_members(t, path, n, base, sizeof *rows, reals);
    free(path);
}

static void record_evals(struct pl_trace *t, const char *run, int64_t n,
                         const struct pl_eval *evals)
{
    static const struct member reals[] = {
        {"time_s", offsetof(struct pl_eval, time_s), false},
        {"loss", offsetof(struct pl_eval, loss), false},
        {"loss_y", offsetof(struct pl_eval, loss_y), false},
        {0},
    };
    static const struct member known[] = {
        {"load_max", offsetof(struct pl_eval, load_max), true},
        {"grad_norm", offsetof(struct pl_eval, grad_norm), true},
        {0},
    };
    static const struct member dual[] = {
        {"grad_dual", offsetof(struct pl_eval, grad_dual), false},
        {"grad_dual_y", offsetof(struct pl_eval, grad_dual_y), false},
        {0},
    };
    char *path = pl_printf("%s/evals", run);
    const char *base = n ? (const char *)evals : "";
    const size_t size = sizeof *evals;
    const bool exact = n && !isnan(evals[0].grad_norm); /* then there is no text */
    put_ints(t, path, "update", n, base + offsetof(struct pl_eval, update), size);
    put_members(t, path, n, base, size, reals);
    if (!exact)
        put_reals(t, path, "bits_per_byte", n,
                  base + offsetof(struct pl_eval, bits_per_byte), size);
    put_members(t, path, n, base, size, known);
    if (exact) put_members(t, path, n, base, size, dual);
    free(path);
}

static void record_diagnosis(struct pl_trace *t, const char *run, int64_t n,
                             const struct pl_diag *diags)
{
    static const struct member reals[] = {
        {"tau", offsetof(struct pl_diag, tau), false},
        {"cos_update", offsetof(struct pl_diag, cos_update), false},
        {"cos_gradient", offsetof(struct pl_diag, cos_gradient), false},
        {"distance", offsetof(struct pl_diag, distance), false},
        {"turning", offsetof(struct pl_diag, turning), false},
        {"grad_norm", offsetof(struct pl_diag, grad_norm), false},
        {"update_norm", offsetof(struct pl_diag, update_norm), false},
        {"half_life", offsetof(struct pl_diag, half_life), false},
        {0},
    };
    if (!n) return;
    char *path = pl_printf("%s/diagnosis", run);
    const char *base = (const char *)diags;
    put_ints(t, path, "update", n, base + offsetof(struct pl_diag, update),
             sizeof *diags);
    put_ints(t, path, "stage", n, base + offsetof(struct pl_diag, stage),
             sizeof *diags);
    put_members(t, path, n, base, sizeof *diags, reals);
    free(path);
}

static void record_scores(struct pl_trace *t, const char *run, int64_t n,
                          const struct pl_score *scores)
{
    if (!n) return;
    const size_t size = sizeof *scores;
    const char **names = PL_NEW(n, const char *);
    double *perplexity = PL_NEW(n, double);
    for (int64_t i = 0; i < n; i++) {
        names[i] = scores[i].name;
        perplexity[i] = exp(scores[i].loss);
    }
    char *path = pl_printf("%s/scores", run);
    put_ints(t, path, "update", n, &scores->update, size);
    pl_trace_text(t, path, "set", n, names);
    put_ints(t, path, "items", n, &scores->items, size);
    put_reals(t, path, "loss", n, &scores->loss, size);
    pl_trace_f64(t, path, "perplexity", n, perplexity);
    put_reals(t, path, "bits_per_byte", n, &scores->bits_per_byte, size);
    put_reals(t, path, "accuracy", n, &scores->accuracy, size);
    put_reals(t, path, "accuracy_norm", n, &scores->accuracy_norm, size);
    free(path);
    free(names);
    free(perplexity);
}

void pl_record_run(struct pl_trace *t, const char *arm, uint64_t seed,
                   const struct pl_run_result *result)
{
    static const char *const status[] = {[PL_RUN_DONE] = "done",
                                         [PL_RUN_DIVERGED] = "diverged",
                                         [PL_RUN_INTERRUPTED] = "interrupted"};
    char *run = pl_printf("/arms/%s/seeds/%" PRIu64, arm, seed);
    pl_trace_attr_text(t, run, "status", status[result->status]);
    pl_trace_attr_int(t, run, "diverged_at", result->diverged_at);
    record_rows(t, run, result->n_rows, result->rows);
    record_evals(t, run, result->n_evals, result->evals);
    record_scores(t, run, result->n_scores, result->scores);
    record_diagnosis(t, run, result->n_diags, result->diags);
    free(run);
}

void pl_record_segments(struct pl_trace *t, const char *arm, int n,
                        const struct pl_segment *segments, const char *const *schedules)
{
    const char **correctors = PL_NEW(n, const char *);
    int64_t *first = PL_NEW(n, int64_t), *updates = PL_NEW(n, int64_t);
    for (int i = 0; i < n; i++) {
        correctors[i] = segments[i].corrector.type->name;
        first[i] = i ? first[i - 1] + updates[i - 1] : 0;
        updates[i] = segments[i].updates;
    }
    char *path = pl_printf("/arms/%s/segments", arm);
    pl_trace_text(t, path, "schedule", n, schedules);
    pl_trace_text(t, path, "corrector", n, correctors);
    pl_trace_i64(t, path, "first_update", n, first);
    pl_trace_i64(t, path, "updates", n, updates);
    free(path);
    free(correctors);
    free(first);
    free(updates);
}

void pl_record_verdicts(struct pl_trace *t, const struct pl_verdict *verdicts, int n)
{
    const char **column = PL_NEW(n, const char *);
    for (int k = 0; k < 6; k++) {
        static const char *const names[] = {"id",        "statement", "source",
                                            "published", "measured",  "word"};
        for (int i = 0; i < n; i++) {
            const struct pl_verdict *v = &verdicts[i];
            const char *const texts[] = {v->id,        v->statement, v->source,
                                         v->published, v->measured,  pl_words[v->word]};
            column[i] = texts[k] ? texts[k] : "";
        }
        pl_trace_text(t, "/claims", names[k], n, column);
    }
    free(column);
}

void pl_record_problem(struct pl_trace *t, const char *arm, const char *problem,
                       const struct pl_problem_known *known)
{
    char *path = pl_printf("/arms/%s", arm);
    pl_trace_attr_text(t, path, "problem", problem);
    if (isfinite(known->minimum)) pl_trace_attr_real(t, path, "f_min", known->minimum);
    if (isfinite(known->L)) pl_trace_attr_real(t, path, "L", known->L);
    if (isfinite(known->L_lmo)) pl_trace_attr_real(t, path, "L_lmo", known->L_lmo);
    free(path);
}
