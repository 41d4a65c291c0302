/* Before a run: check the spec against the map and size what it needs. */
#include "train/run_state.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

int64_t pl_run_backward(const struct pl_run_spec *spec, int stage, int64_t micro)
{
    const struct pl_versions *v = spec->versions;
    const int64_t at = stage * v->n_micro + micro;
    if (spec->fidelity != PL_FIDELITY_NOSTASH) return v->forward[at];
    return v->backward[at] > v->forward[at] ? v->backward[at] : micro / v->m;
}

bool pl_run_fused(const struct pl_run_spec *spec, int64_t n)
{
    const struct pl_versions *v = spec->versions;
    if (spec->replay) return false;
    for (int s = 0; s < v->stages; s++) {
        const int64_t first = n * v->m, *f = v->forward + s * v->n_micro;
        const int64_t b = pl_run_backward(spec, s, first);
        for (int64_t i = first; i < first + v->m; i++)
            if (f[i] != f[first] || pl_run_backward(spec, s, i) != b) return false;
    }
    return true;
}

double pl_run_tau(const struct pl_run_spec *spec, int stage, int64_t n)
{
    const struct pl_versions *v = spec->versions;
    int64_t sum = 0;
    for (int64_t i = n * v->m; i < (n + 1) * v->m; i++)
        sum += pl_versions_tau(v, stage, i);
    return (double)sum / v->m;
}

int64_t pl_run_oldest(const struct pl_run_spec *spec, int stage, int64_t n)
{
    const struct pl_versions *v = spec->versions;
    const int64_t *f = v->forward + stage * v->n_micro;
    int64_t oldest = n;
    for (int64_t i = n * v->m; i < (n + 1) * v->m; i++)
        if (f[i] < oldest) oldest = f[i];
    return oldest;
}

int pl_run_at_once(const struct pl_run_spec *spec)
{
    const struct pl_versions *v = spec->versions;
    const int part = spec->batch / v->m / (pl_run_split(spec) ? spec->ranks : 1);
    bool fused = false;
    for (int64_t n = 0; n < v->updates && !fused; n++) fused = pl_run_fused(spec, n);
    const int most = fused ? part * v->m : part, limit = spec->at_once;
    if (most < 1) return 1; /* pl_run_check refuses it */
    if (!spec->data || limit < 1 || limit >= most) return most;
    return limit > part ? limit / part * part : limit; /* no microbatch is cut */
}

/* Every version read exists by then, and backward is not older than forward. */
static int check_map(const struct pl_versions *v)
{
    for (int s = 0; s < v->stages; s++)
        for (int64_t i = 0; i < v->n_micro; i++) {
            int64_t f = v->forward[s * v->n_micro + i], n = i / v->m;
            int64_t b = v->backward[s * v->n_micro + i];
            if (f < 0 || b < f || b > n)
                return pl_fail(PL_ECONFIG,
                               "version map: stage %d microbatch %lld reads versions "
                               "%lld/%lld, expected 0 <= forward <= backward <= %lld",
                               s, (long long)i, (long long)f, (long long)b,
                               (long long)n);
        }
    return 0;
}

/* Does every gradient come from one version of the whole model? */
static bool map_is_global(const struct pl_run_spec *spec)
{
    const struct pl_versions *v = spec->versions;
    for (int s = 0; s < v->stages; s++)
        for (int64_t i = 0; i < v->n_micro; i++) {
            int64_t all = v->forward[i / v->m * v->m];
            if (v->forward[s * v->n_micro + i] != all ||
                pl_run_backward(spec, s, i) != all)
                return false;
        }
    return true;
}

static int check_combinations(const struct pl_run_spec *spec)
{
    if (map_is_global(spec)) return 0;
    if (spec->problem->shared_across_stages && spec->fidelity != PL_FIDELITY_QUEUE)
        return pl_fail(PL_EUNSUP,
                       "model.tied: yes shares a tensor between stages that read "
                       "different versions under this schedule; set model.tied: no");
    if (spec->fidelity == PL_FIDELITY_GLOBAL)
        return pl_fail(PL_ECONFIG,
                       "delay.fidelity: global needs one version per microbatch "
                       "on all stages, this schedule's stages differ; use stash");
    if (spec->clip > 0 && spec->clip_scope == PL_CLIP_GLOBAL)
        return pl_fail(PL_ECONFIG,
                       "clip.scope: global needs one version per microbatch on "
                       "all stages, this schedule's stages differ; use stage");
    return 0;
}

