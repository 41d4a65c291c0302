/* A trace in memory: attributes and tables of one-dimensional columns, addressed by
 * path. The schema (traces/schema.c) declares every table pattern and column with units
 * and long name; adding a column it does not know is a bug. Files are HDF5,
 * "pipelag-trace 1", defined by `man pipelag-trace`. Owned: pl_trace_free; columns are
 * copied in. */
#ifndef PL_TRACES_TRACE_H
#define PL_TRACES_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pl_trace;

struct pl_trace *pl_trace_new(void);
void pl_trace_free(struct pl_trace *trace);

/* path: "/" or a table's group, e.g. "/arms/adamw+2bw". */
void pl_trace_attr_text(struct pl_trace *t, const char *path, const char *name,
                        const char *value);
void pl_trace_attr_real(struct pl_trace *t, const char *path, const char *name,
                        double value);
void pl_trace_attr_int(struct pl_trace *t, const char *path, const char *name,
                       int64_t value);

/* Column `name` of the table at path, n rows; all columns of a table have equal n. */
void pl_trace_i64(struct pl_trace *t, const char *path, const char *name, int64_t n,
                  const int64_t *data);
void pl_trace_f64(struct pl_trace *t, const char *path, const char *name, int64_t n,
                  const double *data);
void pl_trace_text(struct pl_trace *t, const char *path, const char *name, int64_t n,
                   const char *const *data);

/* Reading: NULL (and *n = 0) or false when absent. Borrowed. */
const int64_t *pl_trace_get_i64(const struct pl_trace *t, const char *path,
                                const char *name, int64_t *n);
const double *pl_trace_get_f64(const struct pl_trace *t, const char *path,
                               const char *name, int64_t *n);
const char *const *pl_trace_get_text(const struct pl_trace *t, const char *path,
                                     const char *name, int64_t *n);
const char *pl_trace_get_attr_text(const struct pl_trace *t, const char *path,
                                   const char *name);
bool pl_trace_get_attr_real(const struct pl_trace *t, const char *path,
                            const char *name, double *value);
bool pl_trace_get_attr_int(const struct pl_trace *t, const char *path, const char *name,
                           int64_t *value);
/* Paths of the tables (groups that hold columns) matching a schema pattern such as
 * "/arms/<arm>/timeline" (NULL: all), in order of insertion; returns the number; paths
 * borrowed, array freed by the caller. */
int pl_trace_tables(const struct pl_trace *t, const char *pattern, const char ***paths);
/* Names of the arms, in file order; array freed by the caller. */
int pl_trace_arms(const struct pl_trace *t, const char ***names);

/* Write whole to a temporary name, sync, rename: the target is whole or untouched.
 * Equal traces give equal bytes. Errors: PL_EIO with path and cause. */
int pl_trace_write(const struct pl_trace *t, const char *path);
/* Read and verify against the schema. Errors: PL_EINPUT (missing, not HDF5, not a
 * pipelag trace, truncated, checksum, column of wrong type or length; object named). */
int pl_trace_read(const char *path, struct pl_trace **out);

/* First difference of two traces as text ("/arms/x/rows/loss[17]: 1.5 vs 1.6"),
 * tolerance relative on reals; NULL when equal. Caller frees. */
char *pl_trace_diff(const struct pl_trace *a, const struct pl_trace *b,
                    double tolerance);

/* h5dump-like overview / CSV of one table (units in the header row). */
void pl_trace_info(const struct pl_trace *t, FILE *out);
int pl_trace_csv(const struct pl_trace *t, const char *path, FILE *out);

#endif
