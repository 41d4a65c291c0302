/* Where the time of a step goes on its busiest device: what the estimate knows of its
 * work, and for transfers the same run with links that take no time. What is left of
 * the device's work is compute, what is left of the step is the bubble. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/plan.h"
#include "cli/setup.h"

const char *const pl_plan_part_names[PL_N_PARTS] = {
    "compute",         "recompute", "tp/ep/cp exchange", "optimizer", "dp exchange",
    "stage transfers", "bubble"};

static int busiest(const struct pl_metrics *metrics)
{
    int device = 0;
    for (int d = 1; d < metrics->devices; d++)
        if (metrics->device[d].busy_s > metrics->device[device].busy_s) device = d;
    return device;
}

/* Step with free transfers. */
static int without_links(const struct pl_setup *setup, double *step_s)
{
    struct pl_simulation sim;
    struct pl_cost cost = setup->cost;
    int n = cost.devices;
    pl_tick *none = PL_NEW(n, pl_tick);
    cost.next = cost.prev = cost.send_next = cost.send_prev = none;
    int rc = pl_simulate(setup->sim.schedule.type, &setup->sim.schedule.shape, &cost,
                         setup->barrier, &sim);
    if (!rc) {
        *step_s = sim.metrics.step_s;
        pl_simulation_free(&sim);
    }
    free(none);
    return rc;
}

static int split_step(const struct pl_setup *setup, double parts[PL_N_PARTS])
{
    const struct pl_estimate *e = setup->estimate;
    const struct pl_simulation *sim = &setup->sim;
    const struct pl_layout *l = &sim->schedule.layout;
    int d = busiest(&sim->metrics);
    double free_s, micros = (double)sim->schedule.shape.m / l->R;
    int rc = without_links(setup, &free_s);
    if (rc) return rc;
    for (int k = 0; k < PL_N_PARTS; k++) parts[k] = 0;
    for (int q = 0; q < l->C * l->R; q++) {
        int c = q % l->C;
        if (l->device[q] != d) continue;
        parts[PL_PART_RECOMPUTE] += micros * e->again[c];
        parts[PL_PART_EXCHANGE] += micros * e->exchange[c];
        parts[PL_PART_RULE] += e->rule[c];
        parts[PL_PART_GRADIENTS] += e->update[c] - e->rule[c];
    }
    double work = sim->metrics.device[d].busy_s / (double)sim->schedule.shape.updates;
    parts[PL_PART_COMPUTE] = work - parts[PL_PART_RECOMPUTE] - parts[PL_PART_EXCHANGE] -
                             parts[PL_PART_RULE] - parts[PL_PART_GRADIENTS];
    parts[PL_PART_TRANSFERS] = sim->metrics.step_s - free_s;
    parts[PL_PART_BUBBLE] = free_s - work;
    return PL_OK;
}

int pl_plan_parts(const struct pl_plan *plan, int64_t row, double parts[PL_N_PARTS])
{
    struct pl_config *config;
    struct pl_setup setup;
    int rc = pl_config_arm(plan->ask->config, 0, &config);
    if (rc) return rc;
    pl_plan_apply(plan, &plan->rows[row], config);
    rc = pl_setup_simulate(config, &setup);
    if (!rc) {
        rc = split_step(&setup, parts);
        pl_setup_free(&setup);
    }
    pl_config_free(config);
    return rc;
}
