/* Before a session touches a file: what its jobs will take, how many of them run at a
 * time and with how many threads. */
#include "cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/mpi.h"
#include "base/pool.h"

/* What the process that asks sends for an arm; below PIPE_BUF: whole. */
struct answer {
    int rc;
    struct pl_probe probe;
    char text[1024];
};

static _Noreturn void answer_all(const struct pl_session *s, int to)
{
    int threads = (int)pl_config_int(s->config, "train.threads");
    pl_pool_threads_set(threads ? threads : pl_pool_cores());
    for (int i = 0; i < s->experiment.n_arms; i++) {
        struct answer a = {0};
        const struct pl_arm *arm = &s->experiment.arms[i];
        const bool numbers = i == 0 || arm->weights != arm[-1].weights;
        a.rc = pl_arm_probe(arm, numbers, &a.probe);
        if (a.rc) snprintf(a.text, sizeof a.text, "%s", pl_error_text());
        if (write(to, &a, sizeof a) != sizeof a) _exit(1);
        if (a.rc) break;
    }
    _exit(0);
}

static int take_answers(struct pl_session *s, int from)
{
    for (int i = 0; i < s->experiment.n_arms; i++) {
        struct answer a;
        if (read(from, &a, sizeof a) != sizeof a)
            return pl_fail(PL_EIO, "checking data and device failed");
        if (a.rc) return pl_fail(a.rc, "%s", a.text);
        s->probes[i] = a.probe;
        s->experiment.arms[i].computed = a.probe.computed;
        const struct pl_probe *l = s->largest;
        bool more = !l || a.probe.memory.all > l->memory.all;
        if (l && a.probe.host != l->host) more = a.probe.host;
        if (more) s->largest = &s->probes[i];
    }
    return 0;
}

int pl_session_probe(struct pl_session *s)
{
    int ends[2];
    s->probes = PL_NEW(s->experiment.n_arms, struct pl_probe);
    if (pipe(ends)) return pl_fail(PL_EIO, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        answer_all(s, ends[1]);
    }
    close(ends[1]);
    int rc = child < 0 ? pl_fail(PL_EIO, "fork: %s", strerror(errno))
                       : take_answers(s, ends[0]);
    close(ends[0]);
    if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    return rc;
}

/* "12 GiB"; static, two in turn. */
static const char *in_words(double bytes)
{
    static char text[2][32];
    static int turn;
    turn = !turn;
    return pl_units_format_bytes(bytes, text[turn], sizeof text[turn]);
}

/* The refusal and the nearest value that would be accepted. */
static int too_large(const struct pl_session *s, int ranks, int beside)
{
    const struct pl_probe *p = s->largest;
    const double left = pl_memory_available() / beside;
    const int runs = (int)(left / (double)p->memory.all);
    char *what = ranks > 1 ? pl_printf("training, %d ranks on this machine,", beside)
                           : pl_printf("training, %d run%s at a time (train.workers),",
                                       s->n_workers, s->n_workers > 1 ? "s" : "");
    pl_memory_check((double)p->memory.all * s->n_workers * beside, what);
    free(what);
    if (runs)
        return pl_fail(PL_EMEM, "%s; train.workers: %d fits", pl_error_text(), runs);
    if (p->fits)
        return pl_fail(PL_EMEM, "%s; train.at_once: %d instead of %d needs %s",
                       pl_error_text(), p->fits, p->at_once,
                       in_words((double)p->fits_bytes));
    return pl_fail(
        PL_EMEM,
        "%s: %s of it in activations of %d sequence%s at once (train.at_once, "
        "train.seq), %s in older weights (delays), %s in gradients and state "
        "(model.*, optimizer.*)",
        pl_error_text(), in_words((double)p->memory.activations), p->at_once,
        p->at_once > 1 ? "s" : "", in_words((double)p->memory.versions),
        in_words((double)(p->memory.gradients + p->memory.state)));
}

int pl_session_workers(struct pl_session *s)
{
    int n = (int)pl_config_int(s->config, "train.workers"), beside = pl_mpi_beside();
    int rank, ranks, rc = pl_mpi_launched(&rank, &ranks);
    if (rc) return rc;
    if (!n) n = s->largest->host ? pl_pool_cores() : 1; /* a GPU is one */
    if (n > pl_session_jobs(s)) n = pl_session_jobs(s);
    s->n_workers = n < 1 || ranks > 1 ? 1 : n;
    const double bytes = (double)s->largest->memory.all * s->n_workers * beside;
    if (!s->largest->host || bytes <= pl_memory_available()) return 0;
    return too_large(s, ranks, beside);
}

void pl_session_threads(struct pl_session *s)
{
    int given = (int)pl_config_int(s->config, "train.threads"), left = 0;
    for (int j = 0; j < pl_session_jobs(s); j++) left += !s->finished[j];
    int runs = (left < s->n_workers ? left : s->n_workers) * pl_mpi_beside();
    s->n_threads = given ? given : pl_pool_cores() / (runs < 1 ? 1 : runs);
    if (s->n_threads < 1) s->n_threads = 1;
}
