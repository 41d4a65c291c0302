/* A trace as text: overview and CSV (RFC 4180 quoting, LF line ends). */
#include "traces/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

static void print_attr(const struct pl_attr *attr, int indent, FILE *out)
{
    fprintf(out, "%*s%s = ", indent, "", attr->name);
    if (attr->type == PL_ATTR_REAL) {
        fprintf(out, "%.10g\n", attr->real);
    } else if (attr->type == PL_ATTR_INT) {
        fprintf(out, "%" PRId64 "\n", attr->integer);
    } else {
        size_t line = strcspn(attr->text, "\n");
        fprintf(out, "%.*s", line > 100 ? 100 : (int)line, attr->text);
        if (attr->text[line] || line > 100)
            fprintf(out, " ... (%zu bytes)", strlen(attr->text));
        fputc('\n', out);
    }
}

static void print_group(const struct pl_trace *t, const char *path, int indent,
                        FILE *out)
{
    const struct pl_group *group = pl_trace_group(t, path);
    const char *name = strrchr(path, '/') + 1;
    fprintf(out, "%*s%s", indent, "", *name ? name : "/");
    if (group && group->n_values) {
        fprintf(out, "  %" PRId64 " rows {", group->values[0].n);
        for (int i = 0; i < group->n_values; i++) {
            const struct pl_column *c = group->values[i].column;
            fprintf(out, "%s%s", i ? ", " : "", c->name);
            if (*c->units && strcmp(c->units, "1")) fprintf(out, " [%s]", c->units);
        }
        fputc('}', out);
    }
    fputc('\n', out);
    for (int i = 0; group && i < group->n_attrs; i++)
        print_attr(&group->attrs[i], indent + 4, out);
    char **names;
    int n = pl_trace_children(t, path, &names);
    for (int i = 0; i < n; i++) {
        char *child = pl_trace_join(path, names[i]);
        print_group(t, child, indent + 4, out);
        free(child);
        free(names[i]);
    }
    free(names);
}

void pl_trace_info(const struct pl_trace *t, FILE *out)
{
    fprintf(out, "%s, schema version %d.%d\n", PL_TRACE_CONVENTIONS, PL_TRACE_MAJOR,
            PL_TRACE_MINOR);
    print_group(t, "/", 0, out);
}

static void print_quoted(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_cell(const struct pl_values *values, int64_t i, FILE *out)
{
    if (values->text)
        print_quoted(values->text[i], out);
    else if (values->f64 && isnan(values->f64[i]))
        fputs("nan", out); /* without the sign that some libraries print */
    else if (values->f64)
        fprintf(out, "%.17g", values->f64[i]);
    else if (values->column->type == PL_COLUMN_KIND)
        fputs(pl_kind_names[values->i64[i]], out);
    else
        fprintf(out, "%" PRId64, values->i64[i]);
}

static int unknown_table(const struct pl_trace *t, const char *path)
{
    const char **names = PL_NEW(t->n + 1, const char *);
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->groups[i]->n_values) names[n++] = t->groups[i]->path;
    int status = n ? pl_fail_unknown(PL_EINPUT, "trace", "table", path, names)
                   : pl_fail(PL_EINPUT, "trace: no table '%s': it holds none", path);
    free(names);
    return status;
}

int pl_trace_csv(const struct pl_trace *t, const char *path, FILE *out)
{
    const struct pl_group *group = pl_trace_group(t, path);
    if (!group || !group->n_values) return unknown_table(t, path);
    for (int i = 0; i < group->n_values; i++) {
        const struct pl_column *c = group->values[i].column;
        fprintf(out, "%s%s", i ? "," : "", c->name);
        if (*c->units && strcmp(c->units, "1")) fprintf(out, " [%s]", c->units);
    }
    fputc('\n', out);
    for (int64_t row = 0; row < group->values[0].n; row++)
        for (int i = 0; i < group->n_values; i++) {
            print_cell(&group->values[i], row, out);
            fputc(i + 1 < group->n_values ? ',' : '\n', out);
        }
    return 0;
}
