/* One group's bounds, one candidate's simulation: the path of `pipelag sim`. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/plan.h"
#include "cli/setup.h"

struct prepared {
    const struct pl_schedule_type *type;
    struct pl_shape shape;
    bool barrier;
};

static int prepare(const struct pl_config *config, struct prepared *out)
{
    out->type = pl_schedule_find(pl_config_text(config, "schedule.name"));
    int rc = pl_setup_shape(config, out->type, 0, 0, &out->shape);
    return rc ? rc : pl_setup_barrier(config, out->type, &out->barrier);
}

/* Costs that rows of a group share: those of equal chunks, with the ends of the model
 * on one device or not (tied embeddings). */
struct shared {
    int C;
    bool joined;
    struct pl_cost cost;
    struct pl_estimate *estimate;
};

enum { MAX_SHARED = 64 };

static int find_costs(const struct pl_config *config, const struct prepared *p,
                      const struct pl_layout *layout, struct shared *shared, int *n,
                      struct shared **out)
{
    bool joined = layout->device[0] == layout->device[layout->C - 1];
    for (int i = 0; i < *n; i++)
        if (shared[i].C == layout->C && shared[i].joined == joined) {
            *out = &shared[i];
            return PL_OK;
        }
    assert(*n < MAX_SHARED);
    struct shared made = {.C = layout->C, .joined = joined};
    int rc = pl_setup_cost(config, p->type, &p->shape, &made.cost, &made.estimate);
    if (rc) return rc;
    shared[*n] = made;
    *out = &shared[(*n)++];
    return PL_OK;
}

void pl_plan_bound_group(const struct pl_plan *plan, int64_t first, int64_t n,
                         struct pl_config *config, struct pl_plan_row *out)
{
    struct shared shared[MAX_SHARED], *costs;
    int n_shared = 0;
    for (int64_t i = 0; i < n; i++) {
        struct prepared p;
        struct pl_layout layout;
        out[i] = plan->rows[first + i];
        if (out[i].fate == PL_FATE_UNFIT) continue;
        pl_plan_apply(plan, &out[i], config);
        if (prepare(config, &p)) {
            out[i].fate = PL_FATE_FAILED;
            continue;
        }
        pl_layout_new(p.type, &p.shape, &layout);
        if (find_costs(config, &p, &layout, shared, &n_shared, &costs))
            out[i].fate = PL_FATE_FAILED;
        else
            pl_plan_bound(p.type, &p.shape, &layout, &costs->cost, costs->estimate,
                          p.barrier, &out[i]);
        if (out[i].fate == PL_FATE_OPEN && plan->ask->prune &&
            out[i].bound_bytes > plan->limit)
            out[i].fate = PL_FATE_MEMORY;
        pl_layout_free(&layout);
    }
    for (int i = 0; i < n_shared; i++) {
        pl_cost_free(&shared[i].cost);
        pl_estimate_free(shared[i].estimate);
        free(shared[i].estimate);
    }
}

static void measure(const struct pl_plan *plan, const struct pl_simulation *sim,
                    const struct pl_memory *memory, const struct pl_estimate *estimate,
                    struct pl_plan_row *row)
{
    const struct pl_metrics *x = &sim->metrics;
    struct pl_throughput t =
        pl_estimate_throughput(estimate, sim->schedule.shape.m, x->step_s);
    row->step_s = x->step_s;
    row->bubble = x->bubble_steady;
    row->tokens = t.tokens_per_s_gpu;
    row->mfu = t.mfu;
    row->tau = 0;
    for (int s = 0; s < x->stages; s++)
        if (x->stage[s].tau_max > row->tau) row->tau = x->stage[s].tau_max;
    row->device = pl_memory_fullest(memory);
    row->peak = (double)memory->device[row->device].peak;
    if (!(x->step_s > 0)) { /* no steady window */
        row->fate = PL_FATE_FAILED;
        pl_fail(PL_ECONFIG, "%s has no steady window", sim->schedule.type->name);
    } else if (plan->ask->max_tau >= 0 && row->tau > (double)plan->ask->max_tau) {
        row->fate = PL_FATE_STALE;
    } else {
        row->fate = row->peak > plan->limit ? PL_FATE_OVER : PL_FATE_DONE;
    }
}

void pl_plan_point(const struct pl_plan *plan, struct pl_plan_row *row,
                   struct pl_config *config)
{
    struct pl_setup setup;
    pl_plan_apply(plan, row, config);
    row->fate = PL_FATE_FAILED;
    if (pl_setup_simulate(config, &setup)) return;
    measure(plan, &setup.sim, &setup.memory, setup.estimate, row);
    pl_setup_free(&setup);
}
