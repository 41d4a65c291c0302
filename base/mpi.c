#include <config.h>
#include "base/mpi.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

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

/* Ranks that a launcher says it started; 0: no launcher. */
static int launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    int most = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > most) most = atoi(text);
    }
    return most;
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

void pl_mpi_end(void)
{
    if (job_size > 1) MPI_Finalize();
    job_size = 1;
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

void pl_mpi_end(void)
{
}

#endif
