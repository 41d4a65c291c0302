#include "cli/session.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "traces/record.h"

void pl_session_load(struct pl_session *s)
{
    for (int j = 0; j < pl_session_jobs(s); j++) {
        pl_run_free(&s->results[j]);
        s->results[j] = (struct pl_run_result){.diverged_at = -1};
        if (pl_run_load(s->checkpoints[j], pl_job_fingerprint(&s->experiment, j),
                        &s->finished[j], &s->results[j]) < 0)
            s->finished[j] = false;
    }
}

struct pl_trace *pl_session_trace(const struct pl_session *s, const char *status)
{
    struct pl_trace *t = pl_trace_new();
    char *given = pl_config_dump(s->config, true),
         *all = pl_config_dump(s->config, false);
    pl_record_provenance(t, s->command, given, all, s->device);
    pl_trace_attr_text(t, "/", "title", pl_config_title(s->config));
    pl_trace_attr_text(t, "/", "status", status);
    free(given);
    free(all);
    for (int i = 0; i < s->experiment.n_arms; i++) {
        const struct pl_arm *arm = &s->experiment.arms[i];
        pl_record_simulation(t, arm->name, &arm->sim, &arm->cost);
    }
    for (int j = 0; j < pl_session_jobs(s); j++)
        if (s->results[j].n_rows || s->results[j].n_evals)
            pl_record_run(t, pl_session_arm(s, j)->name, pl_session_seed(s, j),
                          &s->results[j]);
    return t;
}

int pl_session_write_partial(struct pl_session *s)
{
    pl_session_load(s);
    struct pl_trace *t = pl_session_trace(s, "partial");
    int rc = pl_trace_write(t, s->output);
    pl_trace_free(t);
    s->snapshot = pl_clock();
    return rc;
}

struct probed {
    int rc;
    size_t bytes;
    char text[1024];
    char device[sizeof((struct pl_session *)NULL)->device];
};

static void probe_arms(const struct pl_session *s, struct probed *p)
{
    for (int i = 0; !p->rc && i < s->experiment.n_arms; i++) {
        size_t bytes = 0;
        p->rc =
            pl_arm_probe(&s->experiment.arms[i], &bytes, p->device, sizeof p->device);
        if (bytes > p->bytes) p->bytes = bytes;
    }
    if (p->rc) snprintf(p->text, sizeof p->text, "%s", pl_error_text());
}

/* Inputs must be right before any output is touched. In a process of its own: workers
 * are forked, and a process whose parent has opened a GPU cannot use it. */
static int probe(struct pl_session *s)
{
    struct probed p = {0};
    int ends[2];
    if (pipe(ends)) return pl_fail(PL_EIO, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        probe_arms(s, &p);
        _exit(write(ends[1], &p, sizeof p) != sizeof p); /* below PIPE_BUF: whole */
    }
    close(ends[1]);
    ssize_t n = child < 0 ? -1 : read(ends[0], &p, sizeof p);
    close(ends[0]);
    if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    if (n != sizeof p) return pl_fail(PL_EIO, "checking data and device failed");
    s->bytes = p.bytes;
    memcpy(s->device, p.device, sizeof s->device);
    return p.rc ? pl_fail(p.rc, "%s", p.text) : 0;
}

static int check_output(const struct pl_session *s)
{
    struct stat st;
    if (stat(s->output, &st)) {
        if (errno != ENOENT)
            return pl_fail(PL_EIO, "%s: %s", s->output, strerror(errno));
        char *probe = pl_file_temporary(s->output);
        FILE *f = fopen(probe, "w");
        int rc =
            f ? 0 : pl_fail(PL_EIO, "%s: cannot write: %s", s->output, strerror(errno));
        if (f) {
            fclose(f);
            unlink(probe);
        }
        free(probe);
        return rc;
    }
    if (S_ISDIR(st.st_mode)) return pl_fail(PL_EUSAGE, "%s: is a folder", s->output);
    if (!S_ISREG(st.st_mode))
        return pl_fail(PL_EIO, "%s: is not a regular file", s->output);
    if (!s->force && !s->resume)
        return pl_fail(PL_EUSAGE, "%s: exists; --force overwrites, --resume continues",
                       s->output);
    return 0;
}

static int open_progress(struct pl_session *s)
{
    char *path = pl_printf("%s.progress.jsonl", s->output);
    s->progress = fopen(path, s->resume ? "a" : "w");
    int rc = s->progress ? 0 : pl_fail(PL_EIO, "%s: %s", path, strerror(errno));
    free(path);
    return rc;
}

static int open_folder(struct pl_session *s)
{
    s->folder = pl_printf("%s.ckpt", s->output);
    s->checkpoints = PL_NEW(pl_session_jobs(s), char *);
    s->finished = PL_NEW(pl_session_jobs(s), bool);
    s->results = PL_NEW(pl_session_jobs(s), struct pl_run_result);
    if (mkdir(s->folder, 0777) && errno != EEXIST)
        return pl_fail(PL_EIO, "%s: %s", s->folder, strerror(errno));
    for (int j = 0; j < pl_session_jobs(s); j++) {
        s->checkpoints[j] =
            pl_printf("%s/%s-%llu.ckpt", s->folder, pl_session_arm(s, j)->name,
                      (unsigned long long)pl_session_seed(s, j));
        if (!s->resume) unlink(s->checkpoints[j]);
        bool finished;
        struct pl_run_result result;
        if (access(s->checkpoints[j], F_OK)) continue;
        int rc = pl_run_load(s->checkpoints[j], pl_job_fingerprint(&s->experiment, j),
                             &finished, &result);
        if (rc)
            return pl_fail(rc, "%s (remove it, or run without --resume to start again)",
                           pl_error_text());
        s->finished[j] = finished;
        pl_run_free(&result);
    }
    return open_progress(s);
}

int pl_session_open(struct pl_session *s)
{
    int rc = pl_experiment_new(s->config, &s->experiment);
    if (!rc) rc = probe(s);
    if (!rc) rc = check_output(s);
    if (!rc) rc = open_folder(s);
    s->snapshot = pl_clock();
    return rc;
}

/* Also temporaries that a killed process left: ".NAME.ckpt.tmp-PID". */
void pl_session_clean(const struct pl_session *s)
{
    DIR *folder = opendir(s->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".ckpt")) continue;
        char *path = pl_printf("%s/%s", s->folder, entry->d_name);
        unlink(path);
        free(path);
    }
    if (folder) closedir(folder);
    rmdir(s->folder);
}

void pl_session_close(struct pl_session *s)
{
    for (int j = 0; s->results && j < pl_session_jobs(s); j++) {
        pl_run_free(&s->results[j]);
        free(s->checkpoints[j]);
    }
    free(s->results);
    free(s->checkpoints);
    free(s->finished);
    free(s->folder);
    free(s->command);
    if (s->progress) fclose(s->progress);
    pl_experiment_free(&s->experiment);
    pl_config_free(s->config);
}
