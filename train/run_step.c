/* One update: gradients at the versions of the map, clip (torch: min(1, C/(N + 1e-6)),
 * N the norm over the scope), optimizer, corrector. */
#include "train/run_state.h"

#include <math.h>
#include <stdio.h>

#include "base/mpi.h"

bool pl_run_split(const struct pl_run_spec *spec)
{
    return spec->ranks > 1 && spec->data;
}

void pl_run_gather(struct pl_run_state *run, float *const *grads, double *loss)
{
    const struct pl_run_spec *spec = run->spec;
    if (!pl_run_split(spec)) return;
    for (int s = 0; s < run->plan.n_stages; s++)
        pl_mpi_sum(grads[s], run->plan.stages[s].floats);
    *loss /= spec->ranks;
    pl_mpi_sum_reals(loss, 1);
}

int pl_run_batch(struct pl_run_state *run, int64_t first, int from, int B, int count,
                 struct pl_batch *out)
{
    const struct pl_run_spec *spec = run->spec;
    const int ranks = pl_run_split(spec) ? spec->ranks : 1;
    const int part = spec->batch / spec->versions->m / ranks, left = count - from - B;
    const struct pl_piece piece = {.first = first, .from = from, .B = B};
    struct pl_piece next = {.first = first, .from = from + B, .B = left < B ? left : B};
    if (!left) {
        next = piece;
        next.first = first + (int64_t)count * ranks;
        next.from = 0;
        next.B = count < run->plan.at_once ? count : run->plan.at_once;
    }
    *out = (struct pl_batch){.B = B,
                             .T = spec->T,
                             .micro = B % part ? B : part,
                             .seed = spec->seed,
                             .index = first + from};
    return spec->data ? pl_feed_take(run, &piece, &next, out) : 0;
}

int pl_run_pieces(struct pl_run_state *run, int64_t first, int count, double scale,
                  bool routed, double *loss)
{
    const struct pl_run_spec *spec = run->spec;
    struct pl_problem *problem = spec->problem;
    const int ranks = pl_run_split(spec) ? spec->ranks : 1;
    const int part = spec->batch / spec->versions->m / ranks, most = run->plan.at_once;
    int rc = 0;
    count /= ranks;
    *loss = 0;
    for (int from = 0, B; from < count && !rc; from += B) {
        B = count - from < most ? count - from : most;
        if (most < part && B > part - from % part) B = part - from % part;
        const double share = (double)B / count;
        struct pl_batch batch;
        double here = 0;
        rc = pl_run_batch(run, first, from, B, count, &batch);
        if (!rc)
            rc = problem->type->gradient(problem, &batch, run->forward, run->backward,
                                         scale / ranks * share, run->wanted, &here);
        if (!rc && routed) pl_run_routing_add(run, scale * share);
        *loss += here * share;
    }
    return rc;
}

/* Sequences whose gradient is taken at the versions of a microbatch. */
struct group {
    int64_t micro, first;
    int count; /* on all ranks */
    double scale;
};

static int gradient_at(struct pl_run_state *run, const struct group *g, bool routed,
                       double *loss)
{
    return pl_run_pieces(run, g->first, g->count, g->scale, routed, loss);
}

/* Every stage at its own versions of the microbatch. */
static int own_versions(struct pl_run_state *run, const struct group *g, double *loss)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_versions *v = spec->versions;
    int rc = 0;
    for (int s = 0; s < v->stages && !rc; s++) {
        const int64_t f = v->forward[s * v->n_micro + g->micro];
        run->wanted[s] = run->grads[s];
        run->forward[s] = run->backward[s] = pl_wstore_read(&run->store, s, f);
        if (spec->fidelity == PL_FIDELITY_NOSTASH)
            rc = pl_wstore_read_back(&run->store, s, pl_run_backward(spec, s, g->micro),
                                     &run->backward[s]);
    }
    return rc ? rc : gradient_at(run, g, true, loss);
}

/* Every stage's share of the gradient at one version of the whole model, its own; one
 * gradient for each version that some stage wants. The loss is the last stage's. */
