/* The HDF5 door: the only file that includes hdf5.h. A file is written into memory and
 * read from disk. Paths are absolute. The functions return -1 without a message unless
 * said otherwise: the caller names the object. Owned: pl_h5_close. */
#ifndef PL_TRACES_H5_H
#define PL_TRACES_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/schema.h"

struct pl_h5;

/* "1.10.8" */
const char *pl_h5_version(void);

struct pl_h5 *pl_h5_create(void); /* NULL on failure */
/* The file's bytes; caller frees. */
int pl_h5_image(struct pl_h5 *h5, void **bytes, size_t *n);
void pl_h5_close(struct pl_h5 *h5); /* NULL is fine */

/* With the number of members to come: HDF5 1.10 takes seconds to move some 256 of them
 * out of the group's header, so many are kept outside from the first on. */
int pl_h5_put_group(struct pl_h5 *h5, const char *path, int links);
/* On a group or dataset. An int attribute has n values: scalar when n is 1. */
int pl_h5_put_text(struct pl_h5 *h5, const char *path, const char *name,
                   const char *value);
int pl_h5_put_real(struct pl_h5 *h5, const char *path, const char *name, double value);
int pl_h5_put_ints(struct pl_h5 *h5, const char *path, const char *name, int n,
                   const int64_t *values);
/* A dataset with one text, for a text too long for an attribute. */
int pl_h5_put_long_text(struct pl_h5 *h5, const char *path, const char *value);
/* A column with its units and long_name: n cells of int64_t, double, int8_t (KIND) or
 * `cell` bytes each (TEXT, padded with NUL). */
int pl_h5_put_column(struct pl_h5 *h5, const char *path, const struct pl_column *column,
                     int64_t n, size_t cell, const void *cells);

/* Errors: PL_EINPUT with message (missing, not HDF5, truncated). */
int pl_h5_open(const char *path, struct pl_h5 **out);

enum pl_h5_kind { PL_H5_GROUP, PL_H5_COLUMN, PL_H5_OTHER, PL_H5_BROKEN };
/* Calls each for the links of a group in order of creation; stops at a non-zero result
 * and returns it. */
int pl_h5_links(struct pl_h5 *h5, const char *path,
                int (*each)(void *context, const char *name, enum pl_h5_kind kind),
                void *context);
/* Likewise for attributes: text, real or n ints; others are skipped. */
struct pl_h5_attr {
    const char *name, *text;
    const double *real;
    int n;
    const int64_t *ints;
};
int pl_h5_attrs(struct pl_h5 *h5, const char *path,
                int (*each)(void *context, const struct pl_h5_attr *attr),
                void *context);

/* Read a column into cells as above; the caller frees them. On failure *why says what
 * is wrong (constant). */
int pl_h5_get_column(struct pl_h5 *h5, const char *path, const struct pl_column *column,
                     int64_t *n, size_t *cell, void **cells, const char **why);

#endif
