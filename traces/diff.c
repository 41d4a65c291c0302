/* First difference of two traces: groups, attributes and columns are matched by name,
 * so their order does not count. NaN equals NaN. */
#include "traces/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool same_real(double a, double b, double tolerance)
{
    if (a == b || (isnan(a) && isnan(b))) return true;
    if (!isfinite(a) || !isfinite(b)) return false;
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static char *attr_text(const struct pl_attr *a)
{
    switch (a->type) {
    case PL_ATTR_TEXT:
        return pl_printf("'%.60s%s'", a->text, strlen(a->text) > 60 ? "..." : "");
    case PL_ATTR_REAL:
        return pl_printf("%.17g", a->real);
    default:
        return pl_printf("%" PRId64, a->integer);
    }
}

static bool same_attr(const struct pl_attr *a, const struct pl_attr *b,
                      double tolerance)
{
    if (a->type != b->type) return false;
    if (a->type == PL_ATTR_TEXT) return !strcmp(a->text, b->text);
    if (a->type == PL_ATTR_REAL) return same_real(a->real, b->real, tolerance);
    return a->integer == b->integer;
}

static char *diff_attr(const char *path, const struct pl_attr *a,
                       const struct pl_attr *b, double tolerance)
{
    char *where = pl_trace_join(path, ""), *result = NULL;
    if (!b) {
        result = pl_printf("%s@%s: only in the first", where, a->name);
    } else if (!same_attr(a, b, tolerance)) {
        char *x = attr_text(a), *y = attr_text(b);
        result = pl_printf("%s@%s: %s vs %s", where, a->name, x, y);
        free(x);
        free(y);
    }
    free(where);
    return result;
}

static char *diff_cell(const char *path, const struct pl_values *a,
                       const struct pl_values *b, int64_t i, double tolerance)
{
    const char *name = a->column->name;
    if (a->text && strcmp(a->text[i], b->text[i]))
        return pl_printf("%s/%s[%" PRId64 "]: '%s' vs '%s'", path, name, i, a->text[i],
                         b->text[i]);
    if (a->f64 && !same_real(a->f64[i], b->f64[i], tolerance))
        return pl_printf("%s/%s[%" PRId64 "]: %.17g vs %.17g", path, name, i, a->f64[i],
                         b->f64[i]);
    if (a->i64 && a->i64[i] != b->i64[i]) {
        if (a->column->type == PL_COLUMN_KIND)
            return pl_printf("%s/%s[%" PRId64 "]: %s vs %s", path, name, i,
                             pl_kind_names[a->i64[i]], pl_kind_names[b->i64[i]]);
        return pl_printf("%s/%s[%" PRId64 "]: %" PRId64 " vs %" PRId64, path, name, i,
                         a->i64[i], b->i64[i]);
    }
    return NULL;
}

static char *diff_values(const char *path, const struct pl_values *a,
                         const struct pl_values *b, double tolerance)
{
    const char *name = a->column->name;
    if (!b) return pl_printf("%s/%s: only in the first", path, name);
    char *result = NULL;
    for (int64_t i = 0; !result && i < a->n && i < b->n; i++)
        result = diff_cell(path, a, b, i, tolerance);
    if (!result && a->n != b->n)
        result =
            pl_printf("%s/%s: %" PRId64 " vs %" PRId64 " rows", path, name, a->n, b->n);
    return result;
}

static char *diff_group(const struct pl_group *a, const struct pl_group *b,
                        double tolerance)
{
    if (!b) return pl_printf("%s: only in the first", a->path);
    char *result = NULL;
    for (int i = 0; !result && i < a->n_attrs; i++)
        result = diff_attr(a->path, &a->attrs[i], pl_group_attr(b, a->attrs[i].name),
                           tolerance);
    for (int i = 0; !result && i < b->n_attrs; i++)
        if (!pl_group_attr(a, b->attrs[i].name))
            result = pl_printf("%s@%s: only in the second", b->path, b->attrs[i].name);
    for (int i = 0; !result && i < a->n_values; i++) {
        const struct pl_values *other = pl_group_values(b, a->values[i].column->name);
        result = diff_values(a->path, &a->values[i], other, tolerance);
    }
    for (int i = 0; !result && i < b->n_values; i++)
        if (!pl_group_values(a, b->values[i].column->name))
            result = pl_printf("%s/%s: only in the second", b->path,
                               b->values[i].column->name);
    return result;
}

char *pl_trace_diff(const struct pl_trace *a, const struct pl_trace *b,
                    double tolerance)
{
    char *result = NULL;
    for (int i = 0; !result && i < a->n; i++)
        result =
            diff_group(a->groups[i], pl_trace_group(b, a->groups[i]->path), tolerance);
    for (int i = 0; !result && i < b->n; i++)
        if (!pl_trace_group(a, b->groups[i]->path))
            result = pl_printf("%s: only in the second", b->groups[i]->path);
    return result;
}