struct pl_look_args pl_run_look(const struct pl_run_spec *spec, int k, int64_t begin,
                                int stage)
{
    const struct pl_versions *v = spec->versions;
    int64_t end = begin + spec->segments[k].updates, forward = 0, backward = 0;
    if (end > v->updates) end = v->updates;
    struct pl_look_args args = {.stage = stage,
                                .stages = v->stages,
                                .m = v->m,
                                .n = begin,
                                .beta = pl_optim_beta(&spec->optim)};
    for (int64_t i = begin * v->m; i < end * v->m; i++) {
        int64_t tau = pl_versions_tau(v, stage, i);
        if (tau > args.tau) args.tau = tau;
        forward += tau;
        backward += i / v->m - pl_run_backward(spec, stage, i);
    }
    if (end > begin) {
        args.tau_mean = (double)forward / (double)((end - begin) * v->m);
        args.tau_back_mean = (double)backward / (double)((end - begin) * v->m);
    }
    return args;
}

/* Is the version that a backward reads looked at from another place than forward's? */
static bool looks_back(const struct pl_run_spec *spec, const struct pl_look *look)
{
    return spec->fidelity == PL_FIDELITY_NOSTASH && look->c_back != look->c;
}

static int check_corrector(const struct pl_run_spec *spec, int k, int64_t begin,
                           int stage)
{
    const struct pl_corrector *c = &spec->segments[k].corrector;
    const struct pl_look_args args = pl_run_look(spec, k, begin, stage);
    const struct pl_look look = pl_corrector_look(c, &args);
    if (!isfinite(look.c))
        return pl_fail(PL_ECONFIG, "corrector.c: must be given for corrector %s",
                       c->type->name);
    if (!(look.smooth >= 0 && look.smooth < 1))
        return pl_fail(PL_ECONFIG,
                       "corrector.smooth: %g on stage %d, expected in [0, 1)",
                       look.smooth, stage);
    if (c->gate && looks_back(spec, &look))
        return pl_fail(
            PL_ECONFIG,
            "corrector.gate: cosine cannot be combined with %s without stash, "
            "whose backward looks from another place; use corrector.gate: none",
            c->type->name);
    return 0;
}

static int check_segments(const struct pl_run_spec *spec)
{
    int64_t sum = 0;
    for (int k = 0; k < spec->n_segments; k++) {
        const struct pl_segment *g = &spec->segments[k];
        if (g->updates < 1)
            return pl_fail(PL_ECONFIG,
                           "segment %d has %lld updates, expected at least 1", k,
                           (long long)g->updates);
        sum += g->updates;
        for (int s = 0; s < spec->versions->stages; s++) {
            int rc = check_corrector(spec, k, sum - g->updates, s);
            if (rc) return rc;
        }
    }
    if (sum != spec->versions->updates)
        return pl_fail(PL_ECONFIG, "segments have %lld updates, the version map %lld",
                       (long long)sum, (long long)spec->versions->updates);
    return 0;
}

int pl_run_check(const struct pl_run_spec *spec)
{
    const struct pl_versions *v = spec->versions;
    if (v->stages != spec->problem->n_stages)
        return pl_fail(PL_ECONFIG, "version map has %d stages, the problem %d",
                       v->stages, spec->problem->n_stages);
    if (spec->batch < 1 || spec->batch % v->m)
        return pl_fail(PL_ECONFIG,
                       "train.batch: %d sequences do not split into %d "
                       "microbatches",
                       spec->batch, v->m);
    if (pl_run_split(spec) && spec->batch / v->m % spec->ranks)
        return pl_fail(PL_ECONFIG,
                       "train.batch: %d sequences in %d microbatches do not split over "
                       "%d ranks",
                       spec->batch, v->m, spec->ranks);
    if (pl_run_split(spec) && !spec->device->host_memory)
        return pl_fail(PL_EUNSUP, "train.device: %s cannot train on several ranks yet",
                       spec->device->name);
    if (spec->data && spec->T < 1)
        return pl_fail(PL_ECONFIG, "train.seq: %d, expected at least 1", spec->T);
    int rc =
        pl_optim_check(&spec->optim, spec->problem->params, spec->problem->n_params);
    if (!rc) rc = check_map(v);
    if (!rc) rc = check_combinations(spec);
    return rc ? rc : check_segments(spec);
}

int64_t pl_run_n_evals(const struct pl_run_spec *spec)
{
    if (spec->eval_sequences <= 0) return 0;
    int64_t N = spec->versions->updates;
    if (spec->eval_every <= 0 || N == 0) return N ? 2 : 1;
    return 1 + N / spec->eval_every + (N % spec->eval_every != 0);
}

static void plan_stage(const struct pl_run_spec *spec, int s, struct pl_run_plan *plan)
{
    struct pl_wstage_plan *w = &plan->stages[s];
    int64_t begin = 0;
    w->floats = spec->problem->stage_floats[s];
    w->depth = (int)pl_versions_max_tau(spec->versions, s) + 1;
    for (int r = 0; spec->fidelity == PL_FIDELITY_QUEUE && r < plan->n_stages; r++) {
        int depth = (int)pl_versions_max_tau(spec->versions, r) + 1;
        if (depth > w->depth) w->depth = depth; /* any stage's version is everybody's */
    }
    for (int k = 0; k < spec->n_segments; begin += spec->segments[k++].updates) {
        const struct pl_corrector *c = &spec->segments[k].corrector;
        const struct pl_look_args args = pl_run_look(spec, k, begin, s);
        const struct pl_look look = pl_corrector_look(c, &args);
        bool looks = look.c != 0 || c->type->momentum;
        w->history |= looks || c->type->keeps_last;
        w->live |= looks && c->type->at_read;
        w->directions |= looks_back(spec, &look);
        plan->grad |= c->type->grad != NULL;
    }
    if (w->floats > plan->widest) plan->widest = w->floats;
}

