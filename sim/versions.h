/* The weight-version map, the hinge between simulator and trainer: which version of its
 * weights each stage reads for each microbatch, and which update consumes the gradient.
 * Version v = weights after v updates; tau = consuming update - forward version, always
 * in optimizer updates. Rows are keyed by (model chunk, microbatch): a microbatch
 * belongs to one replica, so that the pair names the instance; "stage" below is the
 * model chunk. Owned by the caller (pl_versions_free). */
#ifndef PL_SIM_VERSIONS_H
#define PL_SIM_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

struct pl_versions {
    int stages; /* model chunks */
    int m;      /* microbatches per update */
    int64_t updates;
    int64_t n_micro;   /* m * updates */
    int64_t *forward;  /* [stages * n_micro] version read in forward, s * n_micro + i */
    int64_t *backward; /* [stages * n_micro] version read in backward */
    double *done_s;    /* [updates] simulated time at which the last stage's U_n ends */
    /* Updates whose delays the start of the run may cut short, of a map that is not the
     * schedule's own: they count as start-up, not for the steady delays. */
    int64_t startup;
};

struct pl_timeline;
struct pl_schedule;

/* Read the map off an executed timeline (rule of the schedule where it has one, the
 * live version otherwise; backward reads what forward read, or the live version without
 * stash). Start-up reads max(0, n - tau). Errors: PL_ECHECK when a needed version was
 * not yet written. */
int pl_versions_from_timeline(const struct pl_timeline *timeline,
                              const struct pl_schedule *schedule,
                              struct pl_versions *out);

/* Constant delay per stage without a simulator: forward = backward = max(0, n -
 * tau[s]); done_s = (n + 1) * step_s. For theory runs and tests. */
void pl_versions_constant(int stages, int64_t updates, int m, const int64_t *tau,
                          double step_s, struct pl_versions *out);

/* Segments: b follows a after a drain; b's versions and times are shifted past a's end,
 * so its first group reads the newest version. a may be empty ({0}): it becomes a copy
 * of b. Errors: PL_ECONFIG when stages or m differ. */
int pl_versions_append(struct pl_versions *a, const struct pl_versions *b);

static inline int64_t pl_versions_tau(const struct pl_versions *v, int stage,
                                      int64_t micro)
{
    return micro / v->m - v->forward[stage * v->n_micro + micro];
}
/* At every stage all microbatches of update n read one version (so one batch will do).
 */
bool pl_versions_fused(const struct pl_versions *v, int64_t n);
/* Every microbatch of update n reads the same version on every stage. */
bool pl_versions_global(const struct pl_versions *v, int64_t n);
/* Largest tau of a stage over the whole run. */
int64_t pl_versions_max_tau(const struct pl_versions *v, int stage);
void pl_versions_free(struct pl_versions *v);

#endif
