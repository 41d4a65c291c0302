#include "traces/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct pl_trace *pl_trace_new(void)
{
    return PL_NEW(1, struct pl_trace);
}

static void clear_values(struct pl_values *values)
{
    if (values->text)
        for (int64_t i = 0; i < values->n; i++) free(values->text[i]);
    free(values->text);
    free(values->i64);
    free(values->f64);
}

static void free_group(struct pl_group *group)
{
    for (int i = 0; i < group->n_attrs; i++) {
        free(group->attrs[i].name);
        free(group->attrs[i].text);
    }
    for (int i = 0; i < group->n_values; i++) clear_values(&group->values[i]);
    free(group->attrs);
    free(group->values);
    free(group->path);
    free(group);
}

void pl_trace_free(struct pl_trace *trace)
{
    if (!trace) return;
    for (int i = 0; i < trace->n; i++) free_group(trace->groups[i]);
    free(trace->groups);
    free(trace);
}

/* Lookup */

const struct pl_group *pl_trace_group(const struct pl_trace *t, const char *path)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->groups[i]->path, path)) return t->groups[i];
    return NULL;
}

const struct pl_values *pl_group_values(const struct pl_group *group, const char *name)
{
    for (int i = 0; i < group->n_values; i++)
        if (!strcmp(group->values[i].column->name, name)) return &group->values[i];
    return NULL;
}

const struct pl_attr *pl_group_attr(const struct pl_group *group, const char *name)
{
    for (int i = 0; i < group->n_attrs; i++)
        if (!strcmp(group->attrs[i].name, name)) return &group->attrs[i];
    return NULL;
}

char *pl_trace_join(const char *path, const char *name)
{
    return pl_printf("%s/%s", strcmp(path, "/") ? path : "", name);
}

int pl_trace_children(const struct pl_trace *t, const char *path, char ***names)
{
    char *prefix = pl_trace_join(path, "");
    size_t length = strlen(prefix);
    int n = 0;
    *names = NULL;
    for (int i = 0; i < t->n; i++) {
        const char *rest = t->groups[i]->path + length;
        if (strncmp(t->groups[i]->path, prefix, length) || !*rest) continue;
        size_t len = strcspn(rest, "/");
        int k = 0;
        while (k < n && (strncmp((*names)[k], rest, len) || (*names)[k][len])) k++;
        if (k < n) continue;
        *names = pl_grow(*names, (size_t)n + 1, sizeof **names);
        (*names)[n++] = pl_printf("%.*s", (int)len, rest);
    }
    free(prefix);
    return n;
}

/* Building */

static struct pl_group *want_group(struct pl_trace *t, const char *path)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->groups[i]->path, path)) return t->groups[i];
    assert(pl_schema_group(path));
    struct pl_group *group = PL_NEW(1, struct pl_group);
    group->path = pl_strdup(path);
    group->type = pl_schema_table(path);
    t->groups = pl_grow(t->groups, (size_t)t->n + 1, sizeof *t->groups);
    return t->groups[t->n++] = group;
}

static struct pl_attr *want_attr(struct pl_trace *t, const char *path, const char *name,
                                 enum pl_attr_type type)
{
    struct pl_group *group = want_group(t, path);
    struct pl_attr *attr = NULL;
    for (int i = 0; i < group->n_attrs; i++)
        if (!strcmp(group->attrs[i].name, name)) attr = &group->attrs[i];
    if (!attr) {
        group->attrs =
            pl_grow(group->attrs, (size_t)group->n_attrs + 1, sizeof *group->attrs);
        attr = &group->attrs[group->n_attrs++];
        *attr = (struct pl_attr){.name = pl_strdup(name)};
    }
    free(attr->text);
    attr->text = NULL;
    attr->type = type;
    return attr;
}

void pl_trace_attr_text(struct pl_trace *t, const char *path, const char *name,
                        const char *value)
{
    char *copy = pl_strdup(value); /* value may be the text it replaces */
    want_attr(t, path, name, PL_ATTR_TEXT)->text = copy;
}

void pl_trace_attr_real(struct pl_trace *t, const char *path, const char *name,
                        double value)
{
    want_attr(t, path, name, PL_ATTR_REAL)->real = value;
}

void pl_trace_attr_int(struct pl_trace *t, const char *path, const char *name,
                       int64_t value)
{
    want_attr(t, path, name, PL_ATTR_INT)->integer = value;
}

static struct pl_values *want_values(struct pl_trace *t, const char *path,
                                     const char *name, int64_t n)
{
    assert(n >= 0);
    struct pl_group *group = want_group(t, path);
    assert(group->type);
    const struct pl_column *column = pl_schema_column(group->type, name);
    assert(column);
    struct pl_values *values = NULL;
    for (int i = 0; i < group->n_values; i++)
        if (group->values[i].column == column) values = &group->values[i];
    if (!values) {
        group->values =
            pl_grow(group->values, (size_t)group->n_values + 1, sizeof *group->values);
        values = &group->values[group->n_values++];
    } else {
        clear_values(values);
    }
    *values = (struct pl_values){.column = column, .n = n};
    return values;
}

