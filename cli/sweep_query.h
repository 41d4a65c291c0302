/* Questions to the table of a sweep: which rows, in which order, how many. */
#ifndef PL_CLI_SWEEP_QUERY_H
#define PL_CLI_SWEEP_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "traces/schema.h"
#include "traces/trace.h"

struct pl_sweep_column {
    const struct pl_column *type;
    char label[48]; /* short name where no other column has it: see label_columns */
    bool shown;     /* in the text table */
    int rank;       /* the highest are left out first, 0 never */
    /* [n]; one of them, by type */
    const int64_t *i64;
    const double *f64;
    const char *const *text;
};

/* Owned: pl_sweep_view_free; the values belong to the trace. */
struct pl_sweep_view {
    int n_columns;
    struct pl_sweep_column *columns;
    int64_t n;
};

/* The columns that a sweep of config will have, without values: questions can be
 * checked before anything is computed. */
void pl_sweep_view_planned(const struct pl_config *config, struct pl_sweep_view *out);
/* Those of a trace. Errors: PL_EINPUT when it holds no sweep; path names it. */
int pl_sweep_view_new(const struct pl_trace *t, const char *path,
                      struct pl_sweep_view *out);
void pl_sweep_view_free(struct pl_sweep_view *view);

struct pl_sweep_query {
    int n_terms, n_orders;
    struct pl_sweep_term *terms;
    struct pl_sweep_order *orders;
};

/* where: "bubble<0.1 and schedule.name=zb-*"; comparisons < <= > >= = != of a column
 * with a number, a duration, another column, or a text (a pattern with * and ?). sort:
 * "schedule.stages,-step_s", - for descending. A column goes by its name or label.
 * Either may be NULL. Columns that are asked for are shown in any case. Errors:
 * PL_EUSAGE naming the option; nearest column. */
int pl_sweep_query_new(struct pl_sweep_view *view, const char *where, const char *sort,
                       struct pl_sweep_query *out);
void pl_sweep_query_free(struct pl_sweep_query *query);

/* Numbers of the rows that fit, in order, at most top (0: all); caller frees *rows.
 * *matching: how many fit. view has the columns that the query was made with. */
int64_t pl_sweep_query_rows(const struct pl_sweep_query *query,
                            const struct pl_sweep_view *view, int64_t top,
                            int64_t **rows, int64_t *matching);

/* Number of a cell that is not text. */
static inline double pl_sweep_number(const struct pl_sweep_column *column, int64_t row)
{
    return column->i64 ? (double)column->i64[row] : column->f64[row];
}

#endif
