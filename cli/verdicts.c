#include "cli/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/text_table.h"

enum { INDENT = 14 }; /* of what stands behind "verdict:" */

struct pl_verdict *pl_verdicts_of(const struct pl_report *report, int *n)
{
    struct pl_claim_arm *arms = PL_NEW(report->n, struct pl_claim_arm);
    struct pl_claim_input input = {report->experiment->n_seeds, report->n, arms};
    for (int i = 0; i < report->n; i++)
        arms[i] = (struct pl_claim_arm){report->rows[i].group, report->rows[i].label,
                                        report->rows[i].losses};
    *n = pl_claims_count();
    struct pl_verdict *verdicts = PL_NEW(*n, struct pl_verdict);
    pl_claims_judge(&input, verdicts);
    free(arms);
    return verdicts;
}

/* "10 a statement (its source)" */
static void print_claim(int number, const char *statement, const char *between,
                        const char *more, const char *after, FILE *out)
{
    char label[16];
    snprintf(label, sizeof label, "%2d", number);
    pl_text_wrap(out, label, 3, "%s%s%s%s", statement, between, more, after);
}

void pl_verdicts_print(const struct pl_verdict *verdicts, int n, FILE *out)
{
    int untested = 0;
    for (int i = 0; i < n; i++) untested += verdicts[i].word == PL_NOT_TESTED;
    if (untested == n) {
        fprintf(out, "\nClaims: none tested, they need arms named as pipelag-run(1) "
                     "says under Verdicts.\n");
        return;
    }
    fprintf(out, "\nClaims, theirs beside ours; [low, high]: 95 %% t interval of a "
                 "paired difference:\n");
    for (int i = 0; i < n; i++) {
        const struct pl_verdict *v = &verdicts[i];
        if (v->word == PL_NOT_TESTED) continue;
        print_claim(i + 1, v->statement, " (", v->source, ")", out);
        pl_text_wrap(out, "     theirs:", INDENT, "%s", v->published);
        pl_text_wrap(out, "     ours:", INDENT, "%s", v->measured);
        pl_text_wrap(out, "     verdict:", INDENT, "%s", pl_words[v->word]);
    }
    if (untested) fprintf(out, "\nClaims not tested, and why:\n");
    for (int i = 0; i < n; i++)
        if (verdicts[i].word == PL_NOT_TESTED)
            print_claim(i + 1, verdicts[i].statement, ": ", verdicts[i].measured, "",
                        out);
}

void pl_verdicts_json(const struct pl_verdict *verdicts, int n, struct pl_json *json)
{
    pl_json_begin(json, "claims", '[');
    for (int i = 0; i < n; i++) {
        pl_json_begin(json, NULL, '{');
        pl_json_text(json, "id", verdicts[i].id);
        pl_json_text(json, "statement", verdicts[i].statement);
        pl_json_text(json, "source", verdicts[i].source);
        pl_json_text(json, "published", verdicts[i].published);
        pl_json_text(json, "measured", verdicts[i].measured);
        pl_json_text(json, "verdict", pl_words[verdicts[i].word]);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
}
