/* Reading a schedule table: text to cells, cells to ops. Format: custom.h; its source
 * is torch/distributed/pipelining/schedules.py, class _Action. */
#include "sim/custom.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "sim/custom_cell.h"

enum { MAX_BYTES = 1 << 28, MAX_NUMBER = 1 << 20, MAX_QUOTED = 40 };

const char *const pl_act_names[] = {"F",       "I",       "B",           "W",
                                    "SEND_F",  "RECV_F",  "SEND_B",      "RECV_B",
                                    "UNSHARD", "RESHARD", "REDUCE_GRAD", NULL};

static const char pair_name[] = "OVERLAP_F_B";

int pl_table_fail(const struct pl_table *t, const struct pl_cell *cell,
                  const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return pl_fail(PL_EINPUT, "%s:%d:%d: %s", t->path, cell->row + 1, cell->column + 1,
                   text);
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t n = strlen(text);
    while (n && strchr(" \t\r", text[n - 1])) text[--n] = 0;
    return text;
}

/* Digits at *at, which moves past them; -1: none, or too large a number. */
static int number(const char **at)
{
    if (!isdigit((unsigned char)**at)) return -1;
    long value = 0;
    for (; isdigit((unsigned char)**at); ++*at)
        if (value < MAX_NUMBER) value = 10 * value + (**at - '0');
    return value < MAX_NUMBER ? (int)value : -1;
}

static int fail_op(const struct pl_table *t, const struct pl_cell *cell,
                   const char *text, const char *name)
{
    const char *nearest = pl_nearest(name, pl_act_names);
    if (nearest)
        return pl_table_fail(t, cell, "'%.*s': unknown op '%.*s', did you mean '%s'?",
                             MAX_QUOTED, text, MAX_QUOTED, name, nearest);
    return pl_table_fail(t, cell,
                         "'%.*s': unknown op, expected F, I, B, W, SEND_F, RECV_F, "
                         "SEND_B, RECV_B, UNSHARD, RESHARD or REDUCE_GRAD, as in 2F0",
                         MAX_QUOTED, text);
}

/* STAGE OP MICROBATCH into *cell, whose place is set. */
static int parse_act(const struct pl_table *t, const char *text, struct pl_cell *cell)
{
    const char *at = text;
    cell->stage = number(&at);
    if (cell->stage < 0)
        return pl_table_fail(t, cell,
                             "'%.*s': expected a stage from 0 to %d, an op and a "
                             "microbatch, as in 2F0",
                             MAX_QUOTED, text, MAX_NUMBER - 1);
    size_t n = strcspn(at, "0123456789");
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), at);
    for (cell->act = 0; pl_act_names[cell->act]; cell->act++)
        if (!strcmp(name, pl_act_names[cell->act])) break;
    if (cell->act == PL_N_ACT) return fail_op(t, cell, text, name);
    at += n;
    bool wanted = cell->act < PL_ACT_UNSHARD, given = *at;
    cell->micro = given ? number(&at) : -1;
    if (given && !wanted)
        return pl_table_fail(t, cell, "'%.*s': %s takes no microbatch, expected %d%s",
                             MAX_QUOTED, text, name, cell->stage, name);
    if (wanted && (cell->micro < 0 || *at))
        return pl_table_fail(t, cell,
                             "'%.*s': expected a microbatch from 0 to %d after %s",
                             MAX_QUOTED, text, MAX_NUMBER - 1, name);
    return PL_OK;
}

static void append(struct pl_table *t, struct pl_cell cell)
{
    if (t->n == t->room) {
        t->room += t->room / 2 + 64;
        t->cell = pl_grow(t->cell, (size_t)t->room, sizeof *t->cell);
    }
    t->cell[t->n++] = cell;
}

