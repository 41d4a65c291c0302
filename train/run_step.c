/* One update: gradients at the versions of the map, clip (torch: min(1, C/(N + 1e-6)),
 * N the norm over the scope), optimizer, corrector. */
#include "train/run_state.h"

#include <math.h>

/* Sequences first .. first+B-1 into device memory. */
static int load_tokens(struct pl_run_state *run, int64_t first, int B)
{
    const struct pl_run_spec *spec = run->spec;
    const size_t T = (size_t)spec->T, n = (size_t)B * T;
    int32_t *tokens = run->host, *targets = run->host + n;
    for (int b = 0; b < B; b++)
        pl_data_train(spec->data, spec->seed, first + b, tokens + (size_t)b * T,
                      targets + (size_t)b * T);
    int rc = spec->device->upload(run->tokens, tokens, sizeof(int32_t) * n);
    return rc ? rc : spec->device->upload(run->targets, targets, sizeof(int32_t) * n);
}

/* Gradient of B sequences at the versions of microbatch `micro`, times scale. */
static int accumulate(struct pl_run_state *run, int64_t micro, int64_t first, int B,
                      double scale, double *loss)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_versions *v = spec->versions;
    struct pl_batch batch = {.B = B, .T = spec->T, .seed = spec->seed, .index = first};
    if (spec->data) {
        int rc = load_tokens(run, first, B);
        if (rc) return rc;
        batch.tokens = run->tokens;
        batch.targets = run->targets;
    }
    for (int s = 0; s < v->stages; s++) {
        int64_t at = s * v->n_micro + micro;
        run->forward[s] = pl_wstore_read(&run->store, s, v->forward[at]);
        run->backward[s] = pl_wstore_read(&run->store, s, v->backward[at]);
    }
    return spec->problem->type->gradient(spec->problem, &batch, run->forward,
                                         run->backward, scale, run->grads, loss);
}

int pl_run_gradient(struct pl_run_state *run, int64_t n, struct pl_row *row)
{
    const struct pl_run_spec *spec = run->spec;
    const bool fused = !spec->replay && pl_versions_fused(spec->versions, n);
    const int parts = fused ? 1 : spec->versions->m, B = spec->batch / parts;
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages && !rc; s++)
        rc = spec->device->zero(run->grads[s],
                                sizeof(float) * run->store.stages[s].floats);
    row->loss = 0;
    for (int i = 0; i < parts && !rc; i++) {
        double loss = 0;
        rc = accumulate(run, n * spec->versions->m + i,
                        n * spec->batch + (int64_t)i * B, B, 1.0 / parts, &loss);
        row->loss += loss / parts;
    }
    return rc;
}

/* row->grad_norm, and every gradient scaled to its scope's limit. */
static int clip(struct pl_run_state *run, struct pl_row *row)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_device *dev = spec->device;
    double total = 0;
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        double square = 0;
        rc = dev->dot(run->store.stages[s].floats, run->grads[s], run->grads[s],
                      &square);
        run->norms[s] = sqrt(square);
        total += square;
    }
    row->grad_norm = sqrt(total);
    if (rc || spec->clip <= 0 || spec->clip_scope == PL_CLIP_NONE) return rc;
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        bool global = spec->clip_scope == PL_CLIP_GLOBAL;
        double N = global ? row->grad_norm : run->norms[s];
        double scale = fmin(1, spec->clip / (N + 1e-6));
        if (scale < 1)
            rc = dev->axpby(run->store.stages[s].floats, 0, run->grads[s], (float)scale,
                            run->grads[s]);
    }
    return rc;
}

/* *square += ||x_n - x_forward||^2 of a stage; the group's oldest version counts. */
static int staleness(struct pl_run_state *run, int64_t n, int s, double *square)
{
    const struct pl_versions *v = run->spec->versions;
    int64_t oldest = n;
    for (int64_t i = n * v->m; i < (n + 1) * v->m; i++)
        if (v->forward[s * v->n_micro + i] < oldest)
            oldest = v->forward[s * v->n_micro + i];
    double part = 0;
    int rc = pl_wstore_distance(&run->store, s, n, oldest, run->u, &part);
    *square += part;
    return rc;
}

static int optimize(struct pl_run_state *run, int64_t n, int s, double rate)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_problem *problem = spec->problem;
    const float *w = pl_wstore_stored(&run->store, s);
    int rc = 0;
    for (int i = problem->first_param[s]; i < problem->first_param[s + 1] && !rc; i++) {
        const struct pl_param *p = &problem->params[i];
        float *state = run->state[s] ? run->state[s] + run->plan.state_offset[i] : NULL;
        rc = spec->optim.type->step(&spec->optim, spec->device, p,
                                    run->grads[s] + p->offset, w + p->offset, state,
                                    run->scratch, n + 1, rate, run->u + p->offset);
    }
    return rc;
}

int pl_run_apply(struct pl_run_state *run, int64_t n, struct pl_row *row)
{
    const struct pl_run_spec *spec = run->spec;
    const bool hold = spec->segments[run->segment].corrector.start == PL_START_HOLD;
    double updates = 0, stale = 0;
    row->update = n;
    row->time_s = spec->versions->done_s[n];
    row->rate = pl_rate_at(&spec->rate, n);
    int rc = clip(run, row);
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        const size_t floats = run->store.stages[s].floats;
        double square = 0;
        rc = staleness(run, n, s, &stale);
        if (!rc) rc = spec->device->zero(run->u, sizeof(float) * floats);
        if (!rc) rc = optimize(run, n, s, row->rate);
        if (!rc) rc = spec->device->dot(floats, run->u, run->u, &square);
        if (!rc) rc = pl_wstore_write(&run->store, s, n, run->u, hold);
        updates += square;
    }
    row->update_norm = sqrt(updates);
    row->stale_norm = sqrt(stale);
    if (!rc) run->store.version = n + 1;
    return rc;
}
