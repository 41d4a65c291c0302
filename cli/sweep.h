/* `pipelag sweep`: the points of a configuration's product, each simulated once. A row
 * is a result or the reason why the point was refused; rows are kept by point number,
 * so that who computed them, when and in which order leaves no mark. */
#ifndef PL_CLI_SWEEP_H
#define PL_CLI_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "cli/pool.h"
#include "traces/sweep.h"
#include "traces/trace.h"

enum { PL_MAX_POINTS = 10000000 };

/* Owned: pl_sweep_free. */
struct pl_sweep {
    const struct pl_config *config;  /* borrowed; its swept keys span the points */
    int64_t n, done;                 /* points, rows that are there */
    struct pl_sweep_result *results; /* [n] */
    char **status;                   /* [n] NULL: not done */
    int part;        /* descriptor of the file of finished rows, or -1 */
    char *part_path; /* NULL without one */
};

/* Simulate one point as `pipelag sim` does and append its row to out, as a record
 * (pl_sweep_encode). *work is a configuration to work with, NULL at first; caller
 * frees.
 */
void pl_sweep_point(const struct pl_sweep *sweep, int64_t point,
                    struct pl_config **work, struct pl_bytes *out);

/* An empty sweep. Errors: PL_ECONFIG (no key is swept, too many points; path names the
 * file), PL_EMEM. */
int pl_sweep_new(const struct pl_config *config, const char *path,
                 struct pl_sweep *out);
/* "schedule.name 4 x schedule.stages 6"; caller frees. */
char *pl_sweep_product(const struct pl_config *config);
void pl_sweep_free(struct pl_sweep *sweep);

/* Keep finished rows in path, so that another call goes on after them, and take those
 * that are there. A file cut short by kill -9 loses its last rows only. Errors: PL_EIO;
 * PL_EUSAGE when it belongs to another sweep (fresh: it is emptied instead) or is in
 * use. */
int pl_sweep_keep(struct pl_sweep *sweep, const char *path, bool fresh);
/* Forget the file and remove it. */
void pl_sweep_drop(struct pl_sweep *sweep);

/* One row as a record (checksummed), appended to out: what travels between processes
 * and into the file. */
void pl_sweep_encode(struct pl_bytes *out, int64_t point,
                     const struct pl_sweep_result *result, const char *status);
/* Take the whole records at the start of bytes, append them to the file of rows, and
 * remove them from bytes. Errors: PL_EIO (damaged, file not writable). */
int pl_sweep_take(struct pl_sweep *sweep, struct pl_bytes *bytes);

/* Simulate every point that has no row yet, in n_workers processes, with progress.
 * SIGINT and SIGTERM (caught by pl_workers_catch_signals) end it early: PL_EINTR with
 * the rows so far. Errors: PL_EIO (no process, a worker died, file of rows). */
int pl_sweep_run(struct pl_sweep *sweep, int n_workers);
/* The same over the ranks of an MPI job (base/mpi.h): rank 0 hands out points and takes
 * the rows, the others simulate; they return when all is done. */
int pl_sweep_run_mpi(struct pl_sweep *sweep);
/* Rank 0 cannot begin: let the others go. */
void pl_sweep_dismiss(void);
/* Points that a worker takes at a time. */
int64_t pl_sweep_share(const struct pl_sweep *sweep, int n_workers);

/* The table PL_SWEEP_TABLE of a finished sweep. */
void pl_sweep_record(const struct pl_sweep *sweep, struct pl_trace *t);

#endif
