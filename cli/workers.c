#include "cli/workers.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mpi.h"
#include "base/pool.h"

enum { CUT = 3 }; /* exit status of a job that a signal stopped */
enum message_kind { MSG_ROWS, MSG_EVAL, MSG_ERROR };

/* One write to the shared pipe; below PIPE_BUF, so that writes of jobs never mix. */
struct message {
    enum message_kind kind;
    int job, code;
    int64_t updates; /* done so far */
    struct pl_eval eval;
    char text[1024];
};

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static void set_signals(struct sigaction *action)
{
    struct sigaction old;
    sigaction(SIGINT, action, NULL);
    sigaction(SIGTERM, action, NULL);
    sigaction(SIGHUP, NULL, &old);
    if (old.sa_handler != SIG_IGN) sigaction(SIGHUP, action, NULL); /* not by nohup */
}

void pl_workers_catch_signals(void)
{
    set_signals(&(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART});
}

void pl_workers_release_signals(void)
{
    set_signals(&(struct sigaction){.sa_handler = SIG_DFL});
}

int pl_workers_signal(void)
{
    return stop_signal;
}

struct child {
    int pipe, job;
    int64_t updates;
    double told; /* clock of the last MSG_ROWS */
};

static void tell(struct child *c, struct message *m)
{
    m->job = c->job;
    m->updates = c->updates;
    while (write(c->pipe, m, sizeof *m) < 0 && errno == EINTR)
        ;
}

static void child_row(void *context, const struct pl_row *row)
{
    struct child *c = context;
    c->updates = row->update + 1;
    if (pl_clock() - c->told < 0.2) return;
    c->told = pl_clock();
    tell(c, &(struct message){.kind = MSG_ROWS});
}

static void child_eval(void *context, const struct pl_eval *eval)
{
    tell(context, &(struct message){.kind = MSG_EVAL, .eval = *eval});
}

static _Noreturn void child_main(const struct pl_workers_spec *spec, int job,
                                 int pipe_fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1); /* it died before it could be heard */
    signal(SIGPIPE, SIG_IGN);          /* it dies later: save the work first */
    pl_pool_threads_set(spec->n_threads);
    struct child c = {.pipe = pipe_fd, .job = job};
    struct pl_run_result result;
    int code = pl_job_run(spec->experiment, job, spec->checkpoints[job], &stop_signal,
                          child_row, child_eval, &c, &result);
    if (code < 0) {
        struct message m = {.kind = MSG_ERROR, .code = code};
        strncpy(m.text, pl_error_text(), sizeof m.text - 1);
        tell(&c, &m);
        _exit(1);
    }
    c.updates = result.n_rows;
    tell(&c, &(struct message){.kind = MSG_ROWS});
    const bool cut = result.status == PL_RUN_INTERRUPTED;
    pl_run_free(&result);
    _exit(cut ? CUT : 0);
}

struct pool {
    const struct pl_workers_spec *spec;
    int n_jobs, next, running, code;
    pid_t *pid;       /* [jobs] of running ones, else 0 */
    int64_t *updates; /* [jobs] done */
    int pipe[2];
    char failure[1200];
};

static void fail(struct pool *p, int code, int job, const char *text)
{
    if (p->code) return;
    p->code = code;
    char *name = pl_job_name(p->spec->experiment, job);
    snprintf(p->failure, sizeof p->failure, "%s: %s", name, text);
    free(name);
}

static void start_jobs(struct pool *p)
{
    while (p->running < p->spec->n_workers && p->next < p->n_jobs && !p->code &&
           !stop_signal) {
        int job = p->next++;
        if (p->spec->finished[job]) continue;
        fflush(NULL);
        pid_t parent = getpid(), pid = fork();
        if (pid < 0) {
            fail(p, PL_EIO, job, strerror(errno));
            return;
        }
        if (pid == 0) {
            close(p->pipe[0]);
            child_main(p->spec, job, p->pipe[1], parent);
        }
        p->pid[job] = pid;
        p->running++;
    }
}

static void take(struct pool *p, const struct message *m)
{
    int64_t done = 0;
    p->updates[m->job] = m->updates;
    for (int j = 0; j < p->n_jobs; j++) done += p->updates[j];
    if (m->kind == MSG_ERROR) fail(p, m->code, m->job, m->text);
    char *name = pl_job_name(p->spec->experiment, m->job);
    char *note = pl_printf("%s: update %lld", name, (long long)m->updates);
    pl_progress_update((double)done, note);
    free(note);
    free(name);
    if (m->kind == MSG_EVAL && p->spec->on_eval)
        p->spec->on_eval(p->spec->context, m->job, &m->eval);
}

/* Everything that is in the pipe now; waits up to wait_ms for the first. */
static void drain(struct pool *p, int wait_ms)
{
    struct pollfd fd = {.fd = p->pipe[0], .events = POLLIN};
    struct message m;
    while (poll(&fd, 1, wait_ms) > 0 && read(p->pipe[0], &m, sizeof m) == sizeof m) {
        take(p, &m);
        wait_ms = 0;
    }
}

static void reap(struct pool *p)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int j = 0; j < p->n_jobs; j++) {
            if (p->pid[j] != pid) continue;
            p->pid[j] = 0;
            p->running--;
            drain(p, 0);
            if (WIFSIGNALED(status))
                fail(p, PL_EIO, j, strsignal(WTERMSIG(status)));
            else if (WEXITSTATUS(status) == CUT && !stop_signal)
                fail(p, PL_EIO, j, "its process was told to stop, by a signal");
            else if (WEXITSTATUS(status) && WEXITSTATUS(status) != CUT)
                fail(p, PL_EIO, j, "failed without a message");
        }
}

static void stop_jobs(struct pool *p)
{
    for (int j = 0; j < p->n_jobs; j++)
        if (p->pid[j]) kill(p->pid[j], SIGTERM);
}

static void begin_progress(struct pool *p)
{
    const struct pl_experiment *e = p->spec->experiment;
    double total = 0;
    for (int j = 0; j < p->n_jobs; j++) {
        int64_t n = pl_job_arm(e, j)->versions.updates;
        if (p->spec->finished[j]) p->updates[j] = n;
        total += (double)n;
    }
    pl_progress_begin("train", total, "updates");
}

int pl_workers_run(const struct pl_workers_spec *spec, int *signal)
{
    if (pl_mpi_size() > 1) return pl_workers_run_ranks(spec, &stop_signal, signal);
    struct pool p = {.spec = spec, .n_jobs = pl_experiment_jobs(spec->experiment)};
    if (pipe(p.pipe)) return pl_fail(PL_EIO, "pipe: %s", strerror(errno));
    p.pid = PL_NEW(p.n_jobs, pid_t);
    p.updates = PL_NEW(p.n_jobs, int64_t);
    begin_progress(&p);
    bool told = false;
    for (;;) {
        start_jobs(&p);
        if (!p.running) break;
        drain(&p, 100);
        reap(&p);
        if ((p.code || stop_signal) && !told) {
            stop_jobs(&p);
            told = true;
        }
    }
    pl_progress_end();
    close(p.pipe[0]);
    close(p.pipe[1]);
    free(p.pid);
    free(p.updates);
    *signal = stop_signal;
    if (p.code) return pl_fail(p.code, "%s", p.failure);
    return stop_signal ? pl_fail(PL_EINTR, "interrupted") : 0;
}
