#include "cli/sweep_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/sweep.h"
#include "cli/text_table.h"

static bool is_refused(const struct pl_sweep_view *view, int64_t row)
{
    const struct pl_sweep_column *status = &view->columns[view->n_columns - 1];
    return strcmp(status->text[row], "ok") != 0;
}

static int64_t count_refused(const struct pl_sweep_view *view)
{
    int64_t n = 0;
    for (int64_t i = 0; i < view->n; i++) n += is_refused(view, i);
    return n;
}

/* Text */

static char *cell_text(const struct pl_sweep_column *column, int64_t row)
{
    char text[32];
    if (column->text) return pl_strdup(column->text[row]);
    if (column->i64) return pl_printf("%" PRId64, column->i64[row]);
    double v = column->f64[row];
    if (isnan(v)) return pl_strdup("-");
    if (!strcmp(column->type->units, "s"))
        return pl_strdup(pl_units_format_time(v, text, sizeof text));
    return pl_printf(fabs(v) >= 1000 ? "%.0f" : "%.4g", v);
}

/* The reason of a refused point stands in the place of its results, or in a column of
 * its own where that is asked for. */
static void add_row(const struct pl_sweep_view *view, int64_t row,
                    struct pl_text_table *t)
{
    const struct pl_sweep_column *status = &view->columns[view->n_columns - 1];
    const bool instead = is_refused(view, row) && !status->shown;
    for (int c = 0; c < view->n_columns - 1; c++) {
        const struct pl_sweep_column *column = &view->columns[c];
        if (!column->shown) continue;
        if (instead && !column->type->optional) break; /* not a swept key */
        char *text = cell_text(column, row);
        pl_text_cell(t, "%s", text);
        free(text);
    }
    pl_text_note(t, instead || status->shown ? status->text[row] : "");
}

static void print_meanings(const struct pl_sweep_view *view, FILE *out)
{
    int width = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < view->n_columns; c++) {
            const struct pl_sweep_column *column = &view->columns[c];
            const struct pl_column *type = column->type;
            bool is_short = strcmp(column->label, type->name) != 0;
            if (!column->shown) continue;
            if (pass)
                pl_text_wrap(out, column->label, width + 2, "%s%s%s",
                             is_short ? type->name : "", is_short ? ": " : "",
                             type->long_name);
            else if ((int)strlen(column->label) > width)
                width = (int)strlen(column->label);
        }
}

void pl_sweep_print_text(const struct pl_sweep_answer *a, FILE *out)
{
    struct pl_text_table *t = pl_text_table_new();
    const int last = a->view->n_columns - 1; /* the status */
    for (int c = 0; c <= last; c++) {
        const struct pl_sweep_column *column = &a->view->columns[c];
        if (column->shown || c == last)
            pl_text_table_column(t, column->shown ? column->label : "", column->text,
                                 column->rank);
    }
    for (int64_t i = 0; i < a->n; i++) add_row(a->view, a->rows[i], t);
    pl_text_table_print(t, "--csv and --json have all", out);
    fputc('\n', out);
    print_meanings(a->view, out);
    int64_t refused = count_refused(a->view);
    fprintf(out, "\n%" PRId64 " points", a->view->n);
    if (refused) fprintf(out, ", %" PRId64 " refused", refused);
    if (a->matching < a->view->n) fprintf(out, ", %" PRId64 " match", a->matching);
    if (a->n < a->matching) fprintf(out, ", the first %" PRId64 " shown", a->n);
    fputc('\n', out);
}

/* CSV: a trace of the chosen rows, written by the one CSV writer */

static void copy_column(const struct pl_sweep_answer *a,
                        const struct pl_sweep_column *column, struct pl_trace *t)
{
    const char *name = column->type->name;
    union {
        int64_t i;
        double r;
        const char *text;
    } *cells = pl_alloc((size_t)a->n, sizeof *cells);
    for (int64_t i = 0; i < a->n; i++) {
        if (column->i64)
            cells[i].i = column->i64[a->rows[i]];
        else if (column->f64)
            cells[i].r = column->f64[a->rows[i]];
        else
            cells[i].text = column->text[a->rows[i]];
    }
    if (column->i64)
        pl_trace_i64(t, PL_SWEEP_TABLE, name, a->n, &cells->i);
    else if (column->f64)
        pl_trace_f64(t, PL_SWEEP_TABLE, name, a->n, &cells->r);
    else
        pl_trace_text(t, PL_SWEEP_TABLE, name, a->n, &cells->text);
    free(cells);
}

void pl_sweep_print_csv(const struct pl_sweep_answer *a, FILE *out)
{
    struct pl_trace *t = pl_trace_new();
    for (int c = 0; c < a->view->n_columns; c++)
        copy_column(a, &a->view->columns[c], t);
    pl_trace_csv(t, PL_SWEEP_TABLE, out);
    pl_trace_free(t);
}

void pl_sweep_print_json(const struct pl_sweep_answer *a, FILE *out)
{
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    pl_json_int(&json, "points", a->view->n);
    pl_json_int(&json, "refused", count_refused(a->view));
    pl_json_int(&json, "matching", a->matching);
    pl_json_begin(&json, "rows", '[');
    for (int64_t i = 0; i < a->n; i++) {
        pl_json_begin(&json, NULL, '{');
        for (int c = 0; c < a->view->n_columns; c++) {
            const struct pl_sweep_column *column = &a->view->columns[c];
            if (column->text)
                pl_json_text(&json, column->type->name, column->text[a->rows[i]]);
            else if (column->i64)
                pl_json_int(&json, column->type->name, column->i64[a->rows[i]]);
            else
                pl_json_real(&json, column->type->name, column->f64[a->rows[i]]);
        }
        pl_json_end(&json, '}');
    }
    pl_json_end(&json, ']');
    pl_json_end(&json, '}');
    pl_json_close(&json);
}
