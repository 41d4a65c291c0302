#include "cli/text_table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct column {
    char *heading;
    bool left, out; /* out: left out for want of width */
    int rank, width;
    size_t broken; /* bytes of the heading's first line; all: one line */
};

struct pl_text_table {
    int n_columns;
    struct column *columns;
    size_t n_cells;
    struct cell {
        char *text; /* NULL: under a note */
        bool note;  /* of any length, up to the end of the row */
    } * cells;      /* row after row */
};

/* Characters of UTF-8. */
static int width_of(const char *text, size_t bytes)
{
    int n = 0;
    for (size_t i = 0; i < bytes; i++) n += (text[i] & 0xc0) != 0x80;
    return n;
}

struct pl_text_table *pl_text_table_new(void)
{
    return PL_NEW(1, struct pl_text_table);
}

void pl_text_table_column(struct pl_text_table *t, const char *heading, bool left,
                          int rank)
{
    assert(!t->n_cells);
    t->columns = pl_grow(t->columns, (size_t)t->n_columns + 1, sizeof *t->columns);
    t->columns[t->n_columns++] =
        (struct column){.heading = pl_strdup(heading), .left = left, .rank = rank};
}

static void add(struct pl_text_table *t, char *text, bool note)
{
    t->cells = pl_grow(t->cells, t->n_cells + 1, sizeof *t->cells);
    t->cells[t->n_cells++] = (struct cell){text, note};
}

static char *formatted(const char *format, va_list list)
{
    char *text = NULL;
    int n = vasprintf(&text, format, list);
    assert(n >= 0);
    return text;
}

void pl_text_cell(struct pl_text_table *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add(t, formatted(format, list), false);
    va_end(list);
}

void pl_text_note(struct pl_text_table *t, const char *text)
{
    add(t, pl_strdup(text), true);
    while (t->n_cells % (size_t)t->n_columns) add(t, NULL, false);
}

/* Where the heading breaks best: after a space, slash or underscore near its middle. */
static size_t break_at(const char *heading)
{
    size_t n = strlen(heading), best = n;
    for (size_t i = 2; i + 1 < n; i++) {
        size_t longer = i > n - i ? i : n - i;
        if (strchr(" /_", heading[i - 1]) &&
            longer < (best > n - best ? best : n - best))
            best = i;
    }
    return best;
}

/* Of the widest cell; -1: none has a text, notes of columns before the last apart. */
static int cells_width(const struct pl_text_table *t, int c)
{
    int width = -1;
    for (size_t i = (size_t)c; i < t->n_cells; i += (size_t)t->n_columns) {
        const struct cell *cell = &t->cells[i];
        if (!cell->text || !*cell->text || (cell->note && c + 1 < t->n_columns))
            continue;
        int w = cell->note ? 0 : width_of(cell->text, strlen(cell->text));
        if (w > width) width = w;
    }
    return width;
}

/* Sets the widths; returns the table's. */
static int lay_out(struct pl_text_table *t, int gap, bool two_lines)
{
    int sum = -gap;
    for (int c = 0; c < t->n_columns; c++) {
        struct column *column = &t->columns[c];
        const char *heading = column->heading;
        size_t n = strlen(heading);
        int cells = cells_width(t, c);
        column->broken = n;
        if (two_lines && width_of(heading, n) > cells)
            column->broken = break_at(heading);
        int first = width_of(heading, column->broken);
        int second = width_of(heading + column->broken, n - column->broken);
        column->width = first > second ? first : second;
        if (cells > column->width) column->width = cells;
        if (cells < 0) column->width = 0;
        if (column->width && !column->out) sum += column->width + gap;
    }
    return sum;
}

/* The first of these forms that is narrow enough, else the last; returns its gap. */
static int choose(struct pl_text_table *t)
{
    static const struct {
        int gap;
        bool two_lines;
    } forms[] = {{2, false}, {1, false}, {2, true}, {1, true}};
    for (;;) {
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            if (lay_out(t, forms[i].gap, forms[i].two_lines) <= PL_TEXT_WIDTH)
                return forms[i].gap;
        struct column *last = NULL;
        for (int c = 0; c < t->n_columns; c++) {
            struct column *column = &t->columns[c];
            if (!column->out && column->width && column->rank > (last ? last->rank : 0))
                last = column;
        }
        if (!last) return 1;
        last->out = true;
    }
}

