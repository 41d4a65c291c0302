/* Jobs one after another in this process, each on all ranks of an MPI job. Rank 0 shows
 * progress and tells evaluations. */
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mpi.h"
#include "base/pool.h"
#include "cli/workers.h"

struct tally {
    const struct pl_workers_spec *spec;
    int job;
    int64_t before, done; /* updates of other jobs, of this one */
    double told;
};

static void on_row(void *context, const struct pl_row *row)
{
    struct tally *t = context;
    t->done = row->update + 1;
    if (pl_mpi_rank() || pl_clock() - t->told < 0.2) return;
    t->told = pl_clock();
    char *name = pl_job_name(t->spec->experiment, t->job);
    char *note = pl_printf("%s: update %lld", name, (long long)t->done);
    pl_progress_update((double)(t->before + t->done), note);
    free(note);
    free(name);
}

static void on_eval(void *context, const struct pl_eval *eval)
{
    struct tally *t = context;
    if (!pl_mpi_rank() && t->spec->on_eval)
        t->spec->on_eval(t->spec->context, t->job, eval);
}

static int run_job(struct tally *t, const volatile sig_atomic_t *stop)
{
    const struct pl_experiment *e = t->spec->experiment;
    struct pl_run_result result;
    int rc = pl_job_run(e, t->job, t->spec->checkpoints[t->job], stop, on_row, on_eval,
                        t, &result);
    if (!rc) {
        pl_run_free(&result);
        return 0;
    }
    char *name = pl_job_name(e, t->job);
    rc = pl_fail(rc, "%s: %s", name, pl_error_text());
    free(name);
    return rc;
}

int pl_workers_run_ranks(const struct pl_workers_spec *spec,
                         const volatile sig_atomic_t *stop, int *signal)
{
    const struct pl_experiment *e = spec->experiment;
    struct tally t = {.spec = spec};
    double total = 0;
    int rc = 0;
    *signal = 0;
    pl_pool_threads_set(spec->n_threads);
    for (int j = 0; j < pl_experiment_jobs(e); j++)
        total += (double)pl_job_arm(e, j)->versions.updates;
    if (!pl_mpi_rank()) pl_progress_begin("train", total, "updates");
    for (t.job = 0; t.job < pl_experiment_jobs(e) && !rc && !*signal; t.job++) {
        if (!pl_mpi_max(!pl_mpi_rank() && spec->finished[t.job]))
            rc = run_job(&t, stop);
        t.before += pl_job_arm(e, t.job)->versions.updates;
        if (!rc) *signal = pl_mpi_max(*stop);
    }
    if (!pl_mpi_rank()) pl_progress_end();
    if (rc) return rc;
    return *signal ? pl_fail(PL_EINTR, "interrupted") : 0;
}
