/* What a roofline adds to a simulation: throughput, and memory of each device. */
#include <inttypes.h>

#include "base/units.h"
#include "cli/print_sim.h"

static void print_layers(const struct pl_estimate *e, int device,
                         const struct pl_layout *layout, FILE *out)
{
    for (int q = 0; q < layout->C * layout->R; q++) {
        const struct pl_chunk *c = &e->chunk[q % layout->C];
        if (layout->device[q] != device) continue;
        fputs(" ", out);
        if (c->embedding) fputs("E+", out);
        if (c->n)
            fprintf(out, "%d..%d", c->first, c->first + c->n - 1);
        else
            fputs("-", out);
        if (c->mtp) fprintf(out, "+%dm", c->mtp);
        if (c->head) fputs("+L", out);
    }
}

static void print_row(const struct pl_sim_view *view, int d, FILE *out)
{
    const struct pl_device_memory *m = &view->run->memory.device[d];
    char text[32];
    fprintf(out, "%6d", d);
    for (int k = 0; k < PL_N_MEMORY; k++)
        fprintf(out, " %11s",
                pl_units_format_bytes((double)m->part[k], text, sizeof text));
    fprintf(out, " %11s", pl_units_format_bytes((double)m->peak, text, sizeof text));
    fprintf(out, " %10s ",
            pl_units_format_time(pl_seconds(m->when), text, sizeof text));
    print_layers(view->run->estimate, d, &view->run->sim.schedule.layout, out);
    putc('\n', out);
}

/* What was simulated: a preset or a default that was not meant shows here. */
static void print_job(const struct pl_estimate *e, int m, FILE *out)
{
    static const char *const recompute[] = {"none", "selective", "full"};
    const struct pl_parallel *p = &e->parallel;
    fprintf(
        out,
        "model of %.4g G parameters; tp %d%s, cp %d, ep %d, dp %d, ZeRO-%d, recompute "
        "%s\nan update: m %d x b %" PRId64 " x dp %d sequences of %" PRId64
        " tokens, %.4g M tokens\n",
        (double)pl_model_params(&e->model) * 1e-9, p->tp, p->sp ? " sp" : "", p->cp,
        p->ep, p->dp, p->zero, recompute[p->recompute], m, e->batch.b, p->dp,
        e->batch.s, (double)e->batch.b * (double)e->batch.s * m * p->dp * 1e-6);
}

void pl_print_estimate_text(const struct pl_sim_view *view, FILE *out)
{
    const struct pl_estimate *e = view->run->estimate;
    const struct pl_gpu *gpu = &e->cluster.gpu;
    const struct pl_shape *shape = &view->run->sim.schedule.shape;
    struct pl_throughput t =
        pl_estimate_throughput(e, shape->m, view->run->sim.metrics.step_s);
    int device = pl_memory_fullest(&view->run->memory);
    char peak[32], limit[32];
    fprintf(out,
            "\n%" PRId64
            " GPUs (%s): %.0f tokens/s/GPU, MFU %.1f %% (6 N + 12 L d T, no "
            "causal discount), %.1f %% (6 N)\n",
            e->gpus, gpu->name, t.tokens_per_s_gpu, 100 * t.mfu, 100 * t.mfu_6n);
    print_job(e, shape->m, out);
    fprintf(out, "\nmemory of one GPU at its device's peak\n%6s", "device");
    for (int k = 0; k < PL_N_MEMORY; k++) fprintf(out, " %11s", pl_memory_names[k]);
    fprintf(out, " %11s %10s  %s\n", "peak", "at", "layers (E embedding, L head)");
    for (int d = 0; d < view->run->memory.devices; d++) print_row(view, d, out);
    const struct pl_device_memory *most = &view->run->memory.device[device];
    pl_units_format_bytes((double)most->peak, peak, sizeof peak);
    pl_units_format_bytes((double)gpu->memory, limit, sizeof limit);
    if (most->peak > gpu->memory)
        fprintf(out, "OUT OF MEMORY: device %d needs %s, a GPU has %s\n", device, peak,
                limit);
    else
        fprintf(out, "fits: device %d needs %s of %s\n", device, peak, limit);
}

void pl_print_estimate_json(const struct pl_sim_view *view, struct pl_json *json)
{
    const struct pl_estimate *e = view->run->estimate;
    struct pl_throughput t = pl_estimate_throughput(e, view->run->sim.schedule.shape.m,
                                                    view->run->sim.metrics.step_s);
    int device = pl_memory_fullest(&view->run->memory);
    const struct pl_device_memory *most = &view->run->memory.device[device];
    pl_json_int(json, "gpus", e->gpus);
    pl_json_real(json, "tokens_per_s_gpu", t.tokens_per_s_gpu);
    pl_json_real(json, "mfu", t.mfu);
    pl_json_real(json, "mfu_6n", t.mfu_6n);
    pl_json_begin(json, "memory", '{');
    pl_json_int(json, "peak_bytes", (int64_t)most->peak);
    pl_json_int(json, "peak_device", device);
    pl_json_int(json, "gpu_bytes", (int64_t)e->cluster.gpu.memory);
    pl_json_text(json, "verdict",
                 most->peak > e->cluster.gpu.memory ? "out of memory" : "fits");
    pl_json_begin(json, "devices", '[');
    for (int d = 0; d < view->run->memory.devices; d++) {
        const struct pl_device_memory *m = &view->run->memory.device[d];
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "device", d);
        pl_json_int(json, "peak_bytes", (int64_t)m->peak);
        pl_json_real(json, "peak_at_s", pl_seconds(m->when));
        for (int k = 0; k < PL_N_MEMORY; k++)
            pl_json_int(json, pl_memory_names[k], (int64_t)m->part[k]);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
    pl_json_end(json, '}');
}
