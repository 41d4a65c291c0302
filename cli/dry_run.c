#include "cli/dry_run.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/report.h"
#include "cli/text_table.h"

/* Parts of the memory, in the order of the columns. */
static const struct part {
    const char *name, *key;
    size_t at; /* in struct pl_run_memory */
} parts[] = {
    {"weights", "weights_bytes", offsetof(struct pl_run_memory, weights)},
    {"older", "versions_bytes", offsetof(struct pl_run_memory, versions)},
    {"gradients", "gradients_bytes", offsetof(struct pl_run_memory, gradients)},
    {"state", "state_bytes", offsetof(struct pl_run_memory, state)},
    {"scratch", "scratch_bytes", offsetof(struct pl_run_memory, scratch)},
    {"activations", "activations_bytes", offsetof(struct pl_run_memory, activations)},
    {"tokens", "tokens_bytes", offsetof(struct pl_run_memory, tokens)},
    {NULL, NULL, 0},
};

static size_t part_bytes(const struct pl_probe *p, const struct part *part)
{
    return *(const size_t *)(const void *)((const char *)&p->memory + part->at);
}

/* What a checkpoint takes on disk, about: two while one replaces the other. */
static double checkpoint_bytes(const struct pl_session *s)
{
    double sum = 0;
    for (int i = 0; i < s->experiment.n_arms; i++) {
        const struct pl_run_memory *m = &s->probes[i].memory;
        sum += (double)(m->weights + m->versions + m->state);
    }
    return sum * s->experiment.n_seeds;
}

static const char *fidelity_name(enum pl_fidelity f)
{
    return pl_config_choices("delay.fidelity")[f + 1]; /* after auto */
}

/* Seconds of training on one machine by a cost.profile that was measured there: what
 * all stages work, one after another, evaluations apart. NaN without a profile. */
static double wall_s(const struct pl_arm *arm)
{
    const struct pl_metrics *x = &arm->sim.metrics;
    double work = 0;
    if (!*pl_config_text(arm->config, "cost.profile")) return NAN;
    for (int d = 0; d < x->devices; d++) work += x->device[d].busy_s;
    return work * (double)arm->versions.updates /
           (double)arm->sim.schedule.shape.updates;
}

static void print_wall(const struct pl_session *s, FILE *out)
{
    const struct pl_config *c = s->experiment.arms[0].config;
    double all = 0, tokens = 0;
    char time[32];
    for (int i = 0; i < s->experiment.n_arms; i++) {
        all += wall_s(&s->experiment.arms[i]);
        tokens += (double)s->experiment.arms[i].versions.updates *
                  (double)pl_config_int(c, "train.batch") *
                  (double)pl_config_int(c, "train.seq");
    }
    if (isnan(all))
        pl_text_wrap(
            out, "", 0,
            "wall time: not known here; pipelag profile -o mine.csv measures "
            "this machine, --set cost.profile=mine.csv (and the cost.sequences "
            "in its head) tells it");
    else
        pl_text_wrap(
            out, "", 0,
            "wall time: about %s by cost.profile, one run at a time, "
            "evaluations apart; %.4g tokens/s",
            pl_units_format_time(all * s->experiment.n_seeds, time, sizeof time),
            tokens / all);
}

static void print_arms(const struct pl_session *s, const struct pl_report *r, FILE *out)
{
    static const struct {
        const char *name;
        bool left;
    } columns[] = {{"arm", true},      {"schedule", true}, {"P", false},
                   {"m", false},       {"updates", false}, {"fidelity", true},
                   {"at once", false}, {"tau", true},      {"step", false},
                   {"end", false}};
    char text[64];
    struct pl_text_table *t = pl_text_table_new();
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        pl_text_table_column(t, columns[c].name, columns[c].left, 0);
    for (int i = 0; i < r->n; i++) {
        const struct pl_arm *arm = &s->experiment.arms[i];
        const struct pl_row_report *row = &r->rows[i];
        pl_text_cell(t, "%s", arm->name);
        pl_text_cell(t, "%s", arm->n_segments > 1 ? "segments" : arm->schedules[0]);
        pl_text_cell(t, "%d", arm->sim.schedule.shape.P);
        pl_text_cell(t, "%d", arm->versions.m);
        pl_text_cell(t, "%lld", (long long)arm->versions.updates);
        pl_text_cell(t, "%s", fidelity_name(s->probes[i].fidelity));
        pl_text_cell(t, "%d", s->probes[i].at_once);
        if (isnan(row->tau_first)) /* too few updates for a steady window */
            pl_text_cell(t, "-");
        else if (row->tau_first == row->tau_last)
            pl_text_cell(t, "%.3g", row->tau_first);
        else
            pl_text_cell(t, "%.3g .. %.3g", row->tau_first, row->tau_last);
        pl_text_cell(t, "%s",
                     isnan(row->step_s)
                         ? "-"
                         : pl_units_format_time(row->step_s, text, sizeof text));
        pl_text_cell(t, "%s", pl_units_format_time(row->end_s, text, sizeof text));
    }
    pl_text_table_print(t, NULL, out);
}

