/* What delay does to an update, measured on the run itself (spec->diagnose): before
 * update n, wherever version n is evaluated, the gradient of the same tokens is taken
 * at the newest version on all stages and goes through the same clip and a copy of the
 * optimizer's state. That fresh update is compared with the one that is applied. Costs
 * a gradient and a step at these updates, and memory for them. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "train/run_state.h"

bool pl_run_diagnosed(const struct pl_run_spec *spec, int64_t n)
{
    return spec->diagnose &&
           (n == 0 || (spec->eval_every > 0 && n % spec->eval_every == 0));
}

int64_t pl_run_n_diags(const struct pl_run_spec *spec)
{
    const int64_t N = spec->versions->updates, every = spec->eval_every;
    if (!spec->diagnose || N == 0) return 0;
    return spec->versions->stages * (every > 0 ? 1 + (N - 1) / every : 1);
}

size_t pl_run_diagnose_floats(const struct pl_run_plan *plan)
{
    size_t floats = plan->widest_state;
    for (int s = 0; s < plan->n_stages; s++) floats += 3 * plan->stages[s].floats;
    return floats;
}

int pl_run_diagnose_open(struct pl_run_state *run)
{
    struct pl_diagnosis *d = &run->diagnosis;
    const struct pl_device *dev = run->spec->device;
    const int P = run->plan.n_stages;
    if (!run->spec->diagnose) return 0;
    d->gradient = PL_NEW(P, float *);
    d->update = PL_NEW(P, float *);
    d->before = PL_NEW(P, float *);
    int rc = pl_run_floats(dev, run->plan.widest_state, &d->state);
    for (int s = 0; s < P && !rc; s++) {
        const size_t n = run->plan.stages[s].floats;
        rc = pl_run_floats(dev, n, &d->gradient[s]);
        if (!rc) rc = pl_run_floats(dev, n, &d->update[s]);
        if (!rc) rc = pl_run_floats(dev, n, &d->before[s]);
    }
    return rc;
}

void pl_run_diagnose_close(struct pl_run_state *run)
{
    struct pl_diagnosis *d = &run->diagnosis;
    const struct pl_device *dev = run->spec->device;
    float **const blocks[] = {d->gradient, d->update, d->before};
    for (int k = 0; k < 3; k++) {
        for (int s = 0; blocks[k] && s < run->plan.n_stages; s++)
            if (blocks[k][s]) dev->release(blocks[k][s]);
        free(blocks[k]);
    }
    if (d->state) dev->release(d->state);
    *d = (struct pl_diagnosis){0};
}

/* The fresh update of a stage; its gradient stays in d->gradient. */
static int fresh_update(struct pl_run_state *run, int64_t n, int s)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_device *dev = spec->device;
    struct pl_diagnosis *d = &run->diagnosis;
    const float *w = pl_wstore_stored(&run->store, s);
    const double rate = pl_rate_at(&spec->rate, n);
    const size_t bytes = sizeof(float) * run->plan.corrector_offset[s];
    int rc = bytes ? dev->copy(d->state, run->state[s], bytes) : 0;
    /* a rule may destroy the gradient it is given */
    if (!rc)
        rc = dev->copy(run->grads[s], d->gradient[s],
                       sizeof(float) * run->plan.stages[s].floats);
    if (!rc) rc = dev->zero(d->update[s], sizeof(float) * run->plan.stages[s].floats);
    return rc ? rc : pl_run_rule(run, n, s, rate, w, d->state, d->update[s]);
}

int pl_run_fresh(struct pl_run_state *run, int64_t n)
{
    const struct pl_run_spec *spec = run->spec;
    struct pl_diagnosis *d = &run->diagnosis;
    double loss;
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        run->wanted[s] = d->gradient[s];
        run->forward[s] = run->backward[s] = pl_wstore_read(&run->store, s, n);
        rc = spec->device->zero(d->gradient[s],
                                sizeof(float) * run->plan.stages[s].floats);
    }
    if (!rc) rc = pl_run_pieces(run, n * spec->batch, spec->batch, 1, false, &loss);
    if (!rc) pl_run_gather(run, d->gradient, &loss);
    if (!rc) rc = pl_run_clip(run, d->gradient);
    for (int s = 0; s < run->plan.n_stages && !rc; s++) rc = fresh_update(run, n, s);
    return rc;
}

int pl_run_diagnose_gradient(struct pl_run_state *run, int64_t n, int s,
                             double distance)
{
    const struct pl_device *dev = run->spec->device;
    struct pl_diagnosis *d = &run->diagnosis;
    const size_t floats = pl_problem_descended(run->spec->problem, s);
    const double beta = pl_optim_beta(&run->spec->optim),
                 tau = pl_run_tau(run->spec, s, n);
    struct pl_diag *row = &run->result.diags[run->result.n_diags];
    *row = (struct pl_diag){.update = n,
                            .stage = s,
                            .tau = tau,
                            .distance = distance,
                            .grad_norm = run->norms[s],
                            .half_life = log(.5) / log(beta) / tau};
    int rc = pl_cosine(dev, floats, run->grads[s], d->gradient[s], &row->cos_gradient);
    /* the fresh gradient has served: its block keeps x[n] until x[n+1] is there */
    return rc ? rc
              : dev->copy(d->gradient[s], pl_wstore_read(&run->store, s, n),
                          sizeof(float) * floats);
}

int pl_run_diagnose_step(struct pl_run_state *run, int64_t n, int s)
{
    const struct pl_device *dev = run->spec->device;
    struct pl_diagnosis *d = &run->diagnosis;
    const size_t floats = pl_problem_descended(run->spec->problem, s);
    struct pl_diag *row = &run->result.diags[run->result.n_diags++];
    double square = 0;
    int rc = dev->axpby(floats, -1, pl_wstore_read(&run->store, s, n + 1), 1,
                        d->gradient[s]);
    if (!rc)
        rc = pl_cosine(dev, floats, d->gradient[s], d->update[s], &row->cos_update);
    if (!rc) rc = pl_cosine(dev, floats, run->u, d->before[s], &row->turning);
    if (!rc) rc = dev->dot(floats, run->u, run->u, &square);
    row->update_norm = sqrt(square);
    return rc;
}
