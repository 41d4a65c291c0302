#include "cli/print_delay.h"

#include <inttypes.h>
#include <math.h>

const char *pl_instance_name(const struct pl_metrics *m, int instance, char name[32])
{
    int r = m->stage[instance].replica;
    int n = snprintf(name, 32, "%d%s", m->stage[instance].chunk, r ? "'" : "");
    if (r > 1) snprintf(name + n, 32 - (size_t)n, "%d", r);
    return name;
}

static double in_unit(const struct pl_sim_view *view, int q)
{
    const struct pl_schedule *sched = &view->run->sim.schedule;
    return pl_delay_convert(view->unit, sched->type, sched->shape.m,
                            view->run->sim.metrics.stage[q].tau_mean);
}

/* Instances of the first replica: the delay is the model chunk's. */
static void print_unit(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_delay_unit *unit = view->unit;
    const struct pl_metrics *m = &view->run->sim.metrics;
    fprintf(out, "\nMean delay in %s: %s (%s).\n%5s %12s %12s\n", unit->name,
            unit->definition, unit->source, "stage", "updates", unit->name);
    for (int c = 0; c < m->chunks; c++) {
        double tau = m->stage[c].tau_mean;
        if (isnan(tau))
            fprintf(out, "%5d %12s %12s\n", c, "-", "-");
        else
            fprintf(out, "%5d %12.6g %12.6g\n", c, tau, in_unit(view, c));
    }
}

static const int64_t *counts_of(const struct pl_metrics *m, int chunk)
{
    return m->tau_count + chunk * m->tau_bins;
}

static bool has_several(const struct pl_metrics *m, int chunk)
{
    int64_t n = 0;
    for (int64_t tau = 0; tau < m->tau_bins; tau++) n += counts_of(m, chunk)[tau] > 0;
    return n > 1;
}

static void print_counts(const struct pl_metrics *m, FILE *out)
{
    bool begun = false;
    for (int c = 0; c < m->chunks; c++) {
        if (!has_several(m, c)) continue;
        if (!begun) fputs("\nDelays of the window's microbatches, tau x count:\n", out);
        begun = true;
        fprintf(out, "%5d ", c);
        const char *comma = "";
        for (int64_t tau = 0; tau < m->tau_bins; tau++) {
            if (!counts_of(m, c)[tau]) continue;
            fprintf(out, "%s %" PRId64 " x %" PRId64, comma, tau, counts_of(m, c)[tau]);
            comma = ",";
        }
        putc('\n', out);
    }
}

static void print_horizons(const struct pl_schedule *sched, FILE *out)
{
    int64_t forward, backward;
    fputs("\nWeights are predicted this many updates past the version read "
          "(forward/backward):\n",
          out);
    for (int c = 0; c < sched->layout.C; c++) {
        sched->type->horizon(&sched->shape, c, &forward, &backward);
        fprintf(out, " %" PRId64 "/%" PRId64, forward, backward);
    }
    putc('\n', out);
}

void pl_print_delay_text(const struct pl_sim_view *view, FILE *out)
{
    print_counts(&view->run->sim.metrics, out);
    if (view->unit) print_unit(view, out);
    if (view->run->sim.schedule.type->horizon)
        print_horizons(&view->run->sim.schedule, out);
}

void pl_print_delay_json(const struct pl_sim_view *view, struct pl_json *json)
{
    if (!view->unit) return;
    pl_json_begin(json, "delay_unit", '{');
    pl_json_text(json, "name", view->unit->name);
    pl_json_text(json, "definition", view->unit->definition);
    pl_json_text(json, "source", view->unit->source);
    pl_json_begin(json, "mean", '[');
    for (int c = 0; c < view->run->sim.metrics.chunks; c++)
        pl_json_real(json, NULL, in_unit(view, c));
    pl_json_end(json, ']');
    pl_json_end(json, '}');
}

void pl_print_stage_delay_json(const struct pl_sim_view *view, int instance,
                               struct pl_json *json)
{
    const struct pl_metrics *m = &view->run->sim.metrics;
    const struct pl_schedule *sched = &view->run->sim.schedule;
    int c = m->stage[instance].chunk;
    pl_json_begin(json, "delay_counts", '[');
    for (int64_t tau = 0; tau < m->tau_bins; tau++)
        pl_json_int(json, NULL, counts_of(m, c)[tau]);
    pl_json_end(json, ']');
    if (!sched->type->horizon) return;
    int64_t forward, backward;
    sched->type->horizon(&sched->shape, c, &forward, &backward);
    pl_json_begin(json, "horizon", '{');
    pl_json_int(json, "forward", forward);
    pl_json_int(json, "backward", backward);
    pl_json_end(json, '}');
}
