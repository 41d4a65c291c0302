/* Measured steps: a CSV file with one row a run. Columns are configuration keys and the
 * times that were measured, in seconds or with a unit, "step [ms]" or "14.2 s":
 *   step      one optimizer update
 *   forward   of one microbatch on the busiest device
 *   backward  likewise, both gradients and what is recomputed
 * An empty cell leaves a key alone, or says that a time was not measured. A column
 * `note` names the rows, others do not count when their name starts with `x-`. A line
 * that starts with # is a comment; a cell in double quotes may hold commas. */
#ifndef PL_CLI_MEASURED_H
#define PL_CLI_MEASURED_H

#include "base/config.h"
#include "cli/cmd.h"

enum { PL_STEP, PL_FORWARD, PL_BACKWARD, PL_N_MEASURED };
extern const char *const pl_measured_names[PL_N_MEASURED];

struct pl_measured_row {
    int line;
    char *note;                     /* or NULL */
    double measured[PL_N_MEASURED]; /* s; NaN: not measured */
    struct pl_config *config;       /* of the run, resolved */
};

struct pl_measured { /* owned: pl_measured_free */
    char *path;
    int n, n_keys;
    char **key; /* [n_keys] of the columns */
    struct pl_measured_row *row;
};

/* A row's configuration: cost.type roofline, then the file base (NULL: none), then the
 * row, then the settings. Errors: PL_EINPUT and PL_ECONFIG naming path:line, column and
 * cause; those of base. */
int pl_measured_read(const char *path, const char *base,
                     const struct pl_cmd_settings *settings, struct pl_measured *out);
/* What the simulator says of a row: s. Errors: as `pipelag sim`, after path:line. */
int pl_measured_predict(const struct pl_measured *data, int row,
                        double predicted[PL_N_MEASURED]);
void pl_measured_free(struct pl_measured *data);

#endif
