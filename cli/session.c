#include "cli/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mpi.h"
#include "cli/report.h"
#include "cli/setup_problem.h"
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
    pl_record_provenance(t, s->command, given, all,
                         s->probes[s->experiment.n_arms - 1].device);
    pl_trace_attr_text(t, "/", "title", pl_config_title(s->config));
    pl_trace_attr_text(t, "/", "status", status);
    free(given);
    free(all);
    for (int i = 0; i < s->experiment.n_arms; i++) {
        const struct pl_arm *arm = &s->experiment.arms[i];
        pl_record_simulation(t, arm->name, &arm->sim, &arm->cost);
        const struct pl_problem_type *type = pl_setup_problem_type(arm->config);
        if (!type->on_data) pl_record_problem(t, arm->name, type->name, &arm->known);
        pl_record_segments(t, arm->name, arm->n_segments, arm->segments,
                           arm->schedules);
    }
    for (int j = 0; j < pl_session_jobs(s); j++)
        if (s->results[j].n_rows || s->results[j].n_evals ||
            s->results[j].status == PL_RUN_DIVERGED)
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

/* Not to learn after hours of training that there is no table: try it without results.
 */
static int try_report(const struct pl_session *s)
{
    struct pl_report report;
    int rc = pl_report_new(&s->experiment, s->results, &report);
    if (!rc) pl_report_free(&report);
    return rc;
}

static int check_folder(const struct pl_session *s)
{
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

/* What --resume may replace: a trace that says it is not complete. */
static int check_partial(const struct pl_session *s)
{
    struct pl_trace *t;
    int rc = pl_trace_read(s->output, &t);
    if (rc) return pl_fail(rc, "%s (--force overwrites it)", pl_error_text());
    const char *status = pl_trace_get_attr_text(t, "/", "status");
    bool complete = !status || !strcmp(status, "complete");
    pl_trace_free(t);
    if (!complete || !access(s->folder, F_OK)) return 0;
    return pl_fail(PL_EUSAGE,
                   "%s: is complete, nothing to resume; --force runs it again",
                   s->output);
}

static int check_output(const struct pl_session *s)
{
    struct stat st;
    if (stat(s->output, &st)) {
        if (errno == ENOENT) return check_folder(s);
        return pl_fail(PL_EIO, "%s: %s", s->output, strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) return pl_fail(PL_EUSAGE, "%s: is a folder", s->output);
    if (!S_ISREG(st.st_mode))
        return pl_fail(PL_EIO, "%s: is not a regular file", s->output);
    if (s->force) return 0;
    if (s->resume) return check_partial(s);
    return pl_fail(PL_EUSAGE, "%s: exists; --force overwrites, --resume continues",
                   s->output);
}

/* Also the lock: one run at a time on an output. Forked jobs do not hold it. */
static int open_progress(struct pl_session *s)
{
    char *path = pl_printf("%s.progress.jsonl", s->output);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;
    /* O_NONBLOCK: a pipe without a reader would wait for one */
    int rc = 0,
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd >= 0) s->progress = fdopen(fd, "a");
    if (!s->progress)
        rc = pl_fail(PL_EIO, "%s: %s", path, strerror(errno));
    else if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        rc = pl_fail(PL_EIO, "%s: is not a regular file", path);
    /* other errors: a file system without locks */
    if (!rc && fcntl(fileno(s->progress), F_SETLK, &whole) < 0 &&
        (errno == EACCES || errno == EAGAIN))
        rc = pl_fail(PL_EUSAGE, "%s: another 'pipelag run' is writing it", s->output);
    free(path);
    return rc;
}

/* A checkpoint of an earlier call: take it, remove it, or refuse. */
static int open_checkpoint(struct pl_session *s, int job)
{
    const char *path = s->checkpoints[job];
    if (access(path, F_OK))
        return errno == ENOENT ? 0 : pl_fail(PL_EIO, "%s: %s", path, strerror(errno));
    if (s->force && !s->resume)
        return unlink(path) ? pl_fail(PL_EIO, "%s: %s", path, strerror(errno)) : 0;
    if (!s->resume)
        return pl_fail(PL_EUSAGE,
                       "%s: an interrupted run is there; --resume continues it, "
                       "--force starts again",
                       s->folder);
    struct pl_run_result result;
    int rc = pl_run_load(path, pl_job_fingerprint(&s->experiment, job),
                         &s->finished[job], &result);
    if (rc)
        return pl_fail(rc, "%s (--force without --resume starts again)",
                       pl_error_text());
    pl_run_free(&result);
    return 0;
}

/* Nothing but what a killed run left half written (pl_file_temporary), which is removed
 * on request. */
static bool is_empty(const char *folder, bool tidy)
{
    DIR *dir = opendir(folder);
    bool empty = true;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        bool half =
            (!strncmp(name, ".model", 6) || !strncmp(name, ".config.json.", 13)) &&
            strstr(name, ".tmp-");
        empty &= half || !strcmp(name, ".") || !strcmp(name, "..");
        if (!half || !tidy) continue;
        char *path = pl_printf("%s/%s", folder, name);
        unlink(path);
        free(path);
    }
    if (dir) closedir(dir);
    return empty;
}

