#include "cli/sweep_query.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/sweep.h"

enum op { LE, GE, NE, EQ2, LT, GT, EQ, N_OPS };
static const char *const op_texts[N_OPS] = {"<=", ">=", "!=", "==", "<", ">", "="};

struct pl_sweep_term {
    int column, op;
    int other; /* column to compare with, or -1 */
    double number;
    char *text; /* of a text column */
};

struct pl_sweep_order {
    int column;
    bool descending;
};

/* The columns */

/* As in traces/sweep.h; swept keys: 1. */
static int shown(const char *name)
{
#define SHOWN(id, unit, shown, long_name) {#id, shown},
    static const struct {
        const char *name;
        int shown;
    } results[] = {PL_SWEEP_RESULTS(SHOWN)};
#undef SHOWN
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (!strcmp(results[i].name, name)) return results[i].shown;
    return strcmp(name, PL_SWEEP_STATUS) != 0;
}

static struct pl_sweep_column *add(struct pl_sweep_view *view,
                                   const struct pl_column *type)
{
    view->columns =
        pl_grow(view->columns, (size_t)view->n_columns + 1, sizeof *view->columns);
    struct pl_sweep_column *column = &view->columns[view->n_columns++];
    *column = (struct pl_sweep_column){.type = type};
    return column;
}

/* The last part of a key (stages), or the first where the last is name or preset
 * (schedule). */
static void write_label(struct pl_sweep_column *column)
{
    const char *name = column->type->name, *dot = strrchr(name, '.');
    size_t n = sizeof column->label;
    bool list =
        column->type->type == PL_COLUMN_TEXT && dot && !strcmp(dot, PL_SWEEP_LIST);
    if (!dot || list)
        snprintf(column->label, n, "%s", name);
    else if (!strcmp(dot, ".name") || !strcmp(dot, ".preset"))
        snprintf(column->label, n, "%.*s", (int)(dot - name), name);
    else
        snprintf(column->label, n, "%s", dot + 1);
}

static void label_columns(struct pl_sweep_view *view)
{
    bool *shared = PL_NEW(view->n_columns, bool);
    for (int i = 0; i < view->n_columns; i++) write_label(&view->columns[i]);
    for (int i = 0; i < view->n_columns; i++)
        for (int j = 0; j < view->n_columns; j++)
            shared[i] |=
                i != j && !strcmp(view->columns[i].label, view->columns[j].label);
    for (int i = 0; i < view->n_columns; i++)
        if (shared[i])
            snprintf(view->columns[i].label, sizeof view->columns[i].label, "%s",
                     view->columns[i].type->name);
    free(shared);
}

static bool is_swept(const struct pl_config *config, const char *name)
{
    for (int a = 0; a < pl_config_n_swept(config); a++) {
        const char *key = pl_config_swept(config, a);
        size_t n = strlen(key);
        if (!strcmp(key, name)) return true;
        if (!strncmp(key, name, n) && !strcmp(name + n, PL_SWEEP_LIST))
            return pl_config_swept_lists(config, a);
    }
    return false;
}

void pl_sweep_view_planned(const struct pl_config *config, struct pl_sweep_view *out)
{
    const struct pl_column *c = pl_schema_table(PL_SWEEP_TABLE)->columns;
    *out = (struct pl_sweep_view){0};
    for (; c->name; c++)
        if (!c->optional || is_swept(config, c->name)) add(out, c);
    label_columns(out);
}

int pl_sweep_view_new(const struct pl_trace *t, const char *path,
                      struct pl_sweep_view *out)
{
    const struct pl_column *c = pl_schema_table(PL_SWEEP_TABLE)->columns;
    *out = (struct pl_sweep_view){0};
    for (; c->name; c++) {
        int64_t n[3];
        const int64_t *i64 = pl_trace_get_i64(t, PL_SWEEP_TABLE, c->name, &n[0]);
        const double *f64 = pl_trace_get_f64(t, PL_SWEEP_TABLE, c->name, &n[1]);
        const char *const *text = pl_trace_get_text(t, PL_SWEEP_TABLE, c->name, &n[2]);
        if (!i64 && !f64 && !text) continue;
        struct pl_sweep_column *column = add(out, c);
        column->i64 = i64;
        column->f64 = f64;
        column->text = text;
        out->n = i64 ? n[0] : f64 ? n[1] : n[2];
        column->shown = !f64 && shown(c->name);
        for (int64_t i = 0; f64 && i < n[1] && !column->shown; i++)
            column->shown = !isnan(f64[i]) && shown(c->name);
        if (column->shown) column->rank = shown(c->name) - 1;
    }
    label_columns(out);
    if (out->n_columns) return 0;
    return pl_fail(PL_EINPUT,
                   "%s: a trace without a sweep, expected the result of "
                   "pipelag sweep",
                   path);
}

