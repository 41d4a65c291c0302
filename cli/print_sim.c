#include "cli/print_sim.h"

#include <inttypes.h>
#include <math.h>

#include "cli/closed.h"
#include "cli/print_delay.h"
#include "cli/print_links.h"
#include "cli/print_segments.h"
#include "traces/figure.h"

static void print_gantt(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_timeline *t = &view->run->sim.timeline;
    struct pl_gantt gantt = {
        t->shape.P, t->shape.m, t->n_ops, t->kind,  t->device,
        t->micro,   t->start,   t->end,   t->chunk, view->run->sim.schedule.layout.C};
    pl_gantt_ascii(&gantt, view->gantt_width, out);
    putc('\n', out);
}

/* Seven digits, so that simulated and closed form can be told apart. */
static void format_time(double seconds, char *buf, size_t n)
{
    static const char *const units[] = {"s", "ms", "us", "ns", "ps"};
    int k = 0;
    for (; k < 4 && fabs(seconds) < 1; k++) seconds *= 1000;
    snprintf(buf, n, "%.7g %s", seconds, seconds == 0 ? "s" : units[k]);
}

static void print_time(FILE *out, const char *name, double seconds, double closed,
                       const char *meaning)
{
    char value[32] = "none", other[32] = "-";
    if (!isnan(seconds)) format_time(seconds, value, sizeof value);
    if (!isnan(closed)) format_time(closed, other, sizeof other);
    fprintf(out, "%-21s %12s %12s  %s\n", name, value, other, meaning);
}

static void print_ratio(FILE *out, const char *name, double value, double closed,
                        const char *meaning)
{
    char text[32] = "none", other[32] = "-";
    if (fabs(value) < 5e-5) value = 0; /* no "-0.0000" of rounding */
    if (!isnan(value)) snprintf(text, sizeof text, "%.4f", value);
    if (!isnan(closed)) snprintf(other, sizeof other, "%.4f", closed);
    fprintf(out, "%-21s %12s %12s  %s\n", name, text, other, meaning);
}

static void print_numbers(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_metrics *x = &view->run->sim.metrics;
    struct pl_closed closed = pl_closed_of(view->run);
    double r = closed.bubble_over_ideal,
           busy = x->ideal_s / view->run->sim.schedule.shape.updates;
    double steady = isnan(closed.step_s) ? NAN : fmax(0, 1 - busy / closed.step_s);
    bool async = view->run->sim.schedule.type->async;
    char meaning[96] = "no steady window";
    if (x->steady_to > x->steady_from)
        snprintf(meaning, sizeof meaning,
                 "spacing of U on stage 0, updates %" PRId64 "..%" PRId64,
                 x->steady_from, x->steady_to - 1);
    fprintf(out, "%-21s %12s %12s\n", "", "simulated", "closed form");
    print_time(out, "makespan", x->makespan_s, closed.makespan_s,
               "T, end of the whole run");
    print_time(out, "step", x->step_s, closed.step_s,
               async ? meaning : "makespan / updates");
    print_time(out, "ideal", x->ideal_s, NAN, "work of the busiest stage");
    print_ratio(out, "bubble", x->bubble, r / (1 + r), "(T - ideal) / T");
    print_ratio(out, "bubble_over_ideal", x->bubble_over_ideal, r,
                "(T - ideal) / ideal");
    print_ratio(out, "bubble_parallelogram", x->bubble_parallelogram,
                1 - x->ideal_s / closed.span_s, "the same, T = longest of one stage");
    print_ratio(out, "bubble_steady", x->bubble_steady, steady,
                "1 - (ideal / updates) / step");
}

/* "2 = 2": simulated = closed form; "1 (2)": they differ; "-": none (no steady window).
 */
static void print_count(FILE *out, int64_t value, int64_t closed)
{
    char text[64] = "-";
    if (value > 0 && closed < 0)
        snprintf(text, sizeof text, "%" PRId64, value);
    else if (value > 0)
        snprintf(text, sizeof text,
                 value == closed ? "%" PRId64 " = %" PRId64
                                 : "%" PRId64 " (%" PRId64 ")",
                 value, closed);
    fprintf(out, " %11s", text);
}

static void print_tau(FILE *out, double tau)
{
    if (isnan(tau))
        fprintf(out, " %6s", "-");
    else
        fprintf(out, " %6.3g", tau);
}

static void print_delay(const struct pl_stage_metrics *x,
                        const struct pl_closed_stage *c, FILE *out)
{
    char range[48] = "-";
    if (c->tau_min >= 0)
        snprintf(range, sizeof range,
                 c->tau_min == c->tau_max ? "%" PRId64 : "%" PRId64 "..%" PRId64,
                 c->tau_min, c->tau_max);
    print_tau(out, x->tau_min);
    print_tau(out, x->tau_mean);
    print_tau(out, x->tau_max);
    fprintf(out, " %8s %8.3g", range, x->tau_startup);
    print_count(out, x->weight_versions, c->versions);
}

