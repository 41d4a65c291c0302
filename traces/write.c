/* Trace to file. Groups go depth first in order of first mention, columns in the order
 * of the schema, so that reading and writing again gives the same bytes. */
#include "traces/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "traces/h5.h"

enum { LONG_TEXT = 32768 }; /* HDF5 keeps attributes under 64 KiB */

static int write_attr(struct pl_h5 *h5, const char *path, const struct pl_attr *attr,
                      bool long_texts)
{
    bool is_long = attr->type == PL_ATTR_TEXT && strlen(attr->text) > LONG_TEXT;
    if (is_long != long_texts) return 0;
    if (is_long) {
        char *member = pl_trace_join(path, attr->name);
        int status = pl_h5_put_long_text(h5, member, attr->text);
        free(member);
        return status;
    }
    switch (attr->type) {
    case PL_ATTR_TEXT:
        return pl_h5_put_text(h5, path, attr->name, attr->text);
    case PL_ATTR_REAL:
        return pl_h5_put_real(h5, path, attr->name, attr->real);
    default:
        return pl_h5_put_ints(h5, path, attr->name, 1, &attr->integer);
    }
}

/* Cells of a text or kind column as the file wants them; *cell is their size. */
static char *pack(const struct pl_values *values, size_t *cell)
{
    *cell = 1;
    for (int64_t i = 0; values->text && i < values->n; i++)
        if (strlen(values->text[i]) > *cell) *cell = strlen(values->text[i]);
    char *cells = pl_alloc((size_t)values->n, *cell);
    for (int64_t i = 0; i < values->n; i++)
        if (values->text)
            memcpy(cells + (size_t)i * *cell, values->text[i], strlen(values->text[i]));
        else
            cells[i] = (char)values->i64[i];
    return cells;
}

static int write_column(struct pl_h5 *h5, const char *path,
                        const struct pl_values *values)
{
    const struct pl_column *c = values->column;
    if (c->type == PL_COLUMN_I64)
        return pl_h5_put_column(h5, path, c, values->n, 8, values->i64);
    if (c->type == PL_COLUMN_F64)
        return pl_h5_put_column(h5, path, c, values->n, 8, values->f64);
    size_t cell;
    char *cells = pack(values, &cell);
    int status = pl_h5_put_column(h5, path, c, values->n, cell, cells);
    free(cells);
    return status;
}

static int write_columns(struct pl_h5 *h5, const struct pl_group *group)
{
    const struct pl_table_type *type = group->type;
    int status = 0;
    if (type->signal) status = pl_h5_put_text(h5, group->path, "signal", type->signal);
    if (!status && type->axes)
        status = pl_h5_put_text(h5, group->path, "axes", type->axes);
    for (const struct pl_column *c = type->columns; !status && c->name; c++) {
        const struct pl_values *values = pl_group_values(group, c->name);
        assert(values || c->optional);
        if (!values) continue;
        assert(values->n == group->values[0].n);
        char *path = pl_trace_join(group->path, c->name);
        status = write_column(h5, path, values);
        free(path);
    }
    return status;
}

static int write_group(struct pl_h5 *h5, const struct pl_trace *t, const char *path)
{
    const struct pl_group *group = pl_trace_group(t, path);
    char **names;
    int n = pl_trace_children(t, path, &names);
    int links = n + (group ? group->n_values : 0);
    int status = strcmp(path, "/") ? pl_h5_put_group(h5, path, links) : 0;
    for (int pass = 0; group && pass < 2; pass++)
        for (int i = 0; !status && i < group->n_attrs; i++)
            status = write_attr(h5, path, &group->attrs[i], pass == 1);
    if (!status && group && group->n_values) status = write_columns(h5, group);
    for (int i = 0; i < n; i++) {
        char *child = pl_trace_join(path, names[i]);
        if (!status) status = write_group(h5, t, child);
        free(child);
        free(names[i]);
    }
    free(names);
    return status;
}

static int image(const struct pl_trace *t, void **bytes, size_t *n)
{
    static const int64_t version[] = {PL_TRACE_MAJOR, PL_TRACE_MINOR};
    struct pl_h5 *h5 = pl_h5_create();
    int status = h5 ? 0 : -1;
    if (!status) status = pl_h5_put_text(h5, "/", "Conventions", PL_TRACE_CONVENTIONS);
    if (!status) status = pl_h5_put_ints(h5, "/", "schema_version", 2, version);
    if (!status) status = write_group(h5, t, "/");
    if (!status) status = pl_h5_image(h5, bytes, n);
    pl_h5_close(h5);
    return status;
}

int pl_trace_write(const struct pl_trace *t, const char *path)
{
    void *bytes;
    size_t n;
    if (image(t, &bytes, &n))
        return pl_fail(PL_EIO, "%s: the HDF5 library could not build the trace", path);
    struct pl_file *file = pl_file_create(path);
    if (!file) {
        free(bytes);
        return PL_EIO;
    }
    errno = 0;
    bool whole = fwrite(bytes, 1, n, pl_file_stream(file)) == n;
    int error = errno; /* the commit would only know that something failed */
    free(bytes);
    if (whole) return pl_file_commit(file);
    pl_file_discard(file);
    return pl_fail(PL_EIO, "%s: cannot write: %s", path,
                   error ? strerror(error) : "write error");
}
