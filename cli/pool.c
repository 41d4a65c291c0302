#include "cli/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "cli/workers.h"

enum { BLOCK = 32768 };         /* bytes of records that a worker sends at once */
static const double HELD = .05; /* seconds that it holds records back, about */
static const double GRACE = 2;  /* seconds to end in after a signal */

struct shared {
    atomic_llong next;      /* first task that nobody took */
    atomic_llong current[]; /* [workers] task at work, for messages */
};

struct worker {
    pid_t pid; /* 0: ended */
    int pipe;  /* to read from; -1: closed */
    struct pl_bytes bytes;
};

struct pool {
    const struct pl_pool_job *job;
    struct shared *shared;
    size_t shared_bytes;
    int n, running;
    struct worker *workers; /* [n] */
    int code;               /* of the first failure */
    char *failure;
};

/* In the worker */

static void send_records(int fd, struct pl_bytes *bytes)
{
    for (size_t at = 0; at < bytes->n;) {
        ssize_t wrote = write(fd, bytes->data + at, bytes->n - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) _exit(1); /* nobody listens any more */
        at += (size_t)wrote;
    }
    bytes->n = 0;
}

static _Noreturn void worker_main(const struct pool *p, int number, int fd,
                                  pid_t parent)
{
    const struct pl_pool_job *job = p->job;
    struct pl_bytes records = {0};
    double sent = pl_clock();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (job->begin) job->begin(job->context);
    for (;;) {
        int64_t from = atomic_fetch_add(&p->shared->next, job->share);
        for (int64_t i = from; i < from + job->share && i < job->n; i++) {
            if (job->skip && job->skip(job->context, i)) continue;
            if (pl_workers_signal()) break;
            atomic_store(&p->shared->current[number], i);
            job->work(job->context, i, &records);
            if (records.n < BLOCK && pl_clock() - sent < HELD) continue;
            send_records(fd, &records);
            sent = pl_clock();
        }
        if (from + job->share >= job->n || pl_workers_signal()) break;
    }
    send_records(fd, &records);
    _exit(0);
}

/* In the parent */

static void fail(struct pool *p, int code, const char *text)
{
    if (p->code) return;
    p->code = code;
    p->failure = pl_strdup(text);
}

static int start_worker(struct pool *p, int number)
{
    int ends[2];
    if (pipe(ends)) return pl_fail(PL_EIO, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        for (int i = 0; i < number; i++) close(p->workers[i].pipe);
        close(ends[0]);
        worker_main(p, number, ends[1], parent);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return pl_fail(PL_EIO, "cannot start a worker: %s", strerror(errno));
    }
    p->workers[number].pid = pid;
    p->workers[number].pipe = ends[0];
    p->running++;
    return 0;
}

static void end_worker(struct pool *p, int number)
{
    struct worker *w = &p->workers[number];
    int status = 0;
    close(w->pipe);
    w->pipe = -1;
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    p->running--;
    if (pl_workers_signal() || p->code) return;
    if (!WIFSIGNALED(status) && !WEXITSTATUS(status)) return;
    char *task =
        p->job->describe(p->job->context, atomic_load(&p->shared->current[number]));
    char *text = WIFSIGNALED(status) ? pl_printf("a worker died at %s: %s", task,
                                                 strsignal(WTERMSIG(status)))
                                     : pl_printf("a worker failed at %s", task);
    fail(p, PL_EIO, text);
    free(text);
    free(task);
}

/* Records that are there to be read; an end of file is the worker's end. */
static void listen_to(struct pool *p, int number)
{
    struct worker *w = &p->workers[number];
    char block[BLOCK];
    ssize_t n = read(w->pipe, block, sizeof block);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
        end_worker(p, number);
        return;
    }
    pl_bytes_add(&w->bytes, block, (size_t)n);
    int code = p->code ? 0 : p->job->take(p->job->context, &w->bytes);
    if (code) fail(p, code, pl_error_text());
}

static void stop_workers(struct pool *p, int number)
{
    for (int i = 0; i < p->n; i++)
        if (p->workers[i].pid) kill(p->workers[i].pid, number);
}

static void collect(struct pool *p)
{
    struct pollfd *fds = PL_NEW(p->n, struct pollfd);
    int *of = PL_NEW(p->n, int); /* worker of fds[k] */
    double stopped = -1;
    while (p->running) {
        int n = 0; /* open ones only: poll refuses more than the limit of open files */
        for (int i = 0; i < p->n; i++) {
            if (p->workers[i].pipe < 0) continue;
            fds[n] = (struct pollfd){.fd = p->workers[i].pipe, .events = POLLIN};
            of[n++] = i;
        }
        if (poll(fds, (nfds_t)n, 100) > 0)
            for (int k = 0; k < n; k++)
                if (fds[k].revents) listen_to(p, of[k]);
        p->job->tick(p->job->context);
        bool stop = p->code || pl_workers_signal();
        if (stop && stopped < 0) {
            stop_workers(p, SIGTERM);
            stopped = pl_clock();
        } else if (stop && pl_clock() - stopped > GRACE) {
            stop_workers(p, SIGKILL);
        }
    }
    free(of);
    free(fds);
}

static int open_pool(struct pool *p)
{
    p->workers = PL_NEW(p->n, struct worker);
    for (int i = 0; i < p->n; i++) p->workers[i].pipe = -1;
    p->shared_bytes =
        sizeof(struct shared) + (size_t)p->n * sizeof p->shared->current[0];
    p->shared = mmap(NULL, p->shared_bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->shared != MAP_FAILED) return 0;
    p->shared = NULL;
    return pl_fail(PL_EIO, "shared memory: %s", strerror(errno));
}

static void close_pool(struct pool *p)
{
    for (int i = 0; i < p->n; i++) free(p->workers[i].bytes.data);
    free(p->workers);
    if (p->shared) munmap(p->shared, p->shared_bytes);
    free(p->failure);
}

int pl_pool_run(const struct pl_pool_job *job)
{
    struct pool p = {.job = job, .n = job->n_workers};
    if (job->n < p.n) p.n = (int)job->n;
    if (p.n < 1) return 0;
    int code = open_pool(&p);
    if (code) fail(&p, code, pl_error_text());
    for (int i = 0; i < p.n && !p.code; i++)
        if ((code = start_worker(&p, i))) fail(&p, code, pl_error_text());
    collect(&p);
    code = p.code ? pl_fail(p.code, "%s", p.failure) : 0;
    close_pool(&p);
    return code;
}