void pl_sweep_view_free(struct pl_sweep_view *view)
{
    free(view->columns);
    *view = (struct pl_sweep_view){0};
}

/* Number of a column, by name or label; -1. */
static int find_column(const struct pl_sweep_view *view, const char *name)
{
    for (int i = 0; i < view->n_columns; i++)
        if (!strcmp(view->columns[i].type->name, name) ||
            !strcmp(view->columns[i].label, name))
            return i;
    return -1;
}

static int want_column(struct pl_sweep_view *view, const char *option, const char *name,
                       int *column)
{
    *column = find_column(view, name);
    if (*column >= 0) {
        view->columns[*column].shown = true;
        view->columns[*column].rank = 0;
        return 0;
    }
    const char **names = PL_NEW(view->n_columns + 1, const char *);
    for (int i = 0; i < view->n_columns; i++) names[i] = view->columns[i].type->name;
    int code = pl_fail_unknown(PL_EUSAGE, option, "column", name, names);
    free(names);
    return code;
}

/* Parsing */

static char *trimmed(const char *text, size_t n)
{
    while (n && *text == ' ') text++, n--;
    while (n && text[n - 1] == ' ') n--;
    if (n >= 2 && (*text == '"' || *text == '\'') && text[n - 1] == *text)
        text++, n -= 2;
    return pl_printf("%.*s", (int)n, text);
}

/* A number in the column's unit, or the name of a column. */
static int parse_number(struct pl_sweep_view *view, struct pl_sweep_term *term)
{
    const struct pl_column *type = view->columns[term->column].type;
    char *end;
    pl_tick ticks;
    term->number = strtod(term->text, &end);
    if (end != term->text && !*end && !isnan(term->number)) return 0;
    if (!strcmp(type->units, "s") && !pl_units_time(term->text, &ticks)) {
        term->number = pl_seconds(ticks);
        return 0;
    }
    term->other = find_column(view, term->text);
    if (term->other >= 0 && view->columns[term->other].type->type != PL_COLUMN_TEXT)
        return 0;
    return pl_fail(PL_EUSAGE, "--where: %s is compared with '%s', expected a number%s",
                   type->name, term->text,
                   strcmp(type->units, "s") ? "" : " of seconds or a duration");
}

static int parse_term(struct pl_sweep_view *view, const char *text, size_t n,
                      struct pl_sweep_term *term)
{
    char *whole = trimmed(text, n);
    size_t at = strcspn(whole, "<>=!");
    *term = (struct pl_sweep_term){.op = 0, .other = -1};
    while (term->op < N_OPS &&
           strncmp(whole + at, op_texts[term->op], strlen(op_texts[term->op])))
        term->op++;
    int code = 0;
    if (term->op == N_OPS || !at)
        code = pl_fail(PL_EUSAGE,
                       "--where: '%s', expected COLUMN OP VALUE with one of < <= > >= "
                       "= !=",
                       whole);
    if (!code) {
        char *name = trimmed(whole, at);
        const char *value = whole + at + strlen(op_texts[term->op]);
        term->text = trimmed(value, strlen(value));
        code = want_column(view, "--where", name, &term->column);
        free(name);
    }
    free(whole);
    if (code) return code;
    if (view->columns[term->column].type->type != PL_COLUMN_TEXT)
        return parse_number(view, term);
    if (term->op == EQ || term->op == EQ2 || term->op == NE) return 0;
    return pl_fail(PL_EUSAGE, "--where: %s is text, expected = or != instead of %s",
                   view->columns[term->column].type->name, op_texts[term->op]);
}

