/* Checkpoints: resuming gives the bytes of the uninterrupted run, after an orderly
 * stop, a full disk or SIGKILL; anything damaged is refused in words. */
#define _DEFAULT_SOURCE
#include <check.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 60, KILLED_UPDATES = 300 };
static const struct pl_device *const dev = &pl_device_ref;
static char folder[] = "/tmp/pl-checkpoint-XXXXXX", path[64];

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.ckpt", folder);
}

static void teardown(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

struct job {
    struct pl_versions v;
    struct pl_problem *p;
    struct pl_segment segments[3];
    struct pl_run_spec spec;
    volatile sig_atomic_t stop;
    int64_t stop_at; /* set stop after this row */
};

static void on_row(void *context, const struct pl_row *row)
{
    struct job *job = context;
    if (row->update == job->stop_at) job->stop = 1;
}

/* Three stretches, momentum, versions 3 and 1 old: every section of the file is in use.
 */
static struct job *job_new(int64_t updates)
{
    struct job *job = PL_NEW(1, struct job);
    const int64_t tau[2] = {3, 1};
    pl_versions_constant(2, updates, 2, tau, 1, &job->v);
    job->p = toy_new(dev, 2, 4, 3, PL_PARAM_MATRIX, 1, .5, .1);
    job->segments[0] = toy_segment("none", NAN, PL_START_HOLD, 10);
    job->segments[1] = toy_segment("prediction", 1, PL_START_HOLD, 20);
    job->segments[2] = toy_segment("feedback", NAN, PL_START_HOLD, updates - 30);
    job->spec = toy_spec(job->p, &job->v, job->segments);
    job->spec.n_segments = 3;
    job->spec.optim = (struct pl_optim){.type = pl_optim_find("adamw"),
                                        .lr = .01,
                                        .beta1 = .9,
                                        .beta2 = .95,
                                        .eps = 1e-8,
                                        .decay = .1};
    job->spec.eval_every = 7;
    job->spec.fingerprint = 0x1234;
    job->spec.resume = true;
    job->spec.stop = &job->stop;
    job->spec.on_row = on_row;
    job->spec.context = job;
    job->stop_at = -1;
    return job;
}

static void job_free(struct job *job)
{
    pl_versions_free(&job->v);
    toy_free(job->p);
    free(job);
}

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

static struct pl_run_result uninterrupted(int64_t updates)
{
    struct job *job = job_new(updates);
    struct pl_run_result r;
    must(pl_run(&job->spec, &r));
    ck_assert_int_eq(r.status, PL_RUN_DONE);
    job_free(job);
    return r;
}

static void same(const struct pl_run_result *a, const struct pl_run_result *b)
{
    ck_assert_int_eq(a->status, b->status);
    ck_assert_int_eq(a->n_rows, b->n_rows);
    ck_assert_int_eq(a->n_evals, b->n_evals);
    ck_assert_mem_eq(a->rows, b->rows, sizeof *a->rows * (size_t)a->n_rows);
    ck_assert_mem_eq(a->evals, b->evals, sizeof *a->evals * (size_t)a->n_evals);
}

/* Run until row stop_at, leaving a checkpoint. */
static void stop_after(int64_t stop_at)
{
    struct job *job = job_new(UPDATES);
    struct pl_run_result r;
    job->spec.checkpoint = path;
    job->stop_at = stop_at;
    must(pl_run(&job->spec, &r));
    ck_assert_int_eq(r.status, PL_RUN_INTERRUPTED);
    ck_assert_int_eq(r.n_rows, stop_at + 1);
    pl_run_free(&r);
    job_free(job);
}

START_TEST(stop_and_resume)
{
    /* inside each stretch, on both borders, at an evaluation, and before the last
     * update */
    static const int64_t at[] = {0, 4, 6, 9, 10, 20, 28, 29, 30, 45, UPDATES - 2};
    struct pl_run_result want = uninterrupted(UPDATES), r, loaded;
    bool finished;
    stop_after(at[_i]);
    must(pl_run_load(path, 0x1234, &finished, &loaded));
    ck_assert(!finished);
    ck_assert_int_eq(loaded.n_rows, at[_i] + 1);
    ck_assert_mem_eq(loaded.rows, want.rows, sizeof *want.rows * (size_t)loaded.n_rows);
    pl_run_free(&loaded);
    struct job *job = job_new(UPDATES);
    job->spec.checkpoint = path;
    must(pl_run(&job->spec, &r));
    same(&r, &want);
    ck_assert_int_gt(toy_of(job->p)->n_reads, 0);
    pl_run_free(&r);
    job_free(job);
    must(pl_run_load(path, 0x1234, &finished, &loaded));
    ck_assert(finished);
    same(&loaded, &want);
    pl_run_free(&loaded);
    /* A finished run resumes to its rows without training. */
    job = job_new(UPDATES);
    job->spec.checkpoint = path;
    must(pl_run(&job->spec, &r));
    same(&r, &want);
    ck_assert_int_eq(toy_of(job->p)->n_reads, 0);
    pl_run_free(&r);
    job_free(job);
    pl_run_free(&want);
}
END_TEST

static char *slurp(long *n)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    *n = ftell(f);
    rewind(f);
    char *data = malloc((size_t)*n);
    ck_assert_uint_eq(fread(data, 1, (size_t)*n, f), (size_t)*n);
    fclose(f);
    return data;
}

static void spit(const char *data, long n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, (size_t)n, f), (size_t)n);
    fclose(f);
}

