#include "cli/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/setup.h"

const char *const pl_measured_names[PL_N_MEASURED] = {"step", "forward", "backward"};

enum { MAX_BYTES = 1 << 24, MAX_ROWS = 65536, MAX_FIELDS = 128 };

/* What each field of a row is. */
enum { IS_KEY = PL_N_MEASURED, IS_NOTE, IS_NOTHING };
struct header {
    int n, what[MAX_FIELDS]; /* a measured time or one of the above */
    const char *name[MAX_FIELDS], *unit[MAX_FIELDS];
};

struct reader {
    const char *path, *base;
    const struct pl_cmd_settings *settings;
    int line;
    struct header header;
    struct pl_measured *out;
};

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n && strchr(" \t\r", text[n - 1])) text[--n] = 0;
    return text;
}

/* The cell at text in place, without its quotes; returns what follows the comma, or
 * NULL. *bad: a quote that is not closed or text after it. */
static char *cut_cell(char *text, char **cell, bool *bad)
{
    text += strspn(text, " \t");
    *cell = text;
    if (*text != '"') {
        char *comma = strchr(text, ',');
        if (comma) *comma++ = 0;
        *cell = trim(text);
        return comma;
    }
    char *to = text++;
    while (*text && (*text != '"' || text[1] == '"')) {
        text += *text == '"';
        *to++ = *text++;
    }
    *bad |= *text != '"';
    if (*text) text++;
    *to = 0;
    text += strspn(text, " \t\r");
    *bad |= *text && *text != ',';
    return *text ? text + 1 : NULL;
}

static int cut_line(const struct reader *r, char *line, char **cell, int *n)
{
    bool bad = false;
    *n = 0;
    for (char *at = line; at;) {
        if (*n == MAX_FIELDS)
            return pl_fail(PL_EINPUT, "%s:%d: more than %d columns", r->path, r->line,
                           MAX_FIELDS);
        at = cut_cell(at, &cell[(*n)++], &bad);
        if (bad)
            return pl_fail(PL_EINPUT, "%s:%d: column %d: quotes that do not enclose it",
                           r->path, r->line, *n);
    }
    return PL_OK;
}

static int find_measured(const char *name)
{
    for (int i = 0; i < PL_N_MEASURED; i++)
        if (!strcmp(pl_measured_names[i], name)) return i;
    return -1;
}

/* Errors: a name that is nothing, with the nearest. */
static int classify(const struct reader *r, int column, const char *name, int *what)
{
    static const char *names[1024];
    int n = 0;
    *what = find_measured(name);
    if (*what >= 0) return PL_OK;
    *what = !strcmp(name, "note") ? IS_NOTE : IS_NOTHING;
    if (*what == IS_NOTE || !strncmp(name, "x-", 2)) return PL_OK;
    for (; pl_keys[n].name && n < 1000; n++) {
        names[n] = pl_keys[n].name;
        if (!strcmp(names[n], name)) *what = IS_KEY;
    }
    if (*what == IS_KEY) return PL_OK;
    for (int i = 0; i < PL_N_MEASURED; i++) names[n++] = pl_measured_names[i];
    names[n] = NULL;
    char *where = pl_printf("%s:%d: column %d", r->path, r->line, column + 1);
    const char *nearest = pl_nearest(name, names);
    int rc = nearest ? pl_fail_unknown(PL_EINPUT, where, "key", name, names)
                     : pl_fail(PL_EINPUT,
                               "%s: unknown key '%s', expected a configuration key "
                               "(pipelag config --keys), step, forward, backward or "
                               "note",
                               where, name);
    free(where);
    return rc;
}

static int cut_unit(const struct reader *r, int column, char *name, const char **unit)
{
    char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
    pl_tick one;
    *unit = "";
    if (!open) return PL_OK;
    *open = 0;
    if (close) *close = 0;
    trim(name);
    if (!close || close[1])
        return pl_fail(PL_EINPUT, "%s:%d: column %d: unit without ']' at its end",
                       r->path, r->line, column + 1);
    *unit = trim(open + 1);
    char *text = pl_printf("1 %s", *unit);
    int rc = pl_units_time(text, &one);
    free(text);
    if (rc)
        return pl_fail(PL_EINPUT,
                       "%s:%d: column %d: unit '%s', expected s, ms, us, ns, ps, min "
                       "or h",
                       r->path, r->line, column + 1, *unit);
    return PL_OK;
}

