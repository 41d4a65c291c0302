/* Tables and long lines for people, at most PL_TEXT_WIDTH characters wide where their
 * cells allow it: columns are as wide as their cells, headings break into two lines
 * where that helps, and columns of a rank above 0 are left out, the highest rank first,
 * where that does not do. A column without any text is not printed. Owned:
 * pl_text_table_print. */
#ifndef PL_CLI_TEXT_TABLE_H
#define PL_CLI_TEXT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum { PL_TEXT_WIDTH = 100 };

struct pl_text_table;

struct pl_text_table *pl_text_table_new(void);
/* A further column, before the first cell. The heading is copied. */
void pl_text_table_column(struct pl_text_table *table, const char *heading, bool left,
                          int rank);
/* The next cell; rows follow each other as they are full. */
void pl_text_cell(struct pl_text_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The rest of the row is this text, whatever its length. */
void pl_text_note(struct pl_text_table *table, const char *text);
/* Prints and frees the table; unless `elsewhere` is NULL, a line says which columns
 * were left out and where they are. */
void pl_text_table_print(struct pl_text_table *table, const char *elsewhere, FILE *out);

/* "label       text ...", broken between words; lines after the first begin below the
 * text. The label is padded to `indent` characters. */
void pl_text_wrap(FILE *out, const char *label, int indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
