/* A plan as text. */
#include "cli/plan_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/text_table.h"

enum { EXPLAINED = 20 }; /* rows whose loss is explained: each is simulated twice */

const char *const pl_plan_recompute_names[] = {"none", "selective", "full"};

const char *pl_plan_split_name(const struct pl_plan *plan,
                               const struct pl_plan_group *group)
{
    if (pl_config_given(plan->ask->config, "model.split"))
        return pl_config_text(plan->ask->config, "model.split");
    return group->balanced ? "balanced" : "uniform";
}

double (*pl_plan_all_parts(const struct pl_plan *plan, int n))[PL_N_PARTS]
{
    double(*parts)[PL_N_PARTS] =
        pl_alloc((size_t)n + 1, sizeof *parts); /* never of length 0 */
    for (int i = 0; i < n; i++)
        if (pl_plan_parts(plan, plan->best[i], parts[i])) {
            free(parts);
            return NULL;
        }
    return parts;
}

static const struct pl_plan_group *group_of(const struct pl_plan *plan, int64_t row)
{
    return &plan->groups[plan->rows[row].group];
}

static void print_head(const struct pl_plan *plan, FILE *out)
{
    const struct pl_cluster *c = &plan->cluster;
    const struct pl_config *config = plan->ask->config;
    char limit[32], all[32];
    pl_units_format_bytes(plan->limit, limit, sizeof limit);
    pl_units_format_bytes((double)c->gpu.memory, all, sizeof all);
    fprintf(out, "%s on %s (%s), %" PRId64 " GPUs %s\n",
            pl_config_text(config, "model.preset"), c->name,
            pl_config_text(config, "cluster.levels"), plan->ask->gpus, c->gpu.name);
    pl_text_wrap(out, "", 0,
                 "an update: %" PRId64 " sequences of %" PRId64
                 " tokens, %.4g M tokens; optimizer %s; memory limit %s of %s",
                 plan->batch, plan->seq, (double)plan->batch * (double)plan->seq * 1e-6,
                 pl_config_text(config, "optimizer.name"), limit, all);
    putc('\n', out);
}

/* cp, ep: is there such a column? */
static void add_row(const struct pl_plan *plan, int i, bool cp, bool ep,
                    struct pl_text_table *t)
{
    const struct pl_plan_row *row = &plan->rows[plan->best[i]];
    const struct pl_plan_group *g = &plan->groups[row->group];
    char text[32];
    pl_text_cell(t, "%d", i + 1);
    pl_text_cell(t, "%s", pl_schedule_types[row->type]->name);
    pl_text_cell(t, "%d", g->tp);
    pl_text_cell(t, "%d", g->pp);
    pl_text_cell(t, cp ? "%d" : "%.0d", cp ? g->cp : 0);
    pl_text_cell(t, "%d", g->dp);
    pl_text_cell(t, ep ? "%d" : "%.0d", ep ? g->ep : 0);
    pl_text_cell(t, "%d", row->v);
    pl_text_cell(t, "%d", g->b);
    pl_text_cell(t, "%d", g->m);
    pl_text_cell(t, "%s", pl_plan_recompute_names[g->recompute]);
    pl_text_cell(t, "%d", g->zero);
    pl_text_cell(t, "%.8s", g->pp > 1 ? pl_plan_split_name(plan, g) : "-");
    pl_text_cell(t, "%s", pl_units_format_time(row->step_s, text, sizeof text));
    pl_text_cell(t, "%.0f", row->tokens);
    pl_text_cell(t, "%.1f", 100 * row->mfu);
    pl_text_cell(t, "%.4f", fabs(row->bubble) < 5e-5 ? 0 : row->bubble);
    pl_text_cell(t, "%s", pl_units_format_bytes(row->peak, text, sizeof text));
    pl_text_cell(t, "%.0f", row->tau);
}

static void print_table(const struct pl_plan *plan, FILE *out)
{
    static const struct {
        const char *name;
        bool left;
    } columns[] = {{"#", false},     {"schedule", true},  {"tp", false},
                   {"pp", false},    {"cp", false},       {"dp", false},
                   {"ep", false},    {"v", false},        {"b", false},
                   {"m", false},     {"recompute", true}, {"zero", false},
                   {"split", true},  {"step", false},     {"tokens/s/GPU", false},
                   {"MFU %", false}, {"bubble", false},   {"memory", false},
                   {"tau", false}};
    struct pl_text_table *t = pl_text_table_new();
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        pl_text_table_column(t, columns[c].name, columns[c].left, 0);
    bool cp = false, ep = false; /* columns of ones alone are left out */
    for (int i = 0; i < plan->n_best; i++) {
        cp |= group_of(plan, plan->best[i])->cp > 1;
        ep |= group_of(plan, plan->best[i])->ep > 1;
    }
    for (int i = 0; i < plan->n_best; i++) add_row(plan, i, cp, ep, t);
    pl_text_table_print(t, NULL, out);
}

