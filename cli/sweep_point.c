/* One point of a sweep: the path of `pipelag sim` from the configuration to numbers. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "cli/setup.h"
#include "cli/sweep.h"
#include "sim/estimate.h"

static void fill_estimate(const struct pl_setup *setup, struct pl_sweep_result *r)
{
    const struct pl_estimate *e = setup->estimate;
    r->tokens_per_s_gpu = r->mfu = r->memory_bytes = r->memory_of_gpu = NAN;
    if (!e) return;
    struct pl_throughput t = pl_estimate_throughput(e, setup->sim.schedule.shape.m,
                                                    setup->sim.metrics.step_s);
    r->tokens_per_s_gpu = t.tokens_per_s_gpu;
    r->mfu = t.mfu;
    const struct pl_memory *memory = &setup->memory;
    r->memory_bytes = (double)memory->device[pl_memory_fullest(memory)].peak;
    r->memory_of_gpu = r->memory_bytes / (double)e->cluster.gpu.memory;
}

static void fill(const struct pl_simulation *sim, struct pl_sweep_result *r)
{
    const struct pl_metrics *x = &sim->metrics;
    *r = (struct pl_sweep_result){
        .P = sim->schedule.shape.P,
        .m = sim->schedule.shape.m,
        .v = sim->schedule.shape.v,
        .updates = (double)sim->schedule.shape.updates,
        .makespan_s = x->makespan_s,
        .step_s = x->step_s,
        .ideal_s = x->ideal_s,
        .bubble = x->bubble,
        .bubble_over_ideal = x->bubble_over_ideal,
        .bubble_parallelogram = x->bubble_parallelogram,
        .bubble_steady = x->bubble_steady,
        .tau_first = x->stage[0].tau_mean,
        .tau_max = x->stage[0].tau_max,
        /* 0: the run is too short for a steady window */
        .weight_versions = x->steady_to > x->steady_from ? 0 : NAN,
    };
    for (int s = 0; s < x->stages; s++) {
        const struct pl_stage_metrics *stage = &x->stage[s];
        r->tau_mean += stage->tau_mean / x->stages;
        if (stage->tau_max > r->tau_max) r->tau_max = stage->tau_max;
        if ((double)stage->weight_versions > r->weight_versions)
            r->weight_versions = (double)stage->weight_versions;
    }
    for (int d = 0; d < x->devices; d++)
        if ((double)x->device[d].peak_activations > r->peak_activations)
            r->peak_activations = (double)x->device[d].peak_activations;
}

static int simulate(const struct pl_config *config, struct pl_sweep_result *result)
{
    struct pl_setup setup;
    int code = pl_setup_simulate(config, &setup);
    if (code) return code;
    fill(&setup.sim, result);
    fill_estimate(&setup, result);
    pl_setup_free(&setup);
    return 0;
}

void pl_sweep_point(const struct pl_sweep *sweep, int64_t point,
                    struct pl_config **work, struct pl_bytes *out)
{
    double none[PL_N_SWEEP_RESULTS];
    struct pl_sweep_result result;
    for (int i = 0; i < PL_N_SWEEP_RESULTS; i++) none[i] = NAN;
    memcpy(&result, none, sizeof none);
    int code = pl_config_point(sweep->config, point, work);
    if (!code) code = simulate(*work, &result);
    /* how much memory is free now is no result */
    pl_sweep_encode(out, point, &result,
                    !code             ? "ok"
                    : code == PL_EMEM ? "needs more memory than is free"
                                      : pl_error_text());
}
