#include <math.h>

#include "base/json.h"
#include "cli/closed.h"
#include "cli/print_delay.h"
#include "cli/print_links.h"
#include "cli/print_segments.h"
#include "cli/print_sim.h"

static void json_count(struct pl_json *json, const char *key, int64_t value)
{
    if (value >= 0)
        pl_json_int(json, key, value);
    else
        pl_json_real(json, key, NAN); /* null */
}

static void json_stages(const struct pl_sim_view *view, struct pl_json *json)
{
    pl_json_begin(json, "stages", '[');
    for (int s = 0; s < view->run->sim.metrics.stages; s++) {
        const struct pl_stage_metrics *x = &view->run->sim.metrics.stage[s];
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "stage", s);
        pl_json_int(json, "device", x->device);
        pl_json_int(json, "chunk", x->chunk);
        pl_json_int(json, "replica", x->replica);
        pl_json_real(json, "busy_s", x->busy_s);
        pl_json_begin(json, "delay", '{');
        pl_json_real(json, "min", x->tau_min);
        pl_json_real(json, "mean", x->tau_mean);
        pl_json_real(json, "max", x->tau_max);
        pl_json_real(json, "startup", x->tau_startup);
        pl_json_end(json, '}');
        pl_print_stage_delay_json(view, s, json);
        json_count(json, "weight_versions",
                   x->weight_versions ? x->weight_versions : -1);
        pl_json_int(json, "peak_activations", x->peak_activations);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
}

static void json_devices(const struct pl_sim_view *view, struct pl_json *json)
{
    pl_json_begin(json, "devices", '[');
    for (int d = 0; d < view->run->sim.metrics.devices; d++) {
        const struct pl_device_metrics *x = &view->run->sim.metrics.device[d];
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "device", d);
        pl_json_real(json, "busy_s", x->busy_s);
        pl_json_int(json, "peak_activations", x->peak_activations);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
}

static void json_closed(const struct pl_sim_view *view, struct pl_json *json)
{
    struct pl_closed closed = pl_closed_of(view->run);
    pl_json_begin(json, "closed", '{');
    pl_json_real(json, "makespan_s", closed.makespan_s);
    pl_json_real(json, "step_s", closed.step_s);
    pl_json_real(json, "span_s", closed.span_s);
    pl_json_real(json, "bubble_over_ideal", closed.bubble_over_ideal);
    pl_json_begin(json, "stages", '[');
    for (int s = 0; s < view->run->sim.metrics.stages; s++) {
        struct pl_closed_stage c = pl_closed_stage_of(view->run, s);
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "stage", s);
        pl_json_begin(json, "delay", '{');
        json_count(json, "min", c.tau_min);
        json_count(json, "max", c.tau_max);
        pl_json_end(json, '}');
        json_count(json, "weight_versions", c.versions);
        json_count(json, "peak_activations", c.peak);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
    pl_json_end(json, '}');
}

void pl_print_sim_json(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_schedule *sched = &view->run->sim.schedule;
    const struct pl_metrics *x = &view->run->sim.metrics;
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    pl_json_text(&json, "schedule", sched->type->name);
    pl_json_int(&json, "P", sched->shape.P);
    pl_json_int(&json, "m", sched->shape.m);
    pl_json_int(&json, "v", sched->shape.v);
    pl_json_int(&json, "replicas", sched->layout.R);
    pl_json_int(&json, "updates", sched->shape.updates);
    pl_json_text(&json, "order", sched->shape.free_order ? "free" : "issued");
    pl_print_links_json(&view->run->cost, &json);
    pl_json_text(&json, "clip_scope", view->run->barrier ? "global" : "stage");
    pl_json_real(&json, "makespan_s", x->makespan_s);
    pl_json_real(&json, "ideal_s", x->ideal_s);
    pl_json_real(&json, "step_s", x->step_s);
    pl_json_real(&json, "bubble", x->bubble);
    pl_json_real(&json, "bubble_over_ideal", x->bubble_over_ideal);
    pl_json_real(&json, "bubble_parallelogram", x->bubble_parallelogram);
    pl_json_real(&json, "bubble_steady", x->bubble_steady);
    pl_json_begin(&json, "steady_window", '[');
    pl_json_int(&json, NULL, x->steady_from);
    pl_json_int(&json, NULL, x->steady_to);
    pl_json_end(&json, ']');
    pl_print_delay_json(view, &json);
    pl_print_segments_json(view, &json);
    json_stages(view, &json);
    json_devices(view, &json);
    json_closed(view, &json);
    if (view->run->estimate) pl_print_estimate_json(view, &json);
    pl_json_end(&json, '}');
    pl_json_close(&json);
}
