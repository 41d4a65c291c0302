#include "cli/setup.h"

#include <string.h>

#include "base/err.h"

int pl_setup_microbatches(const struct pl_config *config,
                          const struct pl_schedule_type *type, int P)
{
    int m = (int)pl_config_int(config, "schedule.microbatches");
    if (!m) m = type->default_m;
    return m ? m : type->async ? P : 2 * P;
}

int pl_setup_cost(const struct pl_config *config, int P, struct pl_cost *cost)
{
    static const char *const keys[] = {"cost.forward", "cost.backward", "cost.weight",
                                       "cost.update", "link.time"};
    const pl_tick *t[5];
    int n[5];
    for (int i = 0; i < 5; i++) t[i] = pl_config_times(config, keys[i], &n[i]);
    return pl_cost_new(P, t[0], n[0], t[1], n[1], t[2], n[2], t[3], n[3], t[4], n[4],
                       cost);
}

int pl_setup_barrier(const struct pl_config *config,
                     const struct pl_schedule_type *type, bool *barrier)
{
    const char *scope = pl_config_text(config, "clip.scope");
    bool global = !strcmp(scope, "global");
    if (global && !type->global_version)
        return pl_fail(PL_EUNSUP,
                       "%s: clip.scope global needs the same delay on all stages, "
                       "which %s does not have; use stage",
                       pl_config_where(config, "clip.scope"), type->name);
    *barrier = pl_config_real(config, "clip.norm") > 0 &&
               (global || (!strcmp(scope, "auto") && type->global_version));
    return 0;
}