static void refused(void)
{
    struct pl_run_result r;
    bool finished;
    ck_assert_int_eq(pl_run_load(path, 0x1234, &finished, &r), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), path));
}

/* Every byte flipped, every length: refused. (pl_run checks with the same code.) */
START_TEST(damage_is_refused)
{
    long n;
    struct pl_run_result r;
    stop_after(20);
    char *data = slurp(&n);
    const long step = n > 3000 ? n / 1500 : 1;
    for (long i = 0; i < n; i += i < 200 ? 1 : step) {
        data[i] ^= 0x10;
        spit(data, n);
        refused();
        data[i] ^= 0x10;
        spit(data, i);
        refused();
    }
    spit(data, n);
    FILE *f = fopen(path, "ab");
    fputc(0, f);
    fclose(f);
    refused();
    data[n - 1] ^= 1;
    spit(data, n);
    struct job *job = job_new(UPDATES);
    job->spec.checkpoint = path;
    ck_assert_int_eq(pl_run(&job->spec, &r), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "corrupt"));
    ck_assert_int_eq(toy_of(job->p)->n_reads, 0);
    job_free(job);
    free(data);
}
END_TEST

START_TEST(other_runs_and_formats_are_refused)
{
    long n;
    struct pl_run_result r;
    bool finished;
    stop_after(20);
    ck_assert_int_eq(pl_run_load(path, 0x1235, &finished, &r), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "another run"));
    /* Same fingerprint, other shape: the caller's mistake, still refused. */
    struct job *job = job_new(UPDATES);
    job->spec.checkpoint = path;
    job->spec.optim.type = pl_optim_find("sgd");
    ck_assert_int_eq(pl_run(&job->spec, &r), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "other sizes"));
    job_free(job);
    char *data = slurp(&n);
    data[8] ^= 2; /* format 3 becomes 1 */
    spit(data, n);
    refused();
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "format 1"));
    data[0] ^= 1;
    spit(data, n);
    refused();
    free(data);
    unlink(path);
    refused();
}
END_TEST

/* A file-size limit stands in for the full disk: EFBIG instead of ENOSPC. */
START_TEST(full_disk_keeps_the_last_good_one)
{
    long n, m;
    struct pl_run_result r, want = uninterrupted(UPDATES);
    stop_after(20);
    char *before = slurp(&n);
    struct job *job = job_new(UPDATES);
    job->spec.checkpoint = path;
    job->spec.checkpoint_updates = 1;
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = (rlim_t)n - 100;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert_int_eq(pl_run(&job->spec, &r), PL_EIO);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), path));
    setrlimit(RLIMIT_FSIZE, &old);
    char *after = slurp(&m);
    ck_assert_int_eq(n, m);
    ck_assert_mem_eq(before, after, (size_t)n);
    job_free(job);
    job = job_new(UPDATES);
    job->spec.checkpoint = path;
    must(pl_run(&job->spec, &r));
    same(&r, &want);
    pl_run_free(&r);
    pl_run_free(&want);
    job_free(job);
    free(before);
    free(after);
}
END_TEST

/* The child: train with a checkpoint every third update until done. */
static void child(void)
{
    struct job *job = job_new(KILLED_UPDATES);
    struct pl_run_result r;
    toy_of(job->p)->delay_us = 200;
    job->spec.checkpoint = path;
    job->spec.checkpoint_updates = 3;
    _exit(pl_run(&job->spec, &r) == 0 && r.status == PL_RUN_DONE ? 0 : 1);
}

START_TEST(sigkill_and_resume)
{
    struct pl_run_result want = uninterrupted(KILLED_UPDATES), r;
    int kills = 0, status = -1;
    bool finished;
    for (uint32_t round = 0; round < 200; round++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) child();
        if (kills < 12) { /* after 1..25 ms: start, training, writing */
            long ns = (long)(1e6 + 24e6 * pl_rng_uniform(3, PL_RNG_TEST, 0, round));
            nanosleep(&(struct timespec){0, ns}, NULL);
            kill(pid, SIGKILL);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) break;
        kills++;
    }
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_ge(kills, 5);
    must(pl_run_load(path, 0x1234, &finished, &r));
    ck_assert(finished);
    same(&r, &want);
    pl_run_free(&r);
    pl_run_free(&want);
}
END_TEST

/* The end of a diverged run is remembered too. */
START_TEST(diverged_runs_stay_diverged)
{
    struct pl_run_result r;
    for (int k = 0; k < 2; k++) {
        struct job *job = job_new(UPDATES);
        job->spec.checkpoint = path;
        toy_of(job->p)->nan_from = 12;
        must(pl_run(&job->spec, &r));
        ck_assert_int_eq(r.status, PL_RUN_DIVERGED);
        ck_assert_int_eq(r.diverged_at, 12);
        ck_assert_int_eq(r.n_rows, 12);
        ck_assert((toy_of(job->p)->n_reads == 0) == (k == 1));
        pl_run_free(&r);
        job_free(job);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, stop_and_resume, 0, 11);
    tcase_add_test(t, damage_is_refused);
    tcase_add_test(t, other_runs_and_formats_are_refused);
    tcase_add_test(t, full_disk_keeps_the_last_good_one);
    tcase_add_test(t, sigkill_and_resume);
    tcase_add_test(t, diverged_runs_stay_diverged);
}

int main(void)
{
    return run_tests("checkpoint", fill);
}