void pl_trace_i64(struct pl_trace *t, const char *path, const char *name, int64_t n,
                  const int64_t *data)
{
    struct pl_values *values = want_values(t, path, name, n);
    assert(values->column->type == PL_COLUMN_I64 ||
           values->column->type == PL_COLUMN_KIND);
    values->i64 = PL_NEW(n, int64_t);
    if (n) memcpy(values->i64, data, (size_t)n * sizeof *data);
}

void pl_trace_f64(struct pl_trace *t, const char *path, const char *name, int64_t n,
                  const double *data)
{
    struct pl_values *values = want_values(t, path, name, n);
    assert(values->column->type == PL_COLUMN_F64);
    values->f64 = PL_NEW(n, double);
    if (n) memcpy(values->f64, data, (size_t)n * sizeof *data);
}

void pl_trace_text(struct pl_trace *t, const char *path, const char *name, int64_t n,
                   const char *const *data)
{
    struct pl_values *values = want_values(t, path, name, n);
    assert(values->column->type == PL_COLUMN_TEXT);
    values->text = PL_NEW(n, char *);
    for (int64_t i = 0; i < n; i++) values->text[i] = pl_strdup(data[i]);
}

/* Reading */

static const struct pl_values *find(const struct pl_trace *t, const char *path,
                                    const char *name, int64_t *n)
{
    const struct pl_group *group = pl_trace_group(t, path);
    const struct pl_values *values = group ? pl_group_values(group, name) : NULL;
    if (n) *n = values ? values->n : 0;
    return values;
}

const int64_t *pl_trace_get_i64(const struct pl_trace *t, const char *path,
                                const char *name, int64_t *n)
{
    const struct pl_values *values = find(t, path, name, n);
    return values ? values->i64 : NULL;
}

const double *pl_trace_get_f64(const struct pl_trace *t, const char *path,
                               const char *name, int64_t *n)
{
    const struct pl_values *values = find(t, path, name, n);
    return values ? values->f64 : NULL;
}

const char *const *pl_trace_get_text(const struct pl_trace *t, const char *path,
                                     const char *name, int64_t *n)
{
    const struct pl_values *values = find(t, path, name, n);
    return values ? (const char *const *)values->text : NULL;
}

static const struct pl_attr *find_attr(const struct pl_trace *t, const char *path,
                                       const char *name, enum pl_attr_type type)
{
    const struct pl_group *group = pl_trace_group(t, path);
    const struct pl_attr *attr = group ? pl_group_attr(group, name) : NULL;
    return attr && attr->type == type ? attr : NULL;
}

const char *pl_trace_get_attr_text(const struct pl_trace *t, const char *path,
                                   const char *name)
{
    const struct pl_attr *attr = find_attr(t, path, name, PL_ATTR_TEXT);
    return attr ? attr->text : NULL;
}

bool pl_trace_get_attr_real(const struct pl_trace *t, const char *path,
                            const char *name, double *value)
{
    const struct pl_attr *attr = find_attr(t, path, name, PL_ATTR_REAL);
    if (attr) *value = attr->real;
    return attr;
}

bool pl_trace_get_attr_int(const struct pl_trace *t, const char *path, const char *name,
                           int64_t *value)
{
    const struct pl_attr *attr = find_attr(t, path, name, PL_ATTR_INT);
    if (attr) *value = attr->integer;
    return attr;
}

int pl_trace_tables(const struct pl_trace *t, const char *pattern, const char ***paths)
{
    int n = 0;
    *paths = PL_NEW(t->n, const char *);
    for (int i = 0; i < t->n; i++)
        if (t->groups[i]->n_values &&
            (!pattern || pl_schema_match(pattern, t->groups[i]->path)))
            (*paths)[n++] = t->groups[i]->path;
    return n;
}

int pl_trace_arms(const struct pl_trace *t, const char ***names)
{
    char **arms;
    int n = pl_trace_children(t, "/arms", &arms);
    size_t bytes = 0;
    for (int i = 0; i < n; i++) bytes += strlen(arms[i]) + 1;
    /* one block: the pointers, then the names */
    *names = pl_alloc((size_t)n * sizeof **names + bytes, 1);
    char *text = (char *)(*names + n);
    for (int i = 0; i < n; i++) {
        (*names)[i] = strcpy(text, arms[i]);
        text += strlen(text) + 1;
        free(arms[i]);
    }
    free(arms);
    return n;
}