static int read_header(struct reader *r, char **cell, int n)
{
    struct header *h = &r->header;
    bool times = false;
    h->n = n;
    r->out->key = PL_NEW(n, char *);
    for (int i = 0; i < n; i++) {
        int rc = cut_unit(r, i, cell[i], &h->unit[i]);
        if (!rc) rc = classify(r, i, cell[i], &h->what[i]);
        if (rc) return rc;
        if (*h->unit[i] && h->what[i] >= PL_N_MEASURED)
            return pl_fail(PL_EINPUT, "%s:%d: column %d: %s takes no unit", r->path,
                           r->line, i + 1, cell[i]);
        for (int k = 0; k < i; k++)
            if (!strcmp(cell[i], h->name[k]))
                return pl_fail(PL_EINPUT, "%s:%d: two columns '%s'", r->path, r->line,
                               cell[i]);
        h->name[i] = cell[i];
        times |= h->what[i] < PL_N_MEASURED;
        if (h->what[i] == IS_KEY) r->out->key[r->out->n_keys++] = pl_strdup(cell[i]);
    }
    if (times) return PL_OK;
    return pl_fail(PL_EINPUT,
                   "%s:%d: no column of measured times, expected step, forward or "
                   "backward, such as 'step [ms]'",
                   r->path, r->line);
}

static int read_time(const struct reader *r, int column, const char *cell,
                     double *seconds)
{
    pl_tick ticks = 0;
    *seconds = NAN;
    if (!*cell) return PL_OK;
    char *text = pl_printf("%s %s", cell, r->header.unit[column]);
    int rc = pl_units_time(trim(text), &ticks);
    free(text);
    if (rc || ticks <= 0) {
        char *why = rc ? pl_strdup(pl_error_text()) : pl_printf("%s", cell);
        rc = pl_fail(PL_EINPUT, "%s:%d: column %d: %s: %s%s", r->path, r->line,
                     column + 1, r->header.name[column], why,
                     rc ? "" : ", expected a time above 0");
        free(why);
        return rc;
    }
    *seconds = pl_seconds(ticks);
    return PL_OK;
}

