#include "cli/print_segments.h"

#include <inttypes.h>
#include <math.h>

static void print_value(FILE *out, double value, double scale, int width)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.7g", width, fabs(value) < 5e-5 * scale ? 0 : value / scale);
}

void pl_print_segments_text(const struct pl_sim_view *view, FILE *out)
{
    if (!view->run->n_segments) return;
    double begin = 0;
    int64_t first = 0;
    fprintf(out, "\n%-20s %8s %8s %12s %12s %12s %8s %8s %8s\n", "segment", "first",
            "updates", "begins, ms", "makespan, ms", "step, ms", "bubble", "steady",
            "tau");
    for (int i = 0; i < view->run->n_segments; i++) {
        const struct pl_metrics *m = &view->run->parts[i].metrics;
        fprintf(out, "%-20s %8" PRId64 " %8" PRId64, view->run->segments[i].type->name,
                first, view->run->segments[i].updates);
        print_value(out, begin, 1e-3, 12);
        print_value(out, m->makespan_s, 1e-3, 12);
        print_value(out, m->step_s, 1e-3, 12);
        fprintf(out, " %8.4f", m->bubble);
        if (isnan(m->bubble_steady))
            fprintf(out, " %8s", "-");
        else
            fprintf(out, " %8.4f",
                    fabs(m->bubble_steady) < 5e-5 ? 0 : m->bubble_steady);
        print_value(out, m->stage[0].tau_mean, 1, 8);
        putc('\n', out);
        begin += m->makespan_s;
        first += view->run->segments[i].updates;
    }
    fputs("Each segment ends drained; step, steady (bubble_steady) and tau (mean of "
          "stage "
          "0) are those of its\nsteady window. The numbers above are of the whole run, "
          "delays too.\n",
          out);
}

void pl_print_segments_json(const struct pl_sim_view *view, struct pl_json *json)
{
    if (!view->run->n_segments) return;
    double begin = 0;
    int64_t first = 0;
    pl_json_begin(json, "segments", '[');
    for (int i = 0; i < view->run->n_segments; i++) {
        const struct pl_metrics *m = &view->run->parts[i].metrics;
        pl_json_begin(json, NULL, '{');
        pl_json_text(json, "schedule", view->run->segments[i].type->name);
        pl_json_int(json, "first_update", first);
        pl_json_int(json, "updates", view->run->segments[i].updates);
        pl_json_real(json, "begin_s", begin);
        pl_json_real(json, "makespan_s", m->makespan_s);
        pl_json_real(json, "step_s", m->step_s);
        pl_json_real(json, "bubble", m->bubble);
        pl_json_real(json, "bubble_steady", m->bubble_steady);
        pl_json_begin(json, "delay_mean", '[');
        for (int c = 0; c < m->chunks; c++)
            pl_json_real(json, NULL, m->stage[c].tau_mean);
        pl_json_end(json, ']');
        pl_json_end(json, '}');
        begin += m->makespan_s;
        first += view->run->segments[i].updates;
    }
    pl_json_end(json, ']');
}