/* (A;B)OVERLAP_F_B: a forward and a full backward, in either order. */
static int parse_pair(struct pl_table *t, char *text, struct pl_cell place)
{
    char *end = strchr(text, ')'), *middle = strchr(text, ';');
    if (!end || !middle || middle > end || strcmp(trim(end + 1), pair_name) ||
        strchr(middle + 1, ';'))
        return pl_table_fail(t, &place, "'%.*s': expected (0F5;7B2)%s", MAX_QUOTED,
                             text, pair_name);
    *end = *middle = 0;
    struct pl_cell a = place, b = place;
    int rc = parse_act(t, trim(text + 1), &a);
    if (!rc) rc = parse_act(t, trim(middle + 1), &b);
    if (rc) return rc;
    if (a.act == PL_ACT_B) {
        struct pl_cell swap = a;
        a = b;
        b = swap;
    }
    if (a.act != PL_ACT_F || b.act != PL_ACT_B)
        return pl_table_fail(
            t, &place,
            "%s of %s and %s, expected a forward F and a full backward "
            "B",
            pair_name, pl_act_names[a.act], pl_act_names[b.act]);
    a.pair = true;
    append(t, a);
    append(t, b);
    return PL_OK;
}

static int parse_cell(struct pl_table *t, char *text, int row, int column)
{
    struct pl_cell cell = {.row = row, .column = column};
    text = trim(text);
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
        text[n - 1] = 0;
        text = trim(text + 1);
    }
    if (!*text) return PL_OK;
    if (*text == '(') return parse_pair(t, text, cell);
    int rc = parse_act(t, text, &cell);
    if (!rc) append(t, cell);
    return rc;
}

static int parse_row(struct pl_table *t, char *line, int row)
{
    int rc = PL_OK, column = 0;
    for (char *at = line; at && !rc; column++) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = 0;
        rc = parse_cell(t, at, row, column);
        at = comma;
    }
    return rc;
}

/* Blank lines at the end are no ranks; any other would be a rank without ops. */
static int parse(struct pl_table *t, char *text)
{
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) text[--n] = 0;
    if (!n)
        return pl_fail(PL_EINPUT, "%s: no ops in the file, one row a rank expected",
                       t->path);
    int rc = PL_OK;
    for (char *at = text; at && !rc; t->rows++) {
        char *end = strchr(at, '\n');
        if (end) *end++ = 0;
        int64_t before = t->n;
        rc = parse_row(t, at, t->rows);
        if (!rc && t->n == before)
            rc = pl_fail(PL_EINPUT,
                         "%s:%d: rank %d has no ops, expected some in each row",
                         t->path, t->rows + 1, t->rows);
        at = end;
    }
    return rc;
}

static struct pl_custom *convert(const struct pl_table *t)
{
    static const int kinds[] = {PL_OP_F, PL_OP_B, PL_OP_BW, PL_OP_W};
    struct pl_custom *out = PL_NEW(1, struct pl_custom);
    *out = (struct pl_custom){.path = pl_strdup(t->path),
                              .P = t->rows,
                              .C = t->C,
                              .m = t->m,
                              .device = t->device,
                              .first = PL_NEW(t->rows + 1, int64_t),
                              .ops = PL_NEW(t->n, struct pl_op),
                              .references = 1};
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const struct pl_cell *c = &t->cell[i];
        if (c->act > PL_ACT_W) continue;
        out->ops[n++] =
            (struct pl_op){c->micro, c->stage, (int16_t)kinds[c->act], c->pair};
        out->first[c->row + 1] = n;
    }
    return out;
}

int pl_custom_read(const char *path, struct pl_custom **out)
{
    struct pl_table t = {.path = path};
    char *text;
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, &text, &n);
    if (rc) return rc;
    if (strlen(text) != n)
        rc = pl_fail(PL_EINPUT, "%s: a NUL byte at %zu, expected a CSV text", path,
                     strlen(text));
    if (!rc) rc = parse(&t, text);
    if (!rc) rc = pl_table_check(&t);
    if (!rc)
        *out = convert(&t);
    else
        free(t.device);
    free(t.cell);
    free(text);
    return rc;
}

struct pl_custom *pl_custom_hold(struct pl_custom *custom)
{
    if (custom) custom->references++;
    return custom;
}

void pl_custom_free(struct pl_custom *custom)
{
    if (!custom || --custom->references > 0) return;
    free(custom->path);
    free(custom->device);
    free(custom->first);
    free(custom->ops);
    free(custom);
}