static int common_versions(struct pl_run_state *run, const struct group *g,
                           double *loss)
{
    const struct pl_versions *v = run->spec->versions;
    const int64_t *f = v->forward + g->micro;
    int rc = 0;
    for (int s = 0; s < v->stages && !rc; s++) {
        const int64_t version = f[s * v->n_micro];
        bool done = false;
        for (int r = 0; r < s; r++) done |= f[r * v->n_micro] == version;
        if (done) continue;
        for (int r = 0; r < v->stages; r++) {
            bool wants = f[r * v->n_micro] == version;
            run->wanted[r] = wants ? run->grads[r] : run->spare;
            run->forward[r] = run->backward[r] =
                pl_wstore_read(&run->store, r, version);
        }
        double here;
        const bool counts = f[(v->stages - 1) * v->n_micro] == version;
        rc = gradient_at(run, g, counts, &here);
        if (counts) *loss = here;
    }
    return rc;
}

int pl_run_gradient_of(struct pl_run_state *run, int64_t n, int64_t batch, double *sum)
{
    const struct pl_run_spec *spec = run->spec;
    const int parts = pl_run_fused(spec, n) ? 1 : spec->versions->m;
    const int B = spec->batch / parts;
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages && !rc; s++)
        rc = spec->device->zero(run->grads[s],
                                sizeof(float) * run->plan.stages[s].floats);
    *sum = 0;
    const bool queue = spec->fidelity == PL_FIDELITY_QUEUE;
    for (int i = 0; i < parts && !rc; i++) {
        const struct group g = {.micro = n * spec->versions->m + i,
                                .first = batch * spec->batch + (int64_t)i * B,
                                .count = B,
                                .scale = 1.0 / parts};
        double loss = 0;
        rc = (queue ? common_versions : own_versions)(run, &g, &loss);
        *sum += loss / parts;
    }
    if (!rc) pl_run_gather(run, run->grads, sum);
    return rc;
}

int pl_run_gradient(struct pl_run_state *run, int64_t n, struct pl_row *row)
{
    pl_run_routing_begin(run);
    int rc = pl_run_gradient_of(run, n, n, &row->loss);
    pl_run_routing_row(run, row);
    return rc;
}

int pl_run_clip(struct pl_run_state *run, float *const *grads)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_device *dev = spec->device;
    double square = 0, whole = 0;
    int rc = 0;
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        rc = dev->dot(pl_problem_descended(spec->problem, s), grads[s], grads[s],
                      &square);
        run->norms[s] = sqrt(square);
        whole += square;
    }
    run->norm = whole = sqrt(whole);
    if (rc || spec->clip <= 0 || spec->clip_scope == PL_CLIP_NONE) return rc;
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        bool global = spec->clip_scope == PL_CLIP_GLOBAL;
        double N = global ? whole : run->norms[s];
        double scale = fmin(1, spec->clip / (N + 1e-6));
        if (scale < 1)
            rc = dev->axpby(pl_problem_descended(spec->problem, s), 0, grads[s],
                            (float)scale, grads[s]);
    }
    return rc;
}

/* The corrector's say on a stage's gradient; uses u's block. */
static int correct_gradient(struct pl_run_state *run, int64_t n, int s)
{
    const struct pl_corrector *c = &run->spec->segments[run->segment].corrector;
    if (!c->type->grad) return 0;
    const struct pl_grad_args args = {
        .device = run->spec->device,
        .n = pl_problem_descended(run->spec->problem, s),
        .now = pl_wstore_read(&run->store, s, n),
        .then = pl_wstore_read(&run->store, s, pl_run_oldest(run->spec, s, n)),
        .last = pl_wstore_direction(&run->store, s),
        .state = run->state[s] ? run->state[s] + run->plan.corrector_offset[s] : NULL,
        .scratch = run->u,
        .spare = run->scratch,
        .tau = n - pl_run_oldest(run->spec, s, n),
        .update = n,
        .seen = n - run->store.stages[s].begin + (run->store.stages[s].begin > 0)};
    return c->type->grad(c, &args, run->grads[s]);
}

/* Selection biases: u = rate sign(load - mean load), whatever the optimizer. */
static int balance(struct pl_run_state *run, const struct pl_param *p)
{
    const struct pl_device *dev = run->spec->device;
    const size_t n = pl_param_size(p);
    float *u = run->u + p->offset;
    int rc = dev->sign(n, run->grads[p->stage] + p->offset, u);
    return rc ? rc : dev->axpby(n, 0, u, (float)run->spec->problem->balance_rate, u);
}