static int parse_where(struct pl_sweep_view *view, const char *where,
                       struct pl_sweep_query *out)
{
    for (const char *p = where;;) {
        const char *next = strstr(p, " and ");
        out->terms = pl_grow(out->terms, (size_t)out->n_terms + 1, sizeof *out->terms);
        struct pl_sweep_term *term = &out->terms[out->n_terms++];
        int code = parse_term(view, p, next ? (size_t)(next - p) : strlen(p), term);
        if (code || !next) return code;
        p = next + 5;
    }
}

static int parse_sort(struct pl_sweep_view *view, const char *sort,
                      struct pl_sweep_query *out)
{
    for (const char *p = sort;;) {
        size_t n = strcspn(p, ",");
        char *name = trimmed(p, n);
        bool down = *name == '-';
        out->orders =
            pl_grow(out->orders, (size_t)out->n_orders + 1, sizeof *out->orders);
        struct pl_sweep_order *order = &out->orders[out->n_orders++];
        *order = (struct pl_sweep_order){.descending = down};
        int code = want_column(view, "--sort", name + down, &order->column);
        free(name);
        if (code || !p[n]) return code;
        p += n + 1;
    }
}

int pl_sweep_query_new(struct pl_sweep_view *view, const char *where, const char *sort,
                       struct pl_sweep_query *out)
{
    *out = (struct pl_sweep_query){0};
    int code = where ? parse_where(view, where, out) : 0;
    if (!code && sort) code = parse_sort(view, sort, out);
    if (code) pl_sweep_query_free(out);
    return code;
}

void pl_sweep_query_free(struct pl_sweep_query *query)
{
    for (int i = 0; i < query->n_terms; i++) free(query->terms[i].text);
    free(query->terms);
    free(query->orders);
    *query = (struct pl_sweep_query){0};
}

/* Answering */

static bool holds(const struct pl_sweep_term *term, const struct pl_sweep_view *view,
                  int64_t row)
{
    const struct pl_sweep_column *column = &view->columns[term->column];
    if (column->type->type == PL_COLUMN_TEXT) {
        const char *text = column->text[row];
        bool same = !strcmp(term->text, text) || !fnmatch(term->text, text, 0);
        return same == (term->op != NE);
    }
    double a = pl_sweep_number(column, row), b = term->number;
    if (term->other >= 0) b = pl_sweep_number(&view->columns[term->other], row);
    switch ((enum op)term->op) {
    case LE:
        return a <= b;
    case GE:
        return a >= b;
    case LT:
        return a < b;
    case GT:
        return a > b;
    case NE:
        return a != b && !isnan(a) && !isnan(b); /* what is not there fits nothing */
    default:
        return a == b;
    }
}

struct ordering {
    const struct pl_sweep_query *query;
    const struct pl_sweep_view *view;
};

static int compare_cells(const struct pl_sweep_column *column, int64_t i, int64_t j,
                         bool descending)
{
    int order;
    if (column->type->type == PL_COLUMN_TEXT) {
        order = strcmp(column->text[i], column->text[j]);
    } else {
        double a = pl_sweep_number(column, i), b = pl_sweep_number(column, j);
        if (isnan(a) || isnan(b)) return isnan(a) - isnan(b); /* last either way */
        order = (a > b) - (a < b);
    }
    return descending ? -order : order;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct ordering *o = context;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    for (int k = 0; k < o->query->n_orders; k++) {
        const struct pl_sweep_order *by = &o->query->orders[k];
        int order = compare_cells(&o->view->columns[by->column], i, j, by->descending);
        if (order) return order;
    }
    return (i > j) - (i < j);
}

int64_t pl_sweep_query_rows(const struct pl_sweep_query *query,
                            const struct pl_sweep_view *view, int64_t top,
                            int64_t **rows, int64_t *matching)
{
    int64_t n = 0;
    *rows = PL_NEW(view->n, int64_t);
    for (int64_t i = 0; i < view->n; i++) {
        bool fits = true;
        for (int k = 0; k < query->n_terms && fits; k++)
            fits = holds(&query->terms[k], view, i);
        if (fits) (*rows)[n++] = i;
    }
    struct ordering ordering = {query, view};
    if (query->n_orders)
        qsort_r(*rows, (size_t)n, sizeof **rows, compare_rows, &ordering);
    *matching = n;
    return top && top < n ? top : n;
}
