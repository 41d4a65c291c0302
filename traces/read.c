/* File to trace, verified against the schema. Members that the schema does not know are
 * skipped: a reader of version 1 reads every 1.x. */
#include "traces/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "traces/h5.h"

struct reader {
    struct pl_h5 *h5;
    struct pl_trace *trace;
    const char *file; /* for messages */
    const char *path; /* group being read */
    bool conventions, version;
};

static int read_group(struct reader *r, const char *path);

static int on_attr(void *context, const struct pl_h5_attr *attr)
{
    struct reader *r = context;
    bool root = !strcmp(r->path, "/");
    if (root && !strcmp(attr->name, "Conventions")) {
        if (!attr->text || strcmp(attr->text, PL_TRACE_CONVENTIONS))
            return pl_fail(PL_EINPUT, "%s: /Conventions is '%s', expected '%s'",
                           r->file, attr->text ? attr->text : "not a text",
                           PL_TRACE_CONVENTIONS);
        r->conventions = true;
        return 0;
    }
    if (root && !strcmp(attr->name, "schema_version")) {
        if (attr->n != 2 || attr->ints[0] != PL_TRACE_MAJOR)
            return pl_fail(PL_EINPUT, "%s: /schema_version is not of major version %d",
                           r->file, PL_TRACE_MAJOR);
        r->version = true;
        return 0;
    }
    if (!strcmp(attr->name, "signal") || !strcmp(attr->name, "axes")) return 0;
    if (attr->text)
        pl_trace_attr_text(r->trace, r->path, attr->name, attr->text);
    else if (attr->real)
        pl_trace_attr_real(r->trace, r->path, attr->name, *attr->real);
    else if (attr->n == 1)
        pl_trace_attr_int(r->trace, r->path, attr->name, attr->ints[0]);
    return 0;
}

static int keep_kinds(struct reader *r, const char *path, const char *name, int64_t n,
                      const int8_t *cells)
{
    int64_t *kinds = PL_NEW(n, int64_t);
    int status = 0;
    for (int64_t i = 0; !status && i < n; i++) {
        kinds[i] = cells[i];
        if (cells[i] < 0 || cells[i] >= PL_N_KINDS)
            status = pl_fail(PL_EINPUT, "%s: %s[%" PRId64 "] is %d, not a kind of op",
                             r->file, path, i, cells[i]);
    }
    if (!status) pl_trace_i64(r->trace, r->path, name, n, kinds);
    free(kinds);
    return status;
}

static void keep_texts(struct reader *r, const char *name, int64_t n, size_t cell,
                       const char *cells)
{
    char **texts = PL_NEW(n, char *);
    for (int64_t i = 0; i < n; i++)
        texts[i] = pl_printf("%.*s", (int)cell, cells + (size_t)i * cell);
    pl_trace_text(r->trace, r->path, name, n, (const char *const *)texts);
    for (int64_t i = 0; i < n; i++) free(texts[i]);
    free(texts);
}

static int keep(struct reader *r, const char *path, const struct pl_column *column,
                int64_t n, size_t cell, const void *cells)
{
    const struct pl_group *group = pl_trace_group(r->trace, r->path);
    if (group && group->n_values && group->values[0].n != n)
        return pl_fail(PL_EINPUT, "%s: %s: %" PRId64 " rows, but %s has %" PRId64,
                       r->file, path, n, group->values[0].column->name,
                       group->values[0].n);
    switch (column->type) {
    case PL_COLUMN_KIND:
        return keep_kinds(r, path, column->name, n, cells);
    case PL_COLUMN_I64:
        pl_trace_i64(r->trace, r->path, column->name, n, cells);
        return 0;
    case PL_COLUMN_F64:
        pl_trace_f64(r->trace, r->path, column->name, n, cells);
        return 0;
    case PL_COLUMN_TEXT:
        keep_texts(r, column->name, n, cell, cells);
    }
    return 0;
}

