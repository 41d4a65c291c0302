/* What an experiment trains and on what, above its table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/report.h"
#include "cli/setup_optim.h"
#include "cli/setup_problem.h"
#include "cli/text_table.h"

bool pl_report_on_data(const struct pl_report *r)
{
    return pl_setup_problem_type(r->experiment->arms[0].config)->on_data;
}

static double tokens_per_update(const struct pl_config *c)
{
    return (double)pl_config_int(c, "train.batch") *
           (double)pl_config_int(c, "train.seq");
}

static const char *data_text(const struct pl_config *c)
{
    const char *text = pl_config_text(c, "data.text");
    const char *tokens = pl_config_text(c, "data.tokens");
    return *text ? text : *tokens ? tokens : "built-in grammar";
}

static void print_costs(const struct pl_arm *arm, FILE *out)
{
    const struct pl_cost *c = &arm->cost;
    double k = 1e-12 / (double)arm->cost_factor;
    const bool roofline = !strcmp(pl_config_text(arm->config, "cost.type"), "roofline");
    char f[32], b[32], w[32], l[32];
    pl_text_wrap(
        out, "costs", PL_REPORT_INDENT,
        "stage 0, %lld sequence%s: F %s, B %s, W %s, transfer %s%s",
        (long long)pl_config_int(arm->config, "cost.sequences"),
        pl_config_int(arm->config, "cost.sequences") == 1 ? "" : "s",
        pl_units_format_time((double)c->forward[0] * k, f, sizeof f),
        pl_units_format_time((double)c->backward[0] * k, b, sizeof b),
        pl_units_format_time((double)c->weight[0] * k, w, sizeof w),
        pl_units_format_time(c->devices > 1 ? (double)c->next[0] * k : 0, l, sizeof l),
        roofline && !pl_setup_problem_type(arm->config)->on_data
            ? " (of model.*, which is not trained)"
            : "");
}

/* stages: "P = 4 stages". */
static void print_model(const struct pl_arm *arm, const char *stages, FILE *out)
{
    const struct pl_model *m = &arm->model;
    char experts[120] = "";
    if (m->experts)
        snprintf(experts, sizeof experts,
                 ", %d of %d experts of %d a token (%.3fM active parameters)",
                 m->experts_per_token, m->experts, m->expert_ffn,
                 (double)pl_model_count(m).n_active_params / 1e6);
    pl_text_wrap(out, "model", PL_REPORT_INDENT,
                 "%.3fM parameters: %d layers, hidden %d, %d/%d heads, ffn %d, "
                 "vocabulary %d, %s%s; %s",
                 (double)pl_model_params(m) / 1e6, m->layers, m->hidden, m->heads,
                 m->kv_heads, m->ffn, m->vocab, m->tied ? "tied" : "untied", experts,
                 stages);
}

static void print_data(const struct pl_arm *arm, int n_seeds, FILE *out)
{
    double tokens = tokens_per_update(arm->config);
    pl_text_wrap(out, "data", PL_REPORT_INDENT,
                 "%s; %.0f tokens per update, %lld updates = %.3gM tokens; %d seed%s",
                 data_text(arm->config), tokens, (long long)arm->versions.updates,
                 tokens * (double)arm->versions.updates / 1e6, n_seeds,
                 n_seeds == 1 ? "" : "s");
}

/* A problem without data: its loss is exact, and of no tokens. */
static void print_problem(const struct pl_arm *arm, const char *stages, FILE *out)
{
    const struct pl_problem_type *type = pl_setup_problem_type(arm->config);
    char minimum[32] = "", L[32] = "";
    if (isfinite(arm->known.minimum))
        snprintf(minimum, sizeof minimum, "; minimum %.6g", arm->known.minimum);
    if (isfinite(arm->known.L)) snprintf(L, sizeof L, ", L %.6g", arm->known.L);
    pl_text_wrap(out, "problem", PL_REPORT_INDENT, "%s: %s%s%s; %s", type->name,
                 type->summary, minimum, L, stages);
}

/* Arms whose updates take more than the simulated times say. */
static void print_twice(const struct pl_experiment *e, FILE *out)
{
    for (int i = 0; i < e->n_arms; i++)
        if (pl_setup_optim_twice(e->arms[i].config))
            pl_text_wrap(
                out, "exact", PL_REPORT_INDENT,
                "%s: an update takes a second gradient, F, B and W again, that "
                "step and simulated times do not have",
                e->arms[i].name);
}

/* Every rule of the run with its settings, once. */
static void print_rules(const struct pl_experiment *e, FILE *out)
{
    char **texts = PL_NEW(e->n_arms, char *);
    for (int i = 0; i < e->n_arms; i++) {
        const struct pl_optim o = pl_setup_optim(e->arms[i].config);
        bool seen = false;
        texts[i] = pl_setup_optim_text(&o);
        for (int k = 0; k < i; k++) seen |= !strcmp(texts[k], texts[i]);
        if (!seen)
            pl_text_wrap(out, i ? "" : "optimizer", PL_REPORT_INDENT, "%s", texts[i]);
    }
    for (int i = 0; i < e->n_arms; i++) free(texts[i]);
    free(texts);
}

void pl_report_heading(const struct pl_report *r, FILE *out)
{
    const struct pl_experiment *e = r->experiment;
    const struct pl_arm *arm = &e->arms[0];
    const bool model = pl_report_on_data(r);
    char stages[80], chunks[40] = "";
    if (arm->versions.stages != arm->sim.schedule.shape.P)
        snprintf(chunks, sizeof chunks, " of %d model chunks",
                 arm->versions.stages / arm->sim.schedule.shape.P);
    snprintf(stages, sizeof stages, "P = %d stages%s", arm->sim.schedule.shape.P,
             chunks);
    pl_text_wrap(out, "", 0, "%s", pl_config_title(e->config));
    (model ? print_model : print_problem)(arm, stages, out);
    if (model)
        print_data(arm, e->n_seeds, out);
    else
        fprintf(out,
                "samples     %lld per update, %lld updates; %d seed%s; no model and no "
                "data\n",
                (long long)pl_config_int(arm->config, "train.batch"),
                (long long)arm->versions.updates, e->n_seeds,
                e->n_seeds == 1 ? "" : "s");
    print_costs(arm, out);
    print_twice(e, out);
    print_rules(e, out);
    pl_text_wrap(
        out, "units", PL_REPORT_INDENT,
        "tau in optimizer updates (steady mean, stage 0 .. stage P-1); loss %s "
        "stored iterate x; bubble = 1 - busiest device's work / step",
        model ? "in nats per token on validation data at the" : "exact, at the");
    putc('\n', out);
}
