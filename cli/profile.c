#include "cli/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "traces/trace.h"

const char *const pl_profile_columns[PL_N_PROFILE] = {"forward", "backward", "weight",
                                                      "update", "link"};

enum { MAX_BYTES = 1 << 24, MAX_ROWS = 65536, MAX_FIELDS = 64 };

/* What each field of a row is. */
struct header {
    int n, column[MAX_FIELDS]; /* -1: passed over */
    char unit[MAX_FIELDS][8];
};

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n && strchr(" \t\r", text[n - 1])) text[--n] = 0;
    return text;
}

/* Cut a line at its commas, in place. */
static int cut(char *line, char **field)
{
    int n = 0;
    for (char *at = line; at && n < MAX_FIELDS; n++) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = 0;
        field[n] = trim(at);
        at = comma;
    }
    return n;
}

static int find_column(const char *name)
{
    for (int i = 0; i < PL_N_PROFILE; i++)
        if (!strcmp(pl_profile_columns[i], name)) return i;
    return -1;
}

static int read_header(const char *path, int line, char **field, int n,
                       struct header *out)
{
    bool seen[PL_N_PROFILE] = {false};
    out->n = n;
    for (int i = 0; i < n; i++) {
        char *unit = strchr(field[i], '[');
        out->unit[i][0] = 0;
        if (unit) {
            *unit++ = 0;
            size_t length = strcspn(unit, "]");
            if (length >= sizeof out->unit[i] || !unit[length])
                return pl_fail(PL_EINPUT, "%s:%d: column %d: unit without ']'", path,
                               line, i + 1);
            memcpy(out->unit[i], unit, length);
            out->unit[i][length] = 0;
        }
        int column = out->column[i] = find_column(trim(field[i]));
        if (column < 0 && *out->unit[i]) { /* a time: more likely a slip than a note */
            const char *names[PL_N_PROFILE + 1] = {NULL};
            char *where = pl_printf("%s:%d", path, line);
            memcpy(names, pl_profile_columns, sizeof pl_profile_columns);
            int code =
                pl_fail_unknown(PL_EINPUT, where, "column", trim(field[i]), names);
            free(where);
            return code;
        }
        if (column < 0) continue;
        if (seen[column])
            return pl_fail(PL_EINPUT, "%s:%d: two columns '%s'", path, line,
                           pl_profile_columns[column]);
        seen[column] = true;
    }
    if (seen[0] && seen[1]) return PL_OK;
    return pl_fail(PL_EINPUT,
                   "%s:%d: expected a first row with the columns forward and backward "
                   "(and weight, update, link), such as 'forward [ms],backward [ms]'",
                   path, line);
}

static int read_row(const char *path, int line, char **field, int n,
                    const struct header *header, struct pl_profile *out)
{
    if (n != header->n)
        return pl_fail(PL_EINPUT, "%s:%d: %d fields, the first row has %d", path, line,
                       n, header->n);
    if (out->n == MAX_ROWS)
        return pl_fail(PL_EINPUT, "%s:%d: more than %d rows", path, line, MAX_ROWS);
    for (int i = 0; i < n; i++) {
        int column = header->column[i];
        if (column < 0) continue;
        char *text = pl_printf("%s %s", field[i], header->unit[i]);
        int rc = pl_units_time(trim(text), &out->column[column][out->n]);
        free(text);
        if (!rc && out->column[column][out->n] < 0)
            rc = pl_fail(PL_ECONFIG, "negative, expected 0 or more");
        if (rc) {
            char *why = pl_strdup(pl_error_text());
            rc = pl_fail(PL_EINPUT, "%s:%d: %s: %s", path, line,
                         pl_profile_columns[column], why);
            free(why);
            return rc;
        }
    }
    out->n++;
    return PL_OK;
}

static int read_csv(const char *path, char *text, struct pl_profile *out)
{
    struct header header = {.n = 0};
    char *field[MAX_FIELDS], *save = text;
    int rc = PL_OK;
    for (int i = 0; i < PL_N_PROFILE; i++) out->column[i] = PL_NEW(MAX_ROWS, pl_tick);
    for (int line = 1; save && !rc; line++) {
        char *start = save, *end = strchr(start, '\n');
        save = end ? end + 1 : NULL;
        if (end) *end = 0;
        start = trim(start);
        if (!*start || *start == '#') continue;
        int n = cut(start, field);
        rc = header.n ? read_row(path, line, field, n, &header, out)
                      : read_header(path, line, field, n, &header);
    }
    if (!rc && !out->n)
        rc = pl_fail(PL_EINPUT, "%s: no rows of costs, expected one a stage", path);
    out->links = 1; /* without a column, 0 for all */
    for (int i = 0; i < header.n; i++)
        if (header.column[i] == PL_N_PROFILE - 1) out->links = out->n;
    return rc;
}

static int copy_column(const struct pl_trace *t, const char *table, const char *name,
                       pl_tick **out, int *n_out)
{
    int64_t n;
    const int64_t *data = pl_trace_get_i64(t, table, name, &n);
    if (!data || n < 1 || n > MAX_ROWS)
        return pl_fail(PL_EINPUT, "the trace has no column %s/%s", table, name);
    *out = PL_NEW(n, pl_tick);
    *n_out = (int)n;
    for (int64_t i = 0; i < n; i++) {
        if (data[i] < 0)
            return pl_fail(PL_EINPUT, "%s/%s: entry %lld is negative", table, name,
                           (long long)i);
        (*out)[i] = data[i];
    }
    return PL_OK;
}

static int read_trace(const char *path, struct pl_profile *out)
{
    struct pl_trace *trace;
    const char **arms;
    int rc = pl_trace_read(path, &trace);
    if (rc) return rc;
    int n_arms = pl_trace_arms(trace, &arms);
    if (!n_arms) rc = pl_fail(PL_EINPUT, "%s: the trace holds no arms", path);
    char *costs = pl_printf("/arms/%s/costs", n_arms ? arms[0] : "");
    char *links = pl_printf("/arms/%s/links", n_arms ? arms[0] : "");
    for (int i = 0; i < PL_N_PROFILE - 1 && !rc; i++)
        rc = copy_column(trace, costs, pl_profile_columns[i], &out->column[i], &out->n);
    if (!rc)
        rc = copy_column(trace, links, "next", &out->column[PL_N_PROFILE - 1],
                         &out->links);
    free(costs);
    free(links);
    free(arms);
    pl_trace_free(trace);
    return rc;
}

int pl_profile_read(const char *path, struct pl_profile *out)
{
    static const char hdf5[] = "\x89HDF\r\n\x1a\n";
    struct pl_profile made = {.n = 0};
    char *text;
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, &text, &n);
    if (rc) return rc;
    if (n >= 8 && !memcmp(text, hdf5, 8))
        rc = read_trace(path, &made);
    else if (strlen(text) != n)
        rc = pl_fail(PL_EINPUT, "%s: neither a CSV file nor a trace", path);
    else
        rc = read_csv(path, text, &made);
    free(text);
    if (rc)
        pl_profile_free(&made);
    else
        *out = made;
    return rc;
}

void pl_profile_free(struct pl_profile *profile)
{
    for (int i = 0; i < PL_N_PROFILE; i++) free(profile->column[i]);
    *profile = (struct pl_profile){.n = 0};
}