static int read_column(struct reader *r, const char *path,
                       const struct pl_column *column)
{
    int64_t n;
    size_t cell;
    void *cells;
    const char *why;
    if (pl_h5_get_column(r->h5, path, column, &n, &cell, &cells, &why))
        return pl_fail(PL_EINPUT, "%s: %s: %s", r->file, path, why);
    int status = keep(r, path, column, n, cell, cells);
    free(cells);
    return status;
}

/* A dataset outside the tables is a text too long for an attribute, or not ours. */
static int read_long_text(struct reader *r, const char *path, const char *name)
{
    static const struct pl_column text = {"", PL_COLUMN_TEXT, "", "", false};
    int64_t n;
    size_t cell;
    void *cells;
    const char *why;
    if (pl_h5_get_column(r->h5, path, &text, &n, &cell, &cells, &why))
        return strncmp(why, "damaged", 7)
                   ? 0
                   : pl_fail(PL_EINPUT, "%s: %s: %s", r->file, path, why);
    if (n == 1) {
        char *value = pl_printf("%.*s", (int)cell, (char *)cells);
        pl_trace_attr_text(r->trace, r->path, name, value);
        free(value);
    }
    free(cells);
    return 0;
}

static int on_link(void *context, const char *name, enum pl_h5_kind kind)
{
    struct reader *r = context;
    const struct pl_table_type *type = pl_schema_table(r->path);
    const struct pl_column *column = type ? pl_schema_column(type, name) : NULL;
    char *path = pl_trace_join(r->path, name);
    int status = 0;
    if (kind == PL_H5_BROKEN) {
        status = pl_fail(PL_EINPUT, "%s: %s: damaged: cannot open", r->file, path);
    } else if (column) {
        status =
            kind == PL_H5_COLUMN
                ? read_column(r, path, column)
                : pl_fail(PL_EINPUT, "%s: %s: not a readable one-dimensional column",
                          r->file, path);
    } else if (pl_schema_group(path)) {
        status =
            kind == PL_H5_GROUP
                ? read_group(r, path)
                : pl_fail(PL_EINPUT, "%s: %s: not a readable group", r->file, path);
    } else if (kind == PL_H5_COLUMN && !type) {
        status = read_long_text(r, path, name);
    }
    free(path);
    return status;
}

static int check_columns(struct reader *r)
{
    const struct pl_table_type *type = pl_schema_table(r->path);
    const struct pl_group *group = pl_trace_group(r->trace, r->path);
    for (const struct pl_column *c = type ? type->columns : NULL; c && c->name; c++)
        if (!c->optional && (!group || !pl_group_values(group, c->name)))
            return pl_fail(PL_EINPUT, "%s: %s: column '%s' is missing", r->file,
                           r->path, c->name);
    return 0;
}

static int read_group(struct reader *r, const char *path)
{
    const char *above = r->path;
    r->path = path;
    int status = pl_h5_attrs(r->h5, path, on_attr, r);
    if (status == -1)
        status =
            pl_fail(PL_EINPUT, "%s: %s: cannot read the attributes", r->file, path);
    if (!status && !above && !(r->conventions && r->version))
        status =
            pl_fail(PL_EINPUT, "%s: HDF5 but not a pipelag trace: no attribute /%s",
                    r->file, r->conventions ? "schema_version" : "Conventions");
    if (!status) {
        status = pl_h5_links(r->h5, path, on_link, r);
        if (status == -1)
            status =
                pl_fail(PL_EINPUT, "%s: %s: cannot read the members", r->file, path);
    }
    if (!status) status = check_columns(r);
    r->path = above;
    return status;
}

int pl_trace_read(const char *path, struct pl_trace **out)
{
    struct reader r = {.file = path};
    int status = pl_h5_open(path, &r.h5);
    if (status) return status;
    r.trace = pl_trace_new();
    status = read_group(&r, "/");
    pl_h5_close(r.h5);
    if (status)
        pl_trace_free(r.trace);
    else
        *out = r.trace;
    return status;
}