static int read_cell(const struct reader *r, int column, const char *cell,
                     struct pl_measured_row *row)
{
    int what = r->header.what[column], rc = PL_OK;
    if (what < PL_N_MEASURED) return read_time(r, column, cell, &row->measured[what]);
    for (const char *c = cell; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return pl_fail(PL_EINPUT, "%s:%d: column %d has a control character",
                           r->path, r->line, column + 1);
    if (what == IS_NOTE) row->note = pl_strdup(cell);
    if (what != IS_KEY || !*cell) return PL_OK;
    char *origin = pl_printf("%s:%d: column %d", r->path, r->line, column + 1);
    rc = pl_config_set_value(row->config, r->header.name[column], cell, origin);
    free(origin);
    return rc;
}

static int set_rest(const struct reader *r, struct pl_config *config)
{
    int rc = PL_OK;
    for (int i = 0; i < r->settings->n && !rc; i++) {
        const struct pl_cmd_setting *s = &r->settings->settings[i];
        rc = s->key ? pl_config_set_value(config, s->key, s->value, s->origin)
                    : pl_config_set(config, s->value, s->origin);
    }
    return rc ? rc : pl_config_resolve(config);
}

static int read_row(struct reader *r, char **cell, int n)
{
    if (n != r->header.n)
        return pl_fail(PL_EINPUT, "%s:%d: %d columns, the first row has %d", r->path,
                       r->line, n, r->header.n);
    if (r->out->n == MAX_ROWS)
        return pl_fail(PL_EINPUT, "%s:%d: more than %d rows", r->path, r->line,
                       MAX_ROWS);
    r->out->row = pl_grow(r->out->row, (size_t)r->out->n + 1, sizeof *r->out->row);
    struct pl_measured_row *row = &r->out->row[r->out->n++];
    *row = (struct pl_measured_row){.line = r->line, .config = pl_config_new()};
    for (int i = 0; i < PL_N_MEASURED; i++) row->measured[i] = NAN;
    int rc = pl_config_set_value(row->config, "cost.type", "roofline", "calibrate");
    if (!rc && r->base) rc = pl_config_load(row->config, r->base);
    for (int i = 0; i < n && !rc; i++) rc = read_cell(r, i, cell[i], row);
    if (!rc) rc = set_rest(r, row->config);
    if (rc) return rc;
    bool any = false;
    for (int i = 0; i < PL_N_MEASURED; i++) any |= !isnan(row->measured[i]);
    if (any) return PL_OK;
    return pl_fail(PL_EINPUT, "%s:%d: no measured time", r->path, r->line);
}

static int read_lines(struct reader *r, char *text)
{
    char *cell[MAX_FIELDS], *next = text;
    if (!strncmp(next, "\xef\xbb\xbf", 3)) next += 3; /* byte order mark */
    int rc = PL_OK, n;
    while (next && !rc) {
        char *line = next, *end = strchr(line, '\n');
        next = end ? end + 1 : NULL;
        if (end) *end = 0;
        r->line++;
        line = trim(line);
        if (!*line || *line == '#') continue;
        rc = cut_line(r, line, cell, &n);
        if (!rc) rc = r->header.n ? read_row(r, cell, n) : read_header(r, cell, n);
    }
    if (!rc && !r->out->n)
        rc = pl_fail(PL_EINPUT, "%s: no measured rows, expected one a run", r->path);
    return rc;
}

int pl_measured_read(const char *path, const char *base,
                     const struct pl_cmd_settings *settings, struct pl_measured *out)
{
    struct pl_measured made = {.n = 0};
    struct reader reader = {.path = path, .base = base, .settings = settings};
    char *text;
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, &text, &n);
    if (rc) return rc;
    reader.out = &made;
    made.path = pl_strdup(path);
    rc = strlen(text) == n ? read_lines(&reader, text)
                           : pl_fail(PL_EINPUT, "%s: not a CSV file", path);
    free(text);
    if (rc)
        pl_measured_free(&made);
    else
        *out = made;
    return rc;
}

/* Seconds of one microbatch's ops of a kind on the busiest device. */
static double busiest(const struct pl_setup *s, int kind)
{
    const struct pl_layout *layout = &s->sim.schedule.layout;
    double most = 0;
    for (int d = 0; d < layout->P; d++) {
        pl_tick sum = 0;
        for (int c = 0; c < layout->C; c++)
            if (layout->device[c] == d) sum += pl_cost_time(&s->cost, kind, c);
        most = fmax(most, pl_seconds(sum));
    }
    return most;
}

int pl_measured_predict(const struct pl_measured *data, int row,
                        double predicted[PL_N_MEASURED])
{
    struct pl_setup setup;
    int rc = pl_setup_simulate(data->row[row].config, &setup);
    if (rc) {
        char *why = pl_strdup(pl_error_text());
        rc = pl_fail(rc, "%s:%d: %s", data->path, data->row[row].line, why);
        free(why);
        return rc;
    }
    predicted[PL_STEP] = setup.sim.metrics.step_s;
    predicted[PL_FORWARD] = busiest(&setup, PL_OP_F);
    predicted[PL_BACKWARD] = busiest(&setup, PL_OP_BW);
    pl_setup_free(&setup);
    return PL_OK;
}

void pl_measured_free(struct pl_measured *data)
{
    for (int i = 0; i < data->n; i++) {
        free(data->row[i].note);
        pl_config_free(data->row[i].config);
    }
    for (int i = 0; i < data->n_keys; i++) free(data->key[i]);
    free(data->key);
    free(data->row);
    free(data->path);
    *data = (struct pl_measured){.n = 0};
}
