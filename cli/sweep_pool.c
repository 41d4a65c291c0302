/* A sweep on the cores of this machine: forked workers take shares of the points from a
 * counter in shared memory and send rows through pipes. */
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
#include "base/mem.h"
#include "cli/sweep.h"
#include "cli/workers.h"

enum { BLOCK = 32768 };         /* bytes of rows that a worker sends at once */
static const double HELD = .05; /* seconds that it holds rows back, about */
static const double GRACE = 2;  /* seconds to end in after a signal */

struct shared {
    atomic_llong next;      /* first point that nobody took */
    atomic_llong current[]; /* [workers] point being simulated, for messages */
};

struct worker {
    pid_t pid; /* 0: ended */
    int pipe;  /* to read from; -1: closed */
    struct pl_bytes bytes;
};

struct pool {
    struct pl_sweep *sweep;
    struct shared *shared;
    size_t shared_bytes;
    int n, running;
    int64_t before;         /* rows of an earlier call */
    struct worker *workers; /* [n] */
    int code;               /* of the first failure */
    char *failure;
};

int64_t pl_sweep_share(const struct pl_sweep *sweep, int n_workers)
{
    int64_t share = (sweep->n - sweep->done) / ((int64_t)n_workers * 32);
    return share < 1 ? 1 : share > 256 ? 256 : share;
}

/* In the worker */

static void send_rows(int fd, struct pl_bytes *bytes)
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
    const struct pl_sweep *sweep = p->sweep;
    int64_t share = pl_sweep_share(sweep, p->n);
    struct pl_config *point = NULL;
    struct pl_bytes rows = {0};
    double sent = pl_clock();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (sweep->part >= 0) close(sweep->part); /* with its lock */
    for (;;) {
        int64_t from = atomic_fetch_add(&p->shared->next, share);
        for (int64_t i = from; i < from + share && i < sweep->n; i++) {
            if (sweep->status[i]) continue;
            if (pl_workers_signal()) break;
            atomic_store(&p->shared->current[number], i);
            pl_sweep_point(sweep, i, &point, &rows);
            if (rows.n < BLOCK && pl_clock() - sent < HELD) continue;
            send_rows(fd, &rows);
            sent = pl_clock();
        }
        if (from + share >= sweep->n || pl_workers_signal()) break;
    }
    send_rows(fd, &rows);
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

/* "point 17 (schedule.name 2bw, schedule.stages 8)" */
static char *point_text(const struct pl_sweep *sweep, int64_t i)
{
    struct pl_config *point = NULL;
    char *text = pl_printf("point %lld", (long long)i);
    pl_config_point(sweep->config, i, &point);
    for (int a = 0; a < pl_config_n_swept(sweep->config); a++) {
        const char *key = pl_config_swept(sweep->config, a);
        char *value = pl_config_value(point, key);
        char *longer = pl_printf("%s%s%s %s", text, a ? ", " : " (", key, value);
        free(value);
        free(text);
        text = longer;
    }
    char *whole = pl_printf("%s)", text);
    free(text);
    pl_config_free(point);
    return whole;
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
    char *point = point_text(p->sweep, atomic_load(&p->shared->current[number]));
    char *text = WIFSIGNALED(status) ? pl_printf("a worker died at %s: %s", point,
                                                 strsignal(WTERMSIG(status)))
                                     : pl_printf("a worker failed at %s", point);
    fail(p, PL_EIO, text);
    free(text);
    free(point);
}

/* Rows that are there to be read; an end of file is the worker's end. */
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
    int code = p->code ? 0 : pl_sweep_take(p->sweep, &w->bytes);
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
    double stopped = -1;
    while (p->running) {
        for (int i = 0; i < p->n; i++)
            fds[i] = (struct pollfd){.fd = p->workers[i].pipe, .events = POLLIN};
        if (poll(fds, (nfds_t)p->n, 100) > 0)
            for (int i = 0; i < p->n; i++)
                if (fds[i].revents) listen_to(p, i);
        pl_progress_update((double)(p->sweep->done - p->before), NULL);
        bool stop = p->code || pl_workers_signal();
        if (stop && stopped < 0) {
            stop_workers(p, SIGTERM);
            stopped = pl_clock();
        } else if (stop && pl_clock() - stopped > GRACE) {
            stop_workers(p, SIGKILL);
        }
    }
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

int pl_sweep_run(struct pl_sweep *sweep, int n_workers)
{
    struct pool p = {.sweep = sweep, .n = n_workers, .before = sweep->done};
    if (sweep->n - sweep->done < p.n) p.n = (int)(sweep->n - sweep->done);
    if (!p.n) return 0;
    int code = open_pool(&p);
    if (code) fail(&p, code, pl_error_text());
    pl_progress_begin("sweep", (double)(sweep->n - p.before), "points");
    for (int i = 0; i < p.n && !p.code; i++)
        if ((code = start_worker(&p, i))) fail(&p, code, pl_error_text());
    collect(&p);
    pl_progress_end();
    code = p.code ? pl_fail(p.code, "%s", p.failure) : 0;
    close_pool(&p);
    if (code || sweep->done == sweep->n) return code;
    return pl_fail(PL_EINTR, "interrupted");
}
