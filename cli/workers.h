/* Jobs in parallel: each is a forked process, so that independent runs use all cores
 * and one that dies takes nothing with it. Results live in the jobs' checkpoints. */
#ifndef PL_CLI_WORKERS_H
#define PL_CLI_WORKERS_H

#include <signal.h>

#include "cli/experiment.h"

struct pl_workers_spec {
    const struct pl_experiment *experiment;
    const char *const *checkpoints; /* [jobs] */
    const bool *finished;           /* [jobs] already done in an earlier run */
    int n_workers;                  /* >= 1 */
    int n_threads;                  /* of each job, >= 1 */
    /* Called in the parent after each evaluation of a job. */
    void (*on_eval)(void *context, int job, const struct pl_eval *eval);
    void *context;
};

/* SIGINT, SIGTERM and SIGHUP set a flag that pl_workers_run looks at, until released:
 * also while results are written, which a signal must not cut in two. */
void pl_workers_catch_signals(void);
void pl_workers_release_signals(void);
/* The signal that came, or 0; also in a process forked since. */
int pl_workers_signal(void);

/* Run every unfinished job, n_workers at a time, with progress. SIGINT and SIGTERM stop
 * the jobs after writing their checkpoints: PL_EINTR, and *signal says which. A failing
 * job stops the others in the same way: its own error with the job's name. */
int pl_workers_run(const struct pl_workers_spec *spec, int *signal);
/* The same on the ranks of an MPI job, one job at a time on all of them; stop: the flag
 * that signals set. Part of pl_workers_run. */
int pl_workers_run_ranks(const struct pl_workers_spec *spec,
                         const volatile sig_atomic_t *stop, int *signal);

#endif