/* One chunk a device: a row has both the chunk's numbers and the device's. */
static void print_stages(const struct pl_sim_view *view, FILE *out)
{
    fprintf(out, "\n%5s %12s  %-20s %8s %8s %11s %11s\n", "", "", "delay tau", "", "",
            "weight", "peak");
    fprintf(out, "%5s %12s  %6s %6s %6s %8s %8s %11s %11s\n", "stage", "busy", "min",
            "mean", "max", "closed", "start-up", "versions", "activations");
    for (int s = 0; s < view->run->sim.metrics.stages; s++) {
        const struct pl_stage_metrics *x = &view->run->sim.metrics.stage[s];
        struct pl_closed_stage c = pl_closed_stage_of(view->run, s);
        char busy[32];
        format_time(x->busy_s, busy, sizeof busy);
        fprintf(out, "%5d %12s ", s, busy);
        print_delay(x, &c, out);
        print_count(out, x->peak_activations, c.peak);
        putc('\n', out);
    }
}

/* Several chunks a device: its own rows, then those of the chunks. */
static void print_devices(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_metrics *m = &view->run->sim.metrics;
    char name[32];
    fprintf(out, "\n%6s %12s %11s  %s\n%6s %12s %11s  %s\n", "", "", "peak", "",
            "device", "busy", "activations", "chunks");
    for (int d = 0; d < m->devices; d++) {
        struct pl_closed_stage c = {-1, -1, -1, -1};
        for (int q = m->stages - 1; q >= 0; q--)
            if (m->stage[q].device == d) c = pl_closed_stage_of(view->run, q);
        char busy[32];
        format_time(m->device[d].busy_s, busy, sizeof busy);
        fprintf(out, "%6d %12s", d, busy);
        print_count(out, m->device[d].peak_activations, c.peak);
        putc(' ', out);
        for (int q = 0; q < m->stages; q++)
            if (m->stage[q].device == d)
                fprintf(out, " %s", pl_instance_name(m, q, name));
        putc('\n', out);
    }
    fprintf(out, "\n%5s %6s %12s  %-20s %8s %8s %11s\n", "", "", "", "delay tau", "",
            "", "weight");
    fprintf(out, "%5s %6s %12s  %6s %6s %6s %8s %8s %11s\n", "chunk", "device", "busy",
            "min", "mean", "max", "closed", "start-up", "versions");
    for (int q = 0; q < m->stages; q++) {
        const struct pl_stage_metrics *x = &m->stage[q];
        struct pl_closed_stage c = pl_closed_stage_of(view->run, q);
        char busy[32];
        format_time(x->busy_s, busy, sizeof busy);
        fprintf(out, "%5s %6d %12s ", pl_instance_name(m, q, name), x->device, busy);
        print_delay(x, &c, out);
        putc('\n', out);
    }
}

static void print_shape(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_schedule *sched = &view->run->sim.schedule;
    char chunks[64] = "";
    if (sched->layout.C > sched->shape.P)
        snprintf(chunks, sizeof chunks, ", v = %d (model chunks per device)",
                 sched->shape.v);
    else if (sched->layout.R > 1)
        snprintf(chunks, sizeof chunks, ", %d replicas", sched->layout.R);
    fprintf(out, "%s: %s (%s)\n", sched->type->name, sched->type->summary,
            sched->type->source);
    fprintf(out,
            "P = %d (stages), m = %d (microbatches per update)%s, %" PRId64
            " update%s, %s links%s\n"
            "U waits for the gradients of %s\n",
            sched->shape.P, sched->shape.m, chunks, sched->shape.updates,
            sched->shape.updates == 1 ? "" : "s",
            pl_semantics_names[view->run->cost.semantics],
            sched->shape.free_order ? ", free order" : "",
            view->run->barrier ? "all stages (clip.scope global)"
            : sched->type->post_validated
                ? "its own stage; the global norm is validated afterwards"
                : "its own stage (clip.scope stage or none)");
    pl_print_jitter_text(&view->run->cost, out);
    putc('\n', out);
}

void pl_print_sim_text(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_schedule *sched = &view->run->sim.schedule;
    const struct pl_metrics *x = &view->run->sim.metrics;
    print_shape(view, out);
    if (view->gantt_width && view->run->sim.recorded) print_gantt(view, out);
    print_numbers(view, out);
    bool plain = sched->layout.C * sched->layout.R == sched->shape.P;
    (plain ? print_stages : print_devices)(view, out);
    if (view->run->estimate) pl_print_estimate_text(view, out);
    fprintf(
        out,
        "\nDelay tau in updates: consuming update - version read in forward. Versions "
        "alive after U,\nthe live one included. Activations: microbatches in "
        "flight%s.\nn = n: simulated equals closed form; n (k): the closed form is "
        "k.\n",
        plain ? "" : ", of one chunk each; ' marks the second replica, '2 the third");
    if (!sched->type->async) {
        pl_print_delay_text(view, out);
        pl_print_segments_text(view, out);
        return;
    }
    int64_t period = pl_schedule_period(sched->type, sched->shape.P, sched->shape.m);
    if (x->steady_to == x->steady_from)
        fprintf(out, "No steady window: it needs %" PRId64 " updates or more.\n",
                2 * period);
    else
        fprintf(out,
                "Delay and versions are those of updates %" PRId64 "..%" PRId64
                "; start-up: mean delay before.\n",
                x->steady_from, x->steady_to - 1);
    if (x->steady_to > x->steady_from && x->steady_to > sched->shape.updates - period)
        fprintf(out,
                "The window reaches into the drain: where stages differ, step needs "
                "%" PRId64 " updates or more.\n",
                3 * period);
    pl_print_delay_text(view, out);
}
