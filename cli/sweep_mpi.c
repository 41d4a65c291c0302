/* A sweep over the ranks of an MPI job. A message to rank 0 holds rows (none at first)
 * and asks for more; the answer is {first point, number of points}, 0 for the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mpi.h"
#include "cli/sweep.h"
#include "cli/workers.h"

static void simulate(const struct pl_sweep *sweep)
{
    struct pl_config *point = NULL;
    struct pl_bytes rows = {0};
    for (;;) {
        int64_t *share;
        size_t n;
        int sender;
        pl_mpi_send(0, rows.data, rows.n);
        rows.n = 0;
        pl_mpi_receive(0, true, &sender, (void **)&share, &n);
        int64_t from = share[0], count = share[1];
        free(share);
        if (!count) break;
        for (int64_t i = from; i < from + count && !pl_workers_signal(); i++)
            pl_sweep_point(sweep, i, &point, &rows);
    }
    pl_config_free(point);
    free(rows.data);
}

/* The next points without a row, at most `most`; *next moves behind them. */
static void next_share(const struct pl_sweep *sweep, int64_t most, int64_t *next,
                       int64_t share[2])
{
    while (*next < sweep->n && sweep->status[*next]) ++*next;
    share[0] = *next;
    while (*next < sweep->n && !sweep->status[*next] && *next - share[0] < most)
        ++*next;
    share[1] = *next - share[0];
}

/* before: rows of an earlier call */
static int hand_out(struct pl_sweep *sweep, int64_t before)
{
    static const struct timespec nap = {0, 200000};
    int64_t next = 0, most = pl_sweep_share(sweep, pl_mpi_size() - 1);
    int code = 0, sender;
    struct pl_bytes rows = {0};
    for (int ranks = pl_mpi_size() - 1; ranks;) {
        void *bytes;
        size_t n;
        if (!pl_mpi_receive(-1, false, &sender, &bytes, &n)) {
            nanosleep(&nap, NULL);
            continue;
        }
        pl_bytes_add(&rows, bytes, n);
        free(bytes);
        if (!code) code = pl_sweep_take(sweep, &rows);
        pl_progress_update((double)(sweep->done - before), NULL);
        int64_t share[2] = {0, 0};
        if (!code && !pl_workers_signal()) next_share(sweep, most, &next, share);
        if (!share[1]) ranks--;
        pl_mpi_send(sender, share, sizeof share);
    }
    free(rows.data);
    return code;
}

void pl_sweep_dismiss(void)
{
    static const int64_t none[2];
    for (int ranks = pl_mpi_size() - 1; ranks; ranks--) {
        void *bytes;
        size_t n;
        int sender;
        pl_mpi_receive(-1, true, &sender, &bytes, &n);
        free(bytes);
        pl_mpi_send(sender, none, sizeof none);
    }
}

int pl_sweep_run_mpi(struct pl_sweep *sweep)
{
    if (pl_mpi_rank()) {
        simulate(sweep);
        return 0;
    }
    int64_t before = sweep->done;
    pl_progress_begin("sweep", (double)(sweep->n - before), "points");
    int code = hand_out(sweep, before);
    pl_progress_end();
    if (code || sweep->done == sweep->n) return code;
    return pl_fail(PL_EINTR, "interrupted");
}