int pl_run_rule(struct pl_run_state *run, int64_t n, int s, double rate, const float *w,
                float *state, float *u)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_problem *problem = spec->problem;
    const int first = problem->first_param[s];
    const struct pl_optim_stage stage = {.dev = spec->device,
                                         .params = &problem->params[first],
                                         .n = problem->first_param[s + 1] - first,
                                         .state_at = &run->plan.state_offset[first],
                                         .g = run->grads[s],
                                         .state = state,
                                         .scratch = run->scratch,
                                         .w = w,
                                         .t = n + 1,
                                         .rate = rate,
                                         .u = u};
    return pl_optim_stage(&spec->optim, &stage);
}

static int optimize(struct pl_run_state *run, int64_t n, int s, double rate)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_problem *problem = spec->problem;
    const float *w = spec->decay_stale
                         ? pl_wstore_read(&run->store, s, pl_run_oldest(spec, s, n))
                         : pl_wstore_stored(&run->store, s);
    int rc = pl_run_rule(run, n, s, rate, w, run->state[s], run->u);
    for (int i = problem->first_param[s]; i < problem->first_param[s + 1] && !rc; i++)
        if (problem->params[i].kind == PL_PARAM_BALANCE)
            rc = balance(run, &problem->params[i]);
    return rc;
}

static int apply_stage(struct pl_run_state *run, int64_t n, int s, double rate,
                       double *updates, double *stale)
{
    const struct pl_run_spec *spec = run->spec;
    const struct pl_device *dev = spec->device;
    const struct pl_corrector *c = &spec->segments[run->segment].corrector;
    const size_t floats = run->plan.stages[s].floats;
    double moved = 0, square = 0;
    rate *= pl_rate_delay(&spec->rate, n, pl_run_tau(spec, s, n));
    run->look[s].n = n;
    run->store.stages[s].look = pl_corrector_look(c, &run->look[s]);
    int rc = pl_wstore_distance(&run->store, s, n, pl_run_oldest(spec, s, n), &moved);
    const bool diagnosed = pl_run_diagnosed(spec, n);
    if (!rc) rc = correct_gradient(run, n, s);
    if (!rc && diagnosed) rc = pl_run_diagnose_gradient(run, n, s, sqrt(moved));
    if (!rc) rc = optimize(run, n, s, rate); /* all of u: tensors leave no gap */
    if (!rc)
        rc = dev->dot(pl_problem_descended(spec->problem, s), run->u, run->u, &square);
    if (!rc) rc = pl_wstore_write(&run->store, s, n, run->u, c->start == PL_START_HOLD);
    if (!rc && diagnosed) rc = pl_run_diagnose_step(run, n, s);
    if (!rc && spec->diagnose)
        rc = dev->copy(run->diagnosis.before[s], run->u, sizeof(float) * floats);
    *updates += square;
    *stale += moved;
    return rc;
}

int pl_run_apply_stage(struct pl_run_state *run, int64_t n, int s, double rate,
                       double *updates, double *stale)
{
    const struct pl_device *dev = run->spec->device;
    if (!dev->begin) return apply_stage(run, n, s, rate, updates, stale);
    char name[48];
    snprintf(name, sizeof name, "U s%d n%lld", s, (long long)n);
    bool done; /* never: rates and counts of steps differ */
    int rc = dev->begin(&(struct pl_span){.name = name}, &done);
    if (!rc) rc = apply_stage(run, n, s, rate, updates, stale);
    const int ended = dev->end();
    return rc ? rc : ended;
}

int pl_run_apply(struct pl_run_state *run, int64_t n, struct pl_row *row)
{
    const struct pl_run_spec *spec = run->spec;
    double updates = 0, stale = 0;
    row->update = n;
    row->time_s = spec->versions->done_s[n];
    row->rate = pl_rate_at(&spec->rate, n);
    int rc = pl_run_clip(run, run->grads);
    row->grad_norm = run->norm;
    for (int s = 0; s < run->plan.n_stages && !rc; s++)
        rc = pl_run_apply_stage(run, n, s, row->rate, &updates, &stale);
    row->update_norm = sqrt(updates);
    row->stale_norm = sqrt(stale);
    if (!rc) run->store.version = n + 1;
    return rc;
}
