/* The only door to MPI: ranks of a job that exchange blocks of bytes. Built with MPI
 * (configure --with-mpi) or not, a program that no mpirun started has one rank and
 * never touches the library. */
#ifndef PL_BASE_MPI_H
#define PL_BASE_MPI_H

#include <stdbool.h>
#include <stddef.h>

/* Join the job that mpirun (Open MPI, MPICH, Slurm) started, if one did. Errors:
 * PL_EUNSUP when there is a job of several ranks but no MPI in this build. */
int pl_mpi_begin(void);
int pl_mpi_rank(void); /* 0 outside a job */
int pl_mpi_size(void); /* 1 outside a job */
/* What the launcher says of this process, before and after pl_mpi_begin; this build
 * must have MPI when there are several. Errors: as pl_mpi_begin. */
int pl_mpi_launched(int *rank, int *size);
/* Ranks on this machine, this one included; all of them where the launcher does not
 * say. */
int pl_mpi_beside(void);
/* Send n bytes to a rank (waits until they may be overwritten). */
void pl_mpi_send(int to, const void *bytes, size_t n);
/* Take the next message of any rank, or from one (from >= 0). wait: until there is one;
 * otherwise false when there is none now. *bytes is the caller's to free. */
bool pl_mpi_receive(int from, bool wait, int *sender, void **bytes, size_t *n);
/* Together on all ranks: x becomes the sum over ranks, added in rank order, the same
 * bits on each; the largest of a number that each rank has. */
void pl_mpi_sum(float *x, size_t n);
void pl_mpi_sum_reals(double *x, int n);
int pl_mpi_max(int x);
/* End every rank with this exit status; outside a job, this process. */
_Noreturn void pl_mpi_abort(int status);
void pl_mpi_end(void);

#endif