static void print_conventions(const struct pl_plan *plan, FILE *out)
{
    bool stale = false;
    int sync = -1;
    for (int i = plan->n_best - 1; i >= 0; i--) {
        const struct pl_plan_row *row = &plan->rows[plan->best[i]];
        stale |= row->tau > 0;
        if (row->tau == 0) sync = i;
    }
    fprintf(
        out,
        "\nstep    synchronous: makespan of one update; else spacing of U on stage 0"
        "\nMFU     6 N + 12 L d T a token, no causal discount, recomputation excluded"
        "\nbubble  1 - work of the busiest device per update / step; U and exchanges "
        "are work"
        "\nmemory  peak of the fullest device; tau: largest of any stage, in updates"
        "\nb sequences a microbatch, m microbatches an update, v chunks a device\n%s",
        plan->ask->all ? ""
                       : "a row is the best of its tp x pp x dp (x ep) and class, "
                         "synchronous or not (--all: every one)\n");
    if (!stale) return;
    fprintf(
        out,
        "tau > 0: gradients of old weights. Rows are compared by time per update "
        "alone; whether the loss\nstays equal is not said (pipelag run trains it). ");
    if (sync >= 0)
        fprintf(out, "Best synchronous row: %d.\n", sync + 1);
    else
        fputs("--max-tau 0: synchronous rows alone.\n", out);
}

/* The text written to *memory, broken for width behind the label; both end here. */
static void wrap_up(FILE *memory, char **text, const char *label, int indent, FILE *out)
{
    fclose(memory);
    pl_text_wrap(out, label, indent, "%s", *text);
    free(*text);
}

static void print_difference(int i, const double *own, const double *best, FILE *stream)
{
    double all = 0, first = 0;
    char text[32];
    bool done[PL_N_PARTS] = {false};
    for (int k = 0; k < PL_N_PARTS; k++) all += own[k] - best[k], first += best[k];
    char *line, label[16];
    size_t bytes;
    FILE *out = open_memstream(&line, &bytes);
    snprintf(label, sizeof label, "%3d", i + 1);
    fprintf(out, "+%.2f %%, %s:", 100 * all / first,
            pl_units_format_time(all, text, sizeof text));
    double most = 0;
    for (int n = 0; n < PL_N_PARTS; n++) {
        int next = -1;
        for (int k = 0; k < PL_N_PARTS; k++)
            if (!done[k] &&
                (next < 0 || fabs(own[k] - best[k]) > fabs(own[next] - best[next])))
                next = k;
        double d = own[next] - best[next];
        done[next] = true;
        if (!n) most = fabs(d);
        if (fabs(d) < .05 * most || d == 0) break; /* too small to matter */
        fprintf(out, "%s %s %c%s", n ? "," : "", pl_plan_part_names[next],
                d < 0 ? '-' : '+', pl_units_format_time(fabs(d), text, sizeof text));
    }
    if (most == 0) fputs(" takes as long; older gradients, more memory or later", out);
    wrap_up(out, &line, label, 5, stream);
}

static void print_reasons(int n, double (*parts)[PL_N_PARTS], FILE *out)
{
    double step = 0;
    for (int k = 0; k < PL_N_PARTS; k++) step += parts[0][k];
    fprintf(out, "\nwhere row 1 spends its step (busiest device):");
    const char *before = " ";
    for (int k = 0; k < PL_N_PARTS; k++) {
        if (parts[0][k] < 5e-4 * step) continue;
        fprintf(out, "%s%s %.1f %%", before, pl_plan_part_names[k],
                100 * parts[0][k] / step);
        before = ", ";
    }
    putc('\n', out);
    if (n > 1) fputs("why the others lose to it:\n", out);
    for (int i = 1; i < n; i++) print_difference(i, parts[i], parts[0], out);
}

/* "interleaved, tp 8, pp 4, dp 2, v 2, b 1, recompute none, zero 1" */
static void print_name(const struct pl_plan *plan, int64_t number, FILE *out)
{
    const struct pl_plan_row *row = &plan->rows[number];
    const struct pl_plan_group *g = &plan->groups[row->group];
    fprintf(out, "%s, tp %d, pp %d, ", pl_schedule_types[row->type]->name, g->tp,
            g->pp);
    if (g->cp > 1) fprintf(out, "cp %d, ", g->cp);
    fprintf(out, "dp %d, ", g->dp);
    if (g->ep > 1) fprintf(out, "ep %d, ", g->ep);
    fprintf(out, "v %d, b %d, m %d, recompute %s, zero %d", row->v, g->b, g->m,
            pl_plan_recompute_names[g->recompute], g->zero);
}

