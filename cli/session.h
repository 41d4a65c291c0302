/* A call of `pipelag run` between its start and its end: the experiment, where its
 * files are, and the results so far. Owned: pl_session_close. */
#ifndef PL_CLI_SESSION_H
#define PL_CLI_SESSION_H

#include "cli/experiment.h"
#include "traces/trace.h"

struct pl_session {
    const char *output; /* trace to write, borrowed */
    bool resume, force;
    const char *save; /* folder for the weights of all jobs; NULL: none; borrowed */
    const struct pl_tensor_type *save_type;
    uint64_t save_shard;
    struct pl_config *config; /* owned */
    char *command;            /* what decides the results, for the trace; owned */
    struct pl_experiment experiment;
    struct pl_run_result *results; /* [jobs] */
    char *folder;                  /* of the checkpoints: OUTPUT.ckpt */
    char **checkpoints;            /* [jobs] */
    bool *finished;                /* [jobs] */
    FILE *progress;                /* JSON lines for onlookers: OUTPUT.progress.jsonl */
    int n_workers, n_threads;      /* jobs at a time, threads of each */
    double snapshot;               /* clock of the last partial trace */
    struct pl_probe *probes;        /* [arms] what their jobs take; NULL: a joined rank */
    const struct pl_probe *largest; /* on the host, or of all when none is */
};

static inline int pl_session_jobs(const struct pl_session *s)
{
    return pl_experiment_jobs(&s->experiment);
}

static inline const struct pl_arm *pl_session_arm(const struct pl_session *s, int job)
{
    return pl_job_arm(&s->experiment, job);
}

static inline uint64_t pl_session_seed(const struct pl_session *s, int job)
{
    return pl_job_seed(&s->experiment, job);
}

/* With output, flags and config set: expand and simulate the arms, check that inputs
 * are right before any output is touched, then that the output may be written; make the
 * folder of checkpoints and take what is in it when resuming. Errors: those of the
 * parts. */
int pl_session_open(struct pl_session *s);
/* The same on a rank of an MPI job that is not the first, when the first has opened: the
 * experiment and the paths; touches no file. */
int pl_session_join(struct pl_session *s);
/* The part of it that touches no file and needs no output: experiment, data, probes. */
int pl_session_check(struct pl_session *s);
/* May the output and the folder of weights be written, where they are given? Touches
 * neither; after pl_session_check. */
int pl_session_check_output(struct pl_session *s);
/* Parts of pl_session_open (session_probe.c). What jobs take, and is there anything
 * that would make one fail? In a process of its own: workers are forked, and a process
 * whose parent has opened a GPU cannot use it. How many jobs at a time; their memory
 * must be there before any of them starts: PL_EMEM with the nearest value that fits.
 * Threads of a job: independent runs use cores best, so threads share only those that
 * runs leave. */
int pl_session_probe(struct pl_session *s);
int pl_session_workers(struct pl_session *s);
void pl_session_threads(struct pl_session *s);
/* Results from the checkpoints, as far as they go. */
void pl_session_load(struct pl_session *s);
/* Everything so far as a trace with this status; caller frees. */
struct pl_trace *pl_session_trace(const struct pl_session *s, const char *status);
/* The trace so far, whole at any moment: what a kill -9 leaves behind. */
int pl_session_write_partial(struct pl_session *s);
/* Remove the checkpoints of a finished run. */
void pl_session_clean(const struct pl_session *s);
void pl_session_close(struct pl_session *s);

#endif
