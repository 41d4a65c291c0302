/* Before a run: check the spec against the map and size what it needs. */
#include "train/run_state.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

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

static bool map_is_global(const struct pl_versions *v)
{
    for (int64_t n = 0; n < v->updates; n++)
        if (!pl_versions_global(v, n)) return false;
    return true;
}

static int check_combinations(const struct pl_run_spec *spec)
{
    if (map_is_global(spec->versions)) return 0;
    if (spec->problem->shared_across_stages)
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
        for (int s = 0; s < spec->versions->stages; s++)
            if (!isfinite(pl_run_coefficient(spec, k, sum - g->updates, s)))
                return pl_fail(PL_ECONFIG,
                               "corrector.c: must be given for corrector %s",
                               g->corrector.type->name);
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
    if (spec->data && spec->T < 1)
        return pl_fail(PL_ECONFIG, "train.seq: %d, expected at least 1", spec->T);
    int rc = check_map(v);
    if (!rc) rc = check_combinations(spec);
    return rc ? rc : check_segments(spec);
}

double pl_run_coefficient(const struct pl_run_spec *spec, int k, int64_t begin,
                          int stage)
{
    const struct pl_versions *v = spec->versions;
    const struct pl_segment *g = &spec->segments[k];
    int64_t tau = 0, end = begin + g->updates;
    if (end > v->updates) end = v->updates;
    for (int64_t i = begin * v->m; i < end * v->m; i++)
        if (pl_versions_tau(v, stage, i) > tau) tau = pl_versions_tau(v, stage, i);
    return g->corrector.type->c(g->corrector.given, pl_optim_beta(&spec->optim), tau);
}

int64_t pl_run_n_evals(const struct pl_run_spec *spec)
{
    if (spec->eval_sequences <= 0) return 0;
    int64_t N = spec->versions->updates;
    if (spec->eval_every <= 0 || N == 0) return N ? 2 : 1;
    return 1 + N / spec->eval_every + (N % spec->eval_every != 0);
}

static void plan_store(const struct pl_run_spec *spec, struct pl_run_plan *plan)
{
    for (int s = 0; s < plan->n_stages; s++) {
        plan->depth[s] = (int)pl_versions_max_tau(spec->versions, s) + 1;
        int64_t begin = 0;
        for (int k = 0; k < spec->n_segments; begin += spec->segments[k++].updates) {
            if (pl_run_coefficient(spec, k, begin, s) == 0) continue;
            plan->history[s] = true;
            plan->live[s] |= spec->segments[k].corrector.type->at_read;
        }
        if (spec->problem->stage_floats[s] > plan->widest)
            plan->widest = spec->problem->stage_floats[s];
    }
}

static void plan_optimizer(const struct pl_run_spec *spec, struct pl_run_plan *plan)
{
    const struct pl_optim_type *type = spec->optim.type;
    for (int i = 0; i < spec->problem->n_params; i++) {
        const struct pl_param *p = &spec->problem->params[i];
        plan->state_offset[i] = plan->state_floats[p->stage];
        plan->state_floats[p->stage] += type->state_floats(&spec->optim, p);
        size_t scratch = type->scratch_floats(&spec->optim, p);
        if (scratch > plan->scratch_floats) plan->scratch_floats = scratch;
    }
}

int pl_run_plan(const struct pl_run_spec *spec, struct pl_run_plan *plan)
{
    int rc = pl_run_check(spec);
    if (rc) return rc;
    const int P = spec->problem->n_stages;
    *plan =
        (struct pl_run_plan){.n_stages = P,
                             .depth = PL_NEW(P, int),
                             .history = PL_NEW(P, bool),
                             .live = PL_NEW(P, bool),
                             .state_floats = PL_NEW(P, size_t),
                             .state_offset = PL_NEW(spec->problem->n_params, size_t)};
    plan_store(spec, plan);
    plan_optimizer(spec, plan);
    return 0;
}

void pl_run_plan_free(struct pl_run_plan *plan)
{
    free(plan->depth);
    free(plan->history);
    free(plan->live);
    free(plan->state_floats);
    free(plan->state_offset);
    *plan = (struct pl_run_plan){0};
}

size_t pl_run_bytes(const struct pl_run_spec *spec)
{
    struct pl_run_plan plan;
    if (pl_run_plan(spec, &plan)) return 0;
    size_t floats = plan.widest + plan.scratch_floats;
    for (int s = 0; s < plan.n_stages; s++) {
        size_t blocks = (size_t)plan.depth[s] + 1 + plan.history[s] + plan.live[s];
        floats += blocks * spec->problem->stage_floats[s] + plan.state_floats[s];
    }
    size_t tokens = spec->data ? 2 * (size_t)spec->batch * (size_t)spec->T : 0;
    pl_run_plan_free(&plan);
    return sizeof(float) * floats + sizeof(int32_t) * tokens +
           pl_problem_bytes(spec->problem);
}