/* May files be made in the folder, or the folder in its own? */
static int check_writable(const char *path)
{
    struct stat st;
    if (!stat(path, &st)) {
        if (!S_ISDIR(st.st_mode)) return pl_fail(PL_EUSAGE, "%s: is no folder", path);
        if (!access(path, W_OK | X_OK)) return 0;
    } else if (errno == ENOENT && *path && lstat(path, &st)) {
        char *slash = strrchr(path, '/');
        char *above = slash ? pl_printf("%.*s", (int)(slash - path + 1), path) : NULL;
        int denied = access(above ? above : ".", W_OK | X_OK);
        free(above);
        if (!denied) return 0;
    }
    return pl_fail(PL_EIO, "%s: %s", path, strerror(errno ? errno : ENOENT));
}

/* May a job's weights be written? Into a folder that is new, empty, this run's own, or
 * that --force names. */
static int check_save(const struct pl_session *s, int job)
{
    struct stat st;
    char *folder = pl_job_save_folder(&s->experiment, job);
    int rc = check_writable(s->save);
    if (!rc && !stat(s->save, &st)) rc = check_writable(folder);
    if (rc)
        rc = pl_fail(rc, "--save: %s", pl_error_text());
    else if (!s->force && !is_empty(folder, false) &&
             !(s->resume && pl_job_saved(&s->experiment, job, false)))
        rc = pl_fail(PL_EUSAGE,
                     "%s: --save: is not empty; --force writes config.json and "
                     "model.safetensors into it",
                     folder);
    free(folder);
    return rc;
}

static int make_folder(const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return 0;
    return pl_fail(PL_EIO, "%s: --save: %s", path, strerror(errno));
}

/* The folders of --save; a job that is done but left no weights must run once more,
 * which loads and saves. */
static int open_save(struct pl_session *s)
{
    int rc = 0;
    if (!s->save) return 0;
    rc = make_folder(s->save);
    for (int j = 0; j < pl_session_jobs(s) && !rc; j++) {
        char *folder = pl_job_save_folder(&s->experiment, j);
        rc = make_folder(folder);
        is_empty(folder, true);
        free(folder);
        s->finished[j] &= pl_job_saved(&s->experiment, j, true);
    }
    return rc;
}

static int open_folder(struct pl_session *s)
{
    if (mkdir(s->folder, 0777) && errno != EEXIST)
        return pl_fail(PL_EIO, "%s: %s", s->folder, strerror(errno));
    int rc = check_writable(s->folder);
    for (int j = 0; j < pl_session_jobs(s) && !rc; j++) rc = open_checkpoint(s, j);
    if (!rc && !s->resume && ftruncate(fileno(s->progress), 0))
        pl_log(PL_LOG_WARN, "%s.progress.jsonl: %s", s->output, strerror(errno));
    return rc;
}

/* The experiment. */
static int expand(struct pl_session *s)
{
    int rc = pl_experiment_new(s->config, &s->experiment);
    if (rc) return rc;
    s->experiment.save = s->save;
    s->experiment.save_type = s->save_type;
    s->experiment.save_shard = s->save_shard;
    s->finished = PL_NEW(pl_session_jobs(s), bool);
    s->results = PL_NEW(pl_session_jobs(s), struct pl_run_result);
    return 0;
}

/* Where its files are. */
static void name_files(struct pl_session *s)
{
    s->folder = pl_printf("%s.ckpt", s->output);
    s->checkpoints = PL_NEW(pl_session_jobs(s), char *);
    for (int j = 0; j < pl_session_jobs(s); j++)
        s->checkpoints[j] =
            pl_printf("%s/%s-%llu.ckpt", s->folder, pl_session_arm(s, j)->name,
                      (unsigned long long)pl_session_seed(s, j));
}

int pl_session_check(struct pl_session *s)
{
    int rc = expand(s);
    if (!rc) rc = try_report(s);
    if (!rc) rc = pl_experiment_data(&s->experiment);
    return rc ? rc : pl_session_probe(s);
}

int pl_session_check_output(struct pl_session *s)
{
    int rc = 0;
    if (s->output) {
        name_files(s);
        rc = check_output(s);
    }
    for (int j = 0; s->save && j < pl_session_jobs(s) && !rc; j++)
        rc = check_save(s, j);
    return rc;
}

int pl_session_open(struct pl_session *s)
{
    int rc = pl_session_check(s);
    if (!rc) rc = pl_session_workers(s);
    if (!rc) rc = pl_session_check_output(s);
    if (rc) return rc;
    rc = open_progress(s);
    if (!rc) rc = open_folder(s);
    if (!rc) rc = open_save(s);
    pl_session_threads(s);
    s->snapshot = pl_clock();
    return rc;
}

int pl_session_join(struct pl_session *s)
{
    int rc = expand(s);
    if (!rc) rc = pl_experiment_data(&s->experiment);
    for (int i = 0; i < s->experiment.n_arms && !rc; i++)
        rc = pl_arm_computed(&s->experiment.arms[i], &s->experiment.arms[i].computed);
    if (rc) return rc;
    name_files(s);
    pl_session_load(s);
    for (int j = 0; s->save && j < pl_session_jobs(s); j++)
        s->finished[j] &= pl_job_saved(&s->experiment, j, true);
    pl_session_threads(s);
    return 0;
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
        if (s->checkpoints) free(s->checkpoints[j]);
    }
    free(s->results);
    free(s->checkpoints);
    free(s->finished);
    free(s->probes);
    free(s->folder);
    free(s->command);
    if (s->progress) fclose(s->progress);
    pl_experiment_free(&s->experiment);
    pl_config_free(s->config);
}