/* A line under construction: spaces are put out before the next text only. */
struct line {
    FILE *out;
    int at, gap;
    bool any;
};

static void put(struct line *line, const struct column *column, const char *text,
                size_t bytes)
{
    if (column->out || !column->width) return;
    int pad = column->width - width_of(text, bytes);
    if (line->any) line->at += line->gap;
    line->any = true;
    int before = column->left ? 0 : pad;
    if (bytes) {
        fprintf(line->out, "%*s%.*s", line->at + before, "", (int)bytes, text);
        line->at = column->left ? pad : 0;
    } else {
        line->at += column->width;
    }
}

static void print_heading(const struct pl_text_table *t, int gap, FILE *out)
{
    bool two = false;
    for (int c = 0; c < t->n_columns; c++)
        two |= t->columns[c].broken < strlen(t->columns[c].heading) &&
               !t->columns[c].out && t->columns[c].width;
    for (int i = two ? 0 : 1; i < 2; i++) {
        struct line line = {out, 0, gap, false};
        for (int c = 0; c < t->n_columns; c++) {
            const struct column *column = &t->columns[c];
            const char *heading = column->heading;
            bool broken = column->broken < strlen(heading);
            size_t bytes = broken ? column->broken : strlen(heading);
            if (!i)
                put(&line, column, heading,
                    broken ? bytes - (heading[bytes - 1] == ' ') : 0);
            else
                put(&line, column, heading + (broken ? bytes : 0),
                    broken ? strlen(heading) - bytes : bytes);
        }
        fputc('\n', out);
    }
}

static void print_rows(const struct pl_text_table *t, int gap, FILE *out)
{
    for (size_t row = 0; row < t->n_cells; row += (size_t)t->n_columns) {
        struct line line = {out, 0, gap, false};
        for (int c = 0; c < t->n_columns; c++) {
            const struct cell *cell = &t->cells[row + (size_t)c];
            if (!cell->text) break;
            if (cell->note && *cell->text)
                fprintf(out, "%*s%s", line.at + (line.any ? gap : 0), "", cell->text);
            else
                put(&line, &t->columns[c], cell->text, strlen(cell->text));
        }
        fputc('\n', out);
    }
}

static void free_table(struct pl_text_table *t)
{
    for (int c = 0; c < t->n_columns; c++) free(t->columns[c].heading);
    for (size_t i = 0; i < t->n_cells; i++) free(t->cells[i].text);
    free(t->columns);
    free(t->cells);
    free(t);
}

void pl_text_table_print(struct pl_text_table *t, const char *elsewhere, FILE *out)
{
    assert(t->n_columns && t->n_cells % (size_t)t->n_columns == 0);
    int gap = choose(t);
    print_heading(t, gap, out);
    print_rows(t, gap, out);
    const char *before = "left out for width: ";
    for (int c = 0; elsewhere && c < t->n_columns; c++) {
        if (!t->columns[c].out) continue;
        fprintf(out, "%s%s", before, t->columns[c].heading);
        before = ", ";
    }
    if (*before == ',') fprintf(out, " (%s)\n", elsewhere);
    free_table(t);
}

void pl_text_wrap(FILE *out, const char *label, int indent, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *all = formatted(format, list);
    va_end(list);
    int at = fprintf(out, "%-*s", indent, label);
    bool first = true;
    for (const char *text = all; *text;) {
        size_t n = strcspn(text, " ");
        int width = width_of(text, n);
        if (!first && at + 1 + width > PL_TEXT_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        fprintf(out, "%s%.*s", first ? "" : " ", (int)n, text);
        at += width + !first;
        first = false;
        text += n + (text[n] == ' ');
    }
    fputc('\n', out);
    free(all);
}
