/* The schema of "pipelag-trace 1": every table, column and enum, with unit and long
 * name. Constants; nothing to own. `man pipelag-trace` says the same in words. */
#ifndef PL_TRACES_SCHEMA_H
#define PL_TRACES_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#define PL_TRACE_CONVENTIONS "pipelag-trace 1"
enum { PL_TRACE_MAJOR = 1, PL_TRACE_MINOR = 0 };

/* Kinds of op; same order and names as enum pl_op_kind (record.c asserts it). */
enum pl_kind { PL_KIND_F, PL_KIND_B, PL_KIND_W, PL_KIND_BW, PL_KIND_U, PL_N_KINDS };
extern const char *const pl_kind_names[PL_N_KINDS + 1]; /* NULL-terminated */

enum pl_column_type { PL_COLUMN_I64, PL_COLUMN_F64, PL_COLUMN_TEXT, PL_COLUMN_KIND };

struct pl_column {
    const char *name;
    enum pl_column_type type;
    const char *units;     /* UDUNITS style; "1" without dimension, "" for text */
    const char *long_name; /* one line */
    bool optional;         /* a table may lack it */
};

struct pl_table_type {
    const char *pattern; /* "/arms/<arm>/timeline": <...> stands for one name */
    const struct pl_column *columns; /* ends with name == NULL */
    const char *signal, *axes;       /* NeXus: what a viewer plots; NULL: nothing */
};
extern const struct pl_table_type pl_table_types[]; /* ends with pattern == NULL */

/* Does path fit pattern? */
bool pl_schema_match(const char *pattern, const char *path);
/* Is path a group of the format: a table or one of its parents? */
bool pl_schema_group(const char *path);
/* Entry for path, or NULL. */
const struct pl_table_type *pl_schema_table(const char *path);
const struct pl_column *pl_schema_column(const struct pl_table_type *type,
                                         const char *name);

#endif
