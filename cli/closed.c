#include "cli/closed.h"

#include <math.h>

static bool all_equal(const pl_tick *t, int n)
{
    for (int i = 1; i < n; i++)
        if (t[i] != t[0]) return false;
    return true;
}

static bool is_uniform(const struct pl_cost *c)
{
    if (pl_cost_has_network(c) || pl_cost_varies(c)) return false;
    return all_equal(c->forward, c->chunks) && all_equal(c->backward, c->chunks) &&
           all_equal(c->weight, c->chunks) && all_equal(c->update, c->chunks) &&
           all_equal(c->next, c->devices) && all_equal(c->prev, c->devices);
}

struct pl_closed pl_closed_of(const struct pl_setup *run)
{
    struct pl_closed closed = {NAN, NAN, NAN, NAN};
    const struct pl_schedule *sched = &run->sim.schedule;
    if (sched->type->closed && is_uniform(&run->cost) && !sched->shape.free_order)
        sched->type->closed(&sched->shape, &run->cost, &closed);
    return closed;
}

struct pl_closed_stage pl_closed_stage_of(const struct pl_setup *run, int stage)
{
    struct pl_closed_stage c = {-1, -1, -1, -1};
    const struct pl_schedule *sched = &run->sim.schedule;
    if (sched->type->closed_stage && !pl_cost_varies(&run->cost) &&
        !sched->shape.free_order)
        sched->type->closed_stage(&sched->shape, stage, &c.tau_min, &c.tau_max,
                                  &c.versions, &c.peak);
    return c;
}
