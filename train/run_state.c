/* The memory of a run: allocated once, before the first update. */
#include "train/run_state.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

int pl_run_floats(const struct pl_device *dev, size_t n, float **out)
{
    return n ? dev->alloc(sizeof(float) * n, (void **)out) : 0;
}

static int open_blocks(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_device *dev = spec->device;
    int rc = pl_run_floats(dev, run->plan.widest, &run->u);
    if (!rc) rc = pl_run_floats(dev, run->plan.scratch_floats, &run->scratch);
    if (!rc && run->plan.spare) rc = pl_run_floats(dev, run->plan.widest, &run->spare);
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        rc = pl_run_floats(dev, spec->problem->stage_floats[s], &run->grads[s]);
        if (!rc) rc = pl_run_floats(dev, run->plan.state_floats[s], &run->state[s]);
    }
    if (rc || !spec->data) return rc;
    return pl_feed_open(run, (size_t)run->plan.at_once * (size_t)spec->T);
}

static int open_all(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_run_plan *plan = &run->plan;
    int rc = pl_wstore_open(&run->store, spec->device, plan->n_stages, plan->stages);
    if (!rc) rc = open_blocks(run);
    if (!rc) rc = pl_run_diagnose_open(run);
    if (!rc) rc = pl_run_ahead_open(run);
    if (rc) return rc;
    float **initial = PL_NEW(plan->n_stages, float *);
    for (int s = 0; s < plan->n_stages; s++)
        initial[s] = pl_wstore_read(&run->store, s, 0);
    rc = spec->load ? spec->load(spec->files, initial)
                    : spec->problem->type->init(spec->problem, spec->seed, initial);
    free(initial);
    return rc;
}

int pl_run_state_open(const struct pl_run_spec *spec, struct pl_run_state *run)
{
    *run = (struct pl_run_state){.spec = spec, .segment = -1};
    int rc = pl_run_plan(spec, &run->plan);
    if (rc) return rc;
    const int P = run->plan.n_stages;
    run->grads = PL_NEW(P, float *);
    run->state = PL_NEW(P, float *);
    run->forward = PL_NEW(P, const float *);
    run->backward = PL_NEW(P, const float *);
    run->norms = PL_NEW(P, double);
    run->wanted = PL_NEW(P, float *);
    run->look = PL_NEW(P, struct pl_look_args);
    pl_run_routing_open(run);
    run->result.diverged_at = -1;
    run->result.rows = PL_NEW(spec->versions->updates, struct pl_row);
    run->result.evals = PL_NEW(pl_run_n_evals(spec), struct pl_eval);
    run->result.scores = PL_NEW(pl_run_n_scores(spec), struct pl_score);
    run->result.diags = PL_NEW(pl_run_n_diags(spec), struct pl_diag);
    run->saved_at = pl_clock();
    rc = open_all(run);
    if (rc) pl_run_state_close(run);
    return rc;
}

void pl_run_state_close(struct pl_run_state *run)
{
    const struct pl_device *dev = run->spec->device;
    for (int s = 0; s < run->plan.n_stages; s++) {
        if (run->grads[s]) dev->release(run->grads[s]);
        if (run->state[s]) dev->release(run->state[s]);
    }
    void *const blocks[] = {run->u, run->scratch, run->spare};
    for (int i = 0; i < 3; i++)
        if (blocks[i]) dev->release(blocks[i]);
    pl_run_diagnose_close(run);
    pl_run_ahead_close(run);
    pl_run_routing_close(run);
    pl_wstore_close(&run->store);
    free(run->grads);
    free(run->state);
    free(run->forward);
    free(run->backward);
    free(run->norms);
    free(run->wanted);
    free(run->look);
    pl_feed_close(run);
    pl_run_free(&run->result);
    pl_run_plan_free(&run->plan);
}

static int enter_stage(struct pl_run_state *run, int s, int64_t begin, bool resumed)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_corrector *c = &spec->segments[run->segment].corrector;
    const size_t from = run->plan.corrector_offset[s];
    run->look[s] = pl_run_look(spec, run->segment, begin, s);
    const struct pl_look look = pl_corrector_look(c, &run->look[s]);
    int rc = pl_wstore_begin(&run->store, s, c, &look, begin, resumed);
    if (rc || resumed || run->plan.state_floats[s] == from) return rc;
    return spec->device->zero(run->state[s] + from,
                              sizeof(float) * (run->plan.state_floats[s] - from));
}

int pl_run_enter(struct pl_run_state *run, int64_t n, bool resumed)
{
    const struct pl_run_spec *spec = run->spec;
    int rc = 0;
    while (n >= run->segment_end && run->segment + 1 < spec->n_segments && !rc) {
        const int64_t begin = run->segment_end;
        run->segment_end += spec->segments[++run->segment].updates;
        if (n >= run->segment_end) continue;
        for (int s = 0; s < run->plan.n_stages && !rc; s++)
            rc = enter_stage(run, s, begin, resumed);
    }
    return rc;
}
