/* What routers did over an update, or over the validation windows: the unscaled balance
 * and z terms as the loss is averaged, and the choices of every expert added up. The
 * load of the fullest expert over the mean load is MaxVio + 1 of Wang et al. (arXiv
 * 2408.15664, eq. 4). */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/mpi.h"
#include "train/run_state.h"

static size_t n_loads(const struct pl_routers *r)
{
    return (size_t)r->layers * (size_t)r->experts;
}

void pl_run_routing_open(struct pl_run_state *run)
{
    run->routing.load = PL_NEW(n_loads(&run->spec->problem->routers), double);
}

void pl_run_routing_close(struct pl_run_state *run)
{
    free(run->routing.load);
}

void pl_run_routing_begin(struct pl_run_state *run)
{
    const size_t n = n_loads(&run->spec->problem->routers);
    run->routing.balance = run->routing.z = 0;
    for (size_t i = 0; i < n; i++) run->routing.load[i] = 0;
}

void pl_run_routing_add(struct pl_run_state *run, double share)
{
    const struct pl_routers *r = &run->spec->problem->routers;
    run->routing.balance += share * r->balance;
    run->routing.z += share * r->z;
    for (size_t i = 0; i < n_loads(r); i++) run->routing.load[i] += r->load[i];
}

double pl_run_routing_top(const struct pl_run_state *run)
{
    const struct pl_routers *r = &run->spec->problem->routers;
    double top = NAN;
    for (int l = 0; l < r->layers; l++) {
        const double *load = run->routing.load + (size_t)l * (size_t)r->experts;
        double all = 0, most = 0;
        for (int e = 0; e < r->experts; e++) {
            all += load[e];
            most = fmax(most, load[e]);
        }
        top = fmax(top, most * r->experts / all);
    }
    return top;
}

void pl_run_routing_row(struct pl_run_state *run, struct pl_row *row)
{
    const struct pl_run_spec *spec = run->spec;
    double terms[] = {run->routing.balance, run->routing.z};
    row->balance_loss = row->z_loss = row->load_max = NAN;
    if (!spec->problem->routers.layers) return;
    if (pl_run_split(spec)) {
        for (int i = 0; i < 2; i++) terms[i] /= spec->ranks;
        pl_mpi_sum_reals(terms, 2);
        pl_mpi_sum_reals(run->routing.load, (int)n_loads(&spec->problem->routers));
    }
    row->balance_loss = terms[0];
    row->z_loss = terms[1];
    row->load_max = pl_run_routing_top(run);
}
