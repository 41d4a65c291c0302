#include <config.h>
#include "base/mpi.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static int job_rank, job_size = 1;

int pl_mpi_rank(void)
{
    return job_rank;
}

int pl_mpi_size(void)
{
    return job_size;
}

/* The largest number in these variables of launchers; none: -1. */
static int launcher(const char *const names[])
{
    int most = -1;
    for (int i = 0; names[i]; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > most) most = atoi(text);
    }
    return most;
}

/* Ranks that a launcher says it started; 0: no launcher. */
static int launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_STEP_NUM_TASKS", NULL};
    int n = launcher(names);
    return n < 0 ? 0 : n;
}

int pl_mpi_launched(int *rank, int *size)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID", NULL};
    *rank = 0;
    *size = 1;
    if (launched() < 2) return 0;
#ifdef HAVE_MPI
    *size = launched();
    *rank = launcher(names);
    if (*rank < 0) *rank = 0;
    return 0;
#else
    (void)names;
    return pl_mpi_begin();
#endif
}

int pl_mpi_beside(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_STEP_TASKS_PER_NODE", NULL};
    int all = launched(), here = launcher(names);
    if (all < 2) return 1;
    return here < 1 || here > all ? all : here;
}

#ifdef HAVE_MPI

#include <mpi.h>
#include <time.h>

#include "base/mem.h"

/* MPI's own error handler ends the job with a message: there is no going on. */
int pl_mpi_begin(void)
{
    if (launched() < 2) return 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &job_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job_size);
    return 0;
}

void pl_mpi_send(int to, const void *bytes, size_t n)
{
    assert(n <= INT_MAX);
    MPI_Send(bytes, (int)n, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

bool pl_mpi_receive(int from, bool wait, int *sender, void **bytes, size_t *n)
{
    static const struct timespec nap = {0, 200000}; /* a core for those who compute */
    MPI_Status status;
    int there = 0, count;
    for (;;) {
        MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, 0, MPI_COMM_WORLD, &there,
                   &status);
        if (there || !wait) break;
        nanosleep(&nap, NULL);
    }
    if (!there) return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *sender = status.MPI_SOURCE;
    *n = (size_t)count;
    *bytes = pl_alloc((size_t)count + 1, 1);
    MPI_Recv(*bytes, count, MPI_BYTE, *sender, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return true;
}

enum { SLICE = 1 << 16 };
static float *blocks; /* [2][ranks][SLICE] of pl_mpi_sum */

/* Each rank adds up one slice of every block and hands it to all. */
void pl_mpi_sum(float *x, size_t n)
{
    const size_t ranks = (size_t)job_size, block = SLICE * ranks;
    if (job_size < 2) return;
    if (!blocks) blocks = PL_NEW(2 * block, float);
    float *mine = blocks, *theirs = mine + block;
    for (size_t at = 0; at < n; at += block) {
        size_t k = n - at < block ? n - at : block, slice = (k + ranks - 1) / ranks;
        memcpy(mine, x + at, k * sizeof *mine);
        memset(mine + k, 0, (slice * ranks - k) * sizeof *mine);
        MPI_Alltoall(mine, (int)slice, MPI_FLOAT, theirs, (int)slice, MPI_FLOAT,
                     MPI_COMM_WORLD);
        for (size_t r = 1; r < ranks; r++)
            for (size_t i = 0; i < slice; i++) theirs[i] += theirs[r * slice + i];
        MPI_Allgather(theirs, (int)slice, MPI_FLOAT, mine, (int)slice, MPI_FLOAT,
                      MPI_COMM_WORLD);
        memcpy(x + at, mine, k * sizeof *mine);
    }
}

void pl_mpi_sum_reals(double *x, int n)
{
    if (job_size < 2) return;
    double *all = PL_NEW(job_size * n, double);
    MPI_Allgather(x, n, MPI_DOUBLE, all, n, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) x[i] = all[i];
    for (int r = 1; r < job_size; r++)
        for (int i = 0; i < n; i++) x[i] += all[r * n + i];
    free(all);
}

int pl_mpi_max(int x)
{
    int most = x;
    if (job_size > 1) MPI_Allreduce(&x, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

void pl_mpi_abort(int status)
{
    fflush(NULL);
    if (job_size > 1) MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

void pl_mpi_end(void)
{
    if (job_size > 1) MPI_Finalize();
    job_size = 1;
    free(blocks);
    blocks = NULL;
}

#else

int pl_mpi_begin(void)
{
    if (launched() < 2) return 0;
    return pl_fail(PL_EUNSUP,
                   "started by mpirun with %d ranks, but this build has no "
                   "MPI: configure --with-mpi",
                   launched());
}

/* Without a job there is nobody to talk to. */
void pl_mpi_send(int to, const void *bytes, size_t n)
{
    (void)bytes;
    (void)n;
    assert(to < job_size && !"no such rank");
}

bool pl_mpi_receive(int from, bool wait, int *sender, void **bytes, size_t *n)
{
    (void)from;
    (void)sender;
    (void)bytes;
    (void)n;
    assert(!wait && "there is no other rank");
    return false;
}

void pl_mpi_sum(float *x, size_t n)
{
    (void)x, (void)n;
}

void pl_mpi_sum_reals(double *x, int n)
{
    (void)x, (void)n;
}

int pl_mpi_max(int x)
{
    return x;
}

void pl_mpi_abort(int status)
{
    exit(status);
}

void pl_mpi_end(void)
{
}

#endif
