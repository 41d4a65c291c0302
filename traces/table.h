/* Inside of pl_trace, for the files of traces/ that walk it. Everything is owned by the
 * trace. */
#ifndef PL_TRACES_TABLE_H
#define PL_TRACES_TABLE_H

#include "traces/schema.h"
#include "traces/trace.h"

enum pl_attr_type { PL_ATTR_TEXT, PL_ATTR_REAL, PL_ATTR_INT };

struct pl_attr {
    char *name;
    enum pl_attr_type type;
    char *text; /* NULL unless PL_ATTR_TEXT */
    double real;
    int64_t integer;
};

struct pl_values { /* one column */
    const struct pl_column *column;
    int64_t n;
    int64_t *i64; /* I64 and KIND */
    double *f64;
    char **text;
};

struct pl_group {
    char *path;
    const struct pl_table_type *type; /* NULL when it holds attributes only */
    int n_attrs, n_values;
    struct pl_attr *attrs;
    struct pl_values *values;
};

struct pl_trace {
    int n;
    struct pl_group **groups; /* in order of insertion */
};

const struct pl_group *pl_trace_group(const struct pl_trace *t, const char *path);
const struct pl_values *pl_group_values(const struct pl_group *group, const char *name);
const struct pl_attr *pl_group_attr(const struct pl_group *group, const char *name);

/* Names of the groups directly under path ("/" or "/arms"), also of those that exist
 * only as parents, in order of first mention. Caller frees the names and the array. */
int pl_trace_children(const struct pl_trace *t, const char *path, char ***names);
char *pl_trace_join(const char *path, const char *name); /* caller frees */

#endif