static void print_memory(const struct pl_session *s, FILE *out)
{
    char text[32];
    struct pl_text_table *t = pl_text_table_new();
    pl_text_table_column(t, "memory of a run", true, 0);
    pl_text_table_column(t, "all", false, 0);
    for (const struct part *p = parts; p->name; p++)
        pl_text_table_column(t, p->name, false, 0);
    for (int i = 0; i < s->experiment.n_arms; i++) {
        const struct pl_probe *probe = &s->probes[i];
        pl_text_cell(t, "%s", s->experiment.arms[i].name);
        pl_text_cell(
            t, "%s",
            pl_units_format_bytes((double)probe->memory.all, text, sizeof text));
        for (const struct part *p = parts; p->name; p++)
            pl_text_cell(
                t, "%s",
                pl_units_format_bytes((double)part_bytes(probe, p), text, sizeof text));
    }
    putc('\n', out);
    pl_text_table_print(t, NULL, out);
}

static void print_text(const struct pl_session *s, const struct pl_report *r, FILE *out)
{
    char all[32], left[32], disk[32];
    char *given = pl_config_dump(s->config, true);
    fprintf(out, "%s\n", given);
    free(given);
    pl_report_heading(r, out);
    print_arms(s, r, out);
    print_memory(s, out);
    putc('\n', out);
    pl_text_wrap(out, "", 0,
                 "%d run%s, %d at a time: %s of memory, %s are free; checkpoints %s on "
                 "disk",
                 pl_session_jobs(s), pl_session_jobs(s) > 1 ? "s" : "", s->n_workers,
                 pl_units_format_bytes((double)s->largest->memory.all * s->n_workers,
                                       all, sizeof all),
                 pl_units_format_bytes(pl_memory_available(), left, sizeof left),
                 pl_units_format_bytes(checkpoint_bytes(s), disk, sizeof disk));
    print_wall(s, out);
    fputs("older: weights that delays still need, and what correctors keep\n", out);
    pl_text_wrap(out, "device:", 8, "%s", s->probes[0].device);
    fputs("dry run: nothing is written\n", out);
}

static void print_json(const struct pl_session *s, const struct pl_report *r, FILE *out)
{
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    pl_json_begin(&json, "arms", '[');
    for (int i = 0; i < r->n; i++) {
        const struct pl_arm *arm = &s->experiment.arms[i];
        const struct pl_probe *probe = &s->probes[i];
        pl_json_begin(&json, NULL, '{');
        pl_json_text(&json, "arm", arm->name);
        pl_json_text(&json, "fidelity", fidelity_name(probe->fidelity));
        pl_json_int(&json, "updates", arm->versions.updates);
        pl_json_int(&json, "at_once", probe->at_once);
        pl_json_real(&json, "tau_first", r->rows[i].tau_first);
        pl_json_real(&json, "tau_last", r->rows[i].tau_last);
        pl_json_real(&json, "step_s", r->rows[i].step_s);
        pl_json_real(&json, "end_s", r->rows[i].end_s);
        pl_json_real(&json, "wall_s", wall_s(arm));
        pl_json_uint(&json, "bytes", probe->memory.all);
        for (const struct part *p = parts; p->name; p++)
            pl_json_uint(&json, p->key, part_bytes(probe, p));
        pl_json_end(&json, '}');
    }
    pl_json_end(&json, ']');
    pl_json_int(&json, "runs", pl_session_jobs(s));
    pl_json_int(&json, "workers", s->n_workers);
    pl_json_real(&json, "checkpoint_bytes", checkpoint_bytes(s));
    pl_json_end(&json, '}');
    pl_json_close(&json);
}

int pl_dry_run(struct pl_session *s, bool as_json, FILE *out)
{
    struct pl_report report;
    int rc = pl_session_check(s);
    if (rc) return rc;
    const int fits = pl_session_workers(s);
    if (!fits) rc = pl_session_check_output(s);
    if (rc) return rc;
    rc = pl_report_new(&s->experiment, s->results, &report);
    if (rc) return rc;
    char *why = pl_strdup(fits ? pl_error_text() : "");
    (as_json ? print_json : print_text)(s, &report, out);
    pl_report_free(&report);
    if (fits) rc = pl_fail(fits, "%s", why);
    free(why);
    return rc;
}
