/* The gradient ahead, for rules that want differences of gradients of one batch (MARS,
 * exact mode): at update n, that of the batch of update n + 1, at the weights that
 * update n's own was taken at, clipped by itself; kept in the rule's state for update n
 * + 1. The official loop takes it at the same place, before the step (AGI-Arena/MARS,
 * train_mars.py). */
#include "train/run_state.h"

#include <stdlib.h>

#include "base/mem.h"

bool pl_run_looks_ahead(const struct pl_run_spec *spec)
{
    return spec->optim.exact && spec->optim.type->ahead;
}

int pl_run_ahead_open(struct pl_run_state *run)
{
    if (!pl_run_looks_ahead(run->spec)) return 0;
    run->ahead = PL_NEW(run->plan.n_stages, float *);
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages && !rc; s++)
        rc = pl_run_floats(run->spec->device, run->plan.stages[s].floats,
                           &run->ahead[s]);
    return rc;
}

void pl_run_ahead_close(struct pl_run_state *run)
{
    for (int s = 0; run->ahead && s < run->plan.n_stages; s++)
        if (run->ahead[s]) run->spec->device->release(run->ahead[s]);
    free(run->ahead);
}

int pl_run_ahead(struct pl_run_state *run, int64_t n)
{
    float **const own = run->grads;
    double loss;
    if (!run->ahead || n + 1 >= run->spec->versions->updates) return 0;
    run->grads = run->ahead;
    int rc = pl_run_gradient_of(run, n, n + 1, &loss);
    run->grads = own;
    return rc ? rc : pl_run_clip(run, run->ahead);
}

int pl_run_ahead_keep(struct pl_run_state *run, int64_t n)
{
    const struct pl_problem *problem = run->spec->problem;
    int rc = 0;
    if (!run->ahead || n + 1 >= run->spec->versions->updates) return 0;
    for (int i = 0; i < problem->n_params && !rc; i++) {
        const struct pl_param *p = &problem->params[i];
        const size_t at = pl_optim_ahead(&run->spec->optim, p);
        if (at)
            rc = run->spec->device->copy(
                run->state[p->stage] + run->plan.state_offset[i] + at,
                run->ahead[p->stage] + p->offset, sizeof(float) * pl_param_size(p));
    }
    return rc;
}
