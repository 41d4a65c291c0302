/* Delays in the units of the literature. Everywhere else tau is counted in optimizer
 * updates, from the version that a forward reads to the update that consumes its
 * gradient; this is the only place that converts. */
#ifndef PL_SIM_DELAY_UNIT_H
#define PL_SIM_DELAY_UNIT_H

#include <stdbool.h>

#include "sim/schedule.h"

struct pl_delay_unit {
    const char *name, *definition, *source;
    /* w: microbatches from the forward to the update, mean of a stage; m per update;
     * slots: see pl_delay_convert. */
    double (*convert)(double w, int m, bool slots);
};

extern const struct pl_delay_unit pl_delay_units[]; /* ends with name == NULL */
const char *const *pl_delay_unit_names(void);
/* NULL when unknown. */
const struct pl_delay_unit *pl_delay_unit_find(const char *name);

/* Mean delay tau of a stage, in updates of m microbatches, in another unit; NaN stays
 * NaN, synchronous schedules have 0 in all. Where F and BW alternate, w microbatches
 * count as the 2 w + 1 slots that the sources' pipelines would take; a schedule in
 * slots (pipemare) has them as they are. */
double pl_delay_convert(const struct pl_delay_unit *unit,
                        const struct pl_schedule_type *type, int m, double tau);

#endif