/* State of the correctors: stretches take turns with it. */
static size_t corrector_floats(const struct pl_run_spec *spec, size_t n)
{
    bool any = false;
    for (int k = 0; k < spec->n_segments; k++)
        any |= spec->segments[k].corrector.type->keeps_state;
    return any ? n : 0;
}

static void plan_optimizer(const struct pl_run_spec *spec, struct pl_run_plan *plan)
{
    const struct pl_problem *problem = spec->problem;
    for (int i = 0; i < problem->n_params; i++) {
        const struct pl_param *p = &problem->params[i];
        plan->state_offset[i] = plan->state_floats[p->stage];
        if (p->kind == PL_PARAM_BALANCE) continue; /* no optimizer's */
        plan->state_floats[p->stage] += pl_optim_state(&spec->optim, p);
    }
    for (int s = 0; s < plan->n_stages; s++) {
        const int first = problem->first_param[s];
        size_t scratch =
            pl_optim_stage_scratch(&spec->optim, spec->device, &problem->params[first],
                                   problem->first_param[s + 1] - first);
        if (scratch > plan->scratch_floats) plan->scratch_floats = scratch;
        size_t lapack =
            pl_optim_stage_lapack(&spec->optim, spec->device, &problem->params[first],
                                  problem->first_param[s + 1] - first);
        if (lapack > plan->lapack) plan->lapack = lapack;
        plan->corrector_offset[s] = plan->state_floats[s];
        if (plan->state_floats[s] > plan->widest_state)
            plan->widest_state = plan->state_floats[s];
        plan->state_floats[s] += corrector_floats(spec, plan->stages[s].floats);
    }
    if (plan->grad && plan->scratch_floats < plan->widest)
        plan->scratch_floats = plan->widest;
}

int pl_run_plan(const struct pl_run_spec *spec, struct pl_run_plan *plan)
{
    int rc = pl_run_check(spec);
    if (rc) return rc;
    const int P = spec->problem->n_stages;
    *plan =
        (struct pl_run_plan){.n_stages = P,
                             .at_once = pl_run_at_once(spec),
                             .stages = PL_NEW(P, struct pl_wstage_plan),
                             .state_floats = PL_NEW(P, size_t),
                             .corrector_offset = PL_NEW(P, size_t),
                             .state_offset = PL_NEW(spec->problem->n_params, size_t),
                             .spare = spec->fidelity == PL_FIDELITY_QUEUE};
    for (int s = 0; s < P; s++) plan_stage(spec, s, plan);
    plan_optimizer(spec, plan);
    return 0;
}

void pl_run_plan_free(struct pl_run_plan *plan)
{
    free(plan->stages);
    free(plan->state_floats);
    free(plan->corrector_offset);
    free(plan->state_offset);
    *plan = (struct pl_run_plan){0};
}

int pl_run_memory(const struct pl_run_spec *spec, struct pl_run_memory *out)
{
    struct pl_run_plan plan;
    struct pl_run_memory m = {0};
    int rc = pl_run_plan(spec, &plan);
    if (rc) return rc;
    m.gradients = plan.widest * (1 + (size_t)plan.spare);
    m.scratch = plan.scratch_floats;
    for (int s = 0; s < plan.n_stages; s++) {
        m.weights += plan.stages[s].floats;
        m.versions += pl_wstage_floats(&plan.stages[s]) - plan.stages[s].floats;
        m.gradients += plan.stages[s].floats * (1 + pl_run_looks_ahead(spec));
        m.state += plan.state_floats[s];
    }
    if (spec->diagnose) m.scratch += pl_run_diagnose_floats(&plan);
    size_t *const floats[] = {&m.weights, &m.versions, &m.gradients, &m.state,
                              &m.scratch};
    for (int i = 0; i < 5; i++) *floats[i] *= sizeof(float);
    m.scratch += plan.lapack;
    if (spec->data) /* on the host, and twice on the device */
        m.tokens = 6 * sizeof(int32_t) * (size_t)plan.at_once * (size_t)spec->T;
    m.activations = pl_problem_bytes(spec->problem);
    m.all = m.weights + m.versions + m.gradients + m.state + m.scratch + m.activations +
            m.tokens;
    pl_run_plan_free(&plan);
    *out = m;
    return 0;
}