static void print_needs(const struct pl_plan *plan, int64_t number, FILE *out)
{
    const struct pl_plan_row *row = &plan->rows[number];
    char peak[32], limit[32];
    fprintf(out, "needs %s on device %d of %d, limit %s",
            pl_units_format_bytes(row->peak, peak, sizeof peak), row->device,
            plan->groups[row->group].pp,
            pl_units_format_bytes(plan->limit, limit, sizeof limit));
}

static void print_refused(const struct pl_plan *plan, FILE *out)
{
    if (!plan->n_best || !plan->n_refused) return;
    double best = plan->rows[plan->best[0]].step_s;
    fputs("\nfaster, but out of memory (of those that need at most twice the limit):\n",
          out);
    for (int i = 0; i < plan->n_refused; i++) {
        char *line;
        size_t bytes;
        FILE *memory = open_memstream(&line, &bytes);
        print_name(plan, plan->refused[i], memory);
        fprintf(memory, ": %.1f %% faster than row 1, but ",
                100 * (best / plan->rows[plan->refused[i]].step_s - 1));
        print_needs(plan, plan->refused[i], memory);
        wrap_up(memory, &line, "  ", 2, out);
    }
}

static void print_nothing(const struct pl_plan *plan, FILE *out)
{
    fprintf(out, "%s\n",
            plan->incomplete ? "nothing simulated so far"
                             : "OUT OF MEMORY: nothing fits");
    if (plan->least < 0) return;
    char *line;
    size_t bytes;
    FILE *memory = open_memstream(&line, &bytes);
    print_name(plan, plan->least, memory);
    fputs(": ", memory);
    print_needs(plan, plan->least, memory);
    wrap_up(memory, &line, "least memory:", 14, out);
    fputs("more GPUs (--gpus), larger ones, or shorter sequences (--seq) change that\n",
          out);
}

static void print_counts(const struct pl_plan *plan, FILE *out)
{
    static const char *const words[PL_N_FATES] = {
        [PL_FATE_OPEN] = "not looked at",
        [PL_FATE_UNFIT] = "whose schedule does not take the shape",
        [PL_FATE_MEMORY] = "too large by a lower bound",
        [PL_FATE_SLOW] = "too slow by a lower bound",
        [PL_FATE_DOMINATED] = "slower than their own row by a lower bound",
        [PL_FATE_STALE] = "simulated, above --max-tau",
        [PL_FATE_OVER] = "simulated, out of memory",
        [PL_FATE_DONE] = "simulated, fit",
        [PL_FATE_FAILED] = "not simulated",
    };
    fprintf(out, "\n%" PRId64 " candidates", plan->n_rows);
    const char *before = ":";
    for (int f = 0; f < PL_N_FATES; f++) {
        if (!plan->fates[f]) continue;
        fprintf(out, "%s %" PRId64 " %s", before, plan->fates[f], words[f]);
        before = f == PL_FATE_UNFIT || f == PL_FATE_SLOW ? ",\n" : ",";
    }
    fprintf(out,
            "\n%" PRId64 " more do not divide GPUs, batch, layers, heads or experts\n",
            plan->indivisible);
    if (plan->failure) fprintf(out, "not simulated: %s\n", plan->failure);
}

int pl_plan_print_text(const struct pl_plan *plan, FILE *out)
{
    int n = plan->n_best < EXPLAINED ? plan->n_best : EXPLAINED;
    double(*parts)[PL_N_PARTS] = pl_plan_all_parts(plan, n);
    if (!parts) return PL_ECONFIG;
    print_head(plan, out);
    if (plan->n_best) {
        print_table(plan, out);
        print_conventions(plan, out);
        print_reasons(n, parts, out);
        print_refused(plan, out);
    } else {
        print_nothing(plan, out);
    }
    print_counts(plan, out);
    free(parts);
    return PL_OK;
}

int pl_plan_print_yaml(const struct pl_plan *plan, int64_t k, FILE *out)
{
    struct pl_config *config;
    if (k > plan->n_best)
        return pl_fail(PL_EUSAGE, "--yaml %" PRId64 ": the plan has %d rows", k,
                       plan->n_best);
    int rc = pl_config_arm(plan->ask->config, 0, &config);
    if (rc) return rc;
    pl_plan_apply(plan, &plan->rows[plan->best[k - 1]], config);
    fputs("# row ", out);
    fprintf(out, "%" PRId64 " of pipelag plan: ", k);
    print_name(plan, plan->best[k - 1], out);
    putc('\n', out);
    pl_config_print(config, true, out);
    pl_config_free(config);
    return PL_OK;
}
