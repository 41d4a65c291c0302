/* What the commands read from the configuration of one schedule. */
#ifndef PL_CLI_SETUP_H
#define PL_CLI_SETUP_H

#include "base/config.h"
#include "cli/segments.h"
#include "sim/memory.h"
#include "sim/simulate.h"

struct pl_estimate; /* sim/estimate.h */

/* rc, and where it is PL_EINPUT (a file that is not right) the message says before the
 * file which key names it: "run.yaml:7: data.text: ". */
int pl_setup_blame(const struct pl_config *config, const char *key, int rc);
/* schedule.microbatches, or the schedule's default. */
int pl_setup_microbatches(const struct pl_config *config,
                          const struct pl_schedule_type *type, int P);
/* The schedule.* keys, resolved; m: 0 for pl_setup_microbatches; updates: 0 for
 * schedule.updates, or its default. For custom the table of schedule.file is read and
 * P, m and v follow from it; release the shape with pl_shape_free. Errors: as
 * pl_shape_resolve and pl_custom_read; PL_ECONFIG where a key contradicts the table. */
int pl_setup_shape(const struct pl_config *config, const struct pl_schedule_type *type,
                   int m, int64_t updates, struct pl_shape *shape);
/* Costs of a resolved shape by cost.type. *estimate, unless estimate is NULL, gets
 * the roofline's, owned by the caller, or NULL when costs are given. Errors: as
 * pl_cost_new and pl_estimate_new. */
int pl_setup_cost(const struct pl_config *config, const struct pl_schedule_type *type,
                  const struct pl_shape *shape, struct pl_cost *cost,
                  struct pl_estimate **estimate);
/* The keys link.semantics, link.bandwidth, link.bytes and jitter.* onto cost, which is
 * freed on error; estimate: where its links come from, NULL: given. Errors: PL_ECONFIG
 * and PL_EINPUT naming the key. Part of pl_setup_cost. */
int pl_setup_links(const struct pl_config *config, const struct pl_estimate *estimate,
                   struct pl_cost *cost);
/* clip.scope, resolved: is one norm taken over all stages, so that every U waits for
 * all of them? Errors: PL_EUNSUP when that is asked of a schedule whose stages differ.
 */
int pl_setup_barrier(const struct pl_config *config,
                     const struct pl_schedule_type *type, bool *barrier);

/* Does the configuration replace the schedule's version map (delay.tau, delay.trace)?
 */
bool pl_setup_has_delay(const struct pl_config *config);
/* Then do so, and measure again; times stay. Errors: PL_ECONFIG, PL_EINPUT naming the
 * key or the trace; the map is undefined then. */
int pl_setup_delay(const struct pl_config *config, struct pl_simulation *sim);

/* The whole of `pipelag sim`: one schedule, or the segments of a mixed run, with its
 * costs and the executed run. */
struct pl_setup {
    struct pl_cost cost;
    bool barrier;
    struct pl_simulation sim;
    int n_segments; /* 0: one schedule */
    char *text;     /* of the segments */
    struct pl_stretch segments[PL_MAX_SEGMENTS];
    struct pl_simulation parts[PL_MAX_SEGMENTS]; /* each segment alone */
    struct pl_estimate *estimate;                /* NULL: costs are given */
    struct pl_memory memory;                     /* devices 0: without estimate */
};

/* Is the run too long to keep its ops, so that pl_setup_simulate streams it: sim then
 * has metrics, but no rows and no versions (recorded 0)? */
bool pl_setup_is_long(const struct pl_config *config);
/* Errors: those of the parts; *out untouched. Released with pl_setup_free. */
int pl_setup_simulate(const struct pl_config *config, struct pl_setup *out);
void pl_setup_free(struct pl_setup *setup);

#endif
