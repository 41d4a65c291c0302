/* Texts to values: one parser for the YAML reader, --set and the table's defaults. */
#include "base/config_types.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

int pl_utf8_read(const char *text, uint32_t *point)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (n == 0 || s[0] > 0xf4) return 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (n > 1 && c < least[n]) return 0;
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    *point = c;
    return n;
}

int pl_text_check(const char *text, const char *where, const char *key)
{
    uint32_t point;
    for (int n; *text; text += n)
        if (!(n = pl_utf8_read(text, &point)))
            return pl_fail(PL_ECONFIG, "%s: %s is not UTF-8 text", where, key);
    return 0;
}

/* Messages quote values, and a message is one line. */
static int check_line(const char *text, const char *where, const char *key)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return pl_fail(PL_ECONFIG, "%s: %s has a control character", where, key);
    return 0;
}

/* What is meant by "2,4,8" where one value is expected. */
static int fail_list(const struct pl_key *key, const char *text, const char *where)
{
    const char *open = *text == '[' ? "" : "[", *close = *text == '[' ? "" : "]";
    return pl_fail(PL_ECONFIG,
                   "%s: %s is '%s', expected one value; several: 'sweep: {%s: %s%s%s}' "
                   "in a file, for pipelag sweep",
                   where, key->name, text, key->name, open, text, close);
}

static int parse_int(const struct pl_key *key, const char *text, const char *where,
                     struct pl_value *value)
{
    if (strchr(text, ',')) return fail_list(key, text, where);
    const char *p = text + (*text == '-' || *text == '+');
    if (!*p || strspn(p, "0123456789") != strlen(p))
        return pl_fail(
            PL_ECONFIG,
            "%s: %s is '%s', expected an integer in plain decimal digits, such "
            "as 1000",
            where, key->name, text);
    errno = 0;
    long long i = strtoll(text, NULL, 10);
    if (errno || (double)i < key->min || (double)i > key->max)
        return pl_fail(PL_ECONFIG, "%s: %s is %s, expected %.0f to %.0f", where,
                       key->name, text, key->min, key->max);
    value->i = i;
    return 0;
}

static int parse_real(const struct pl_key *key, const char *text, const char *where,
                      struct pl_value *value)
{
    bool nan_ok = !strcmp(key->fallback, "nan");
    if (nan_ok && (!strcmp(text, "nan") || !strcmp(text, ".nan") ||
                   !strcmp(text, "NaN") || !strcmp(text, ".NaN"))) {
        value->r = NAN;
        return 0;
    }
    if (strchr(text, ',')) return fail_list(key, text, where);
    char *end = NULL;
    double r = 0;
    bool plain = *text && strspn(text, "0123456789+-.eE") == strlen(text);
    if (plain) r = strtod(text, &end);
    if (!plain || end == text || *end)
        return pl_fail(PL_ECONFIG, "%s: %s is '%s', expected a number%s", where,
                       key->name, text, nan_ok ? " or nan" : "");
    if (!(r >= key->min && r <= key->max))
        return pl_fail(PL_ECONFIG, "%s: %s is %s, expected %.15g to %.15g", where,
                       key->name, text, key->min, key->max);
    value->r = r;
    return 0;
}

static int parse_bool(const struct pl_key *key, const char *text, const char *where,
                      struct pl_value *value)
{
    static const char *const spellings[][3] = {
        {"no", "No", "NO"},       {"yes", "Yes", "YES"}, {"false", "False", "FALSE"},
        {"true", "True", "TRUE"}, {"off", "Off", "OFF"}, {"on", "On", "ON"}};
    const bool open = !strcmp(key->fallback, "auto");
    if (open && !strcmp(text, "auto")) {
        value->i = -1;
        return 0;
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 3; j++)
            if (!strcmp(text, spellings[i][j])) {
                value->i = i & 1;
                return 0;
            }
    return pl_fail(PL_ECONFIG,
                   "%s: %s is '%s', expected true or false (yes no on off)%s", where,
                   key->name, text, open ? " or auto" : "");
}

static int parse_text(const struct pl_key *key, const char *text, const char *where,
                      struct pl_value *value)
{
    int rc = pl_text_check(text, where, key->name);
    if (rc) return rc;
    const char *const *choices =
        key->type == PL_KEY_NAME ? pl_config_choices(key->name) : NULL;
    for (const char *const *c = choices; c; c++) {
        if (!*c && check_line(text, where, key->name)) return PL_ECONFIG;
        if (!*c && strchr(text, ',')) return fail_list(key, text, where);
        if (!*c) return pl_fail_unknown(PL_ECONFIG, where, key->name, text, choices);
        if (!strcmp(*c, text)) break;
    }
    value->text = pl_strdup(text);
    return 0;
}

static int parse_times(const struct pl_key *key, const char *const *texts, int n,
                       const char *where, struct pl_value *value)
{
    if (n < 1 || n > PL_MAX_LIST)
        return pl_fail(PL_ECONFIG, "%s: %s has %d entries, expected 1 to %d", where,
                       key->name, n, PL_MAX_LIST);
    pl_tick *ticks = PL_NEW(n, pl_tick);
    for (int i = 0; i < n; i++) {
        int rc = pl_units_time(texts[i], &ticks[i]);
        if (rc) rc = pl_fail(rc, "%s: %s: %s", where, key->name, pl_error_text());
        double s = pl_seconds(ticks[i]);
        if (!rc && key->max > 0 && (s < key->min || s > key->max))
            rc = pl_fail(PL_ECONFIG, "%s: %s is %s, expected %.15g s to %.15g s", where,
                         key->name, texts[i], key->min, key->max);
        if (rc) {
            free(ticks);
            return rc;
        }
    }
    value->ticks = ticks;
    value->n_ticks = n;
    return 0;
}

static int parse_by_type(const struct pl_key *key, const char *const *texts, int n,
                         const char *where, struct pl_value *value)
{
    bool list = key->type == PL_KEY_TIMES;
    if (n != 1 && !list)
        return pl_fail(PL_ECONFIG,
                       "%s: %s is a list, expected one value (under sweep: each of "
                       "them, for pipelag sweep)",
                       where, key->name);
    for (int i = 0; i < n && key->type != PL_KEY_TEXT && key->type != PL_KEY_NAME;
         i++) {
        int rc = check_line(texts[i], where, key->name);
        if (rc) return rc;
    }
    switch (key->type) {
    case PL_KEY_INT:
        return parse_int(key, texts[0], where, value);
    case PL_KEY_REAL:
        return parse_real(key, texts[0], where, value);
    case PL_KEY_BOOL:
        return parse_bool(key, texts[0], where, value);
    case PL_KEY_TEXT:
    case PL_KEY_NAME:
        return parse_text(key, texts[0], where, value);
    case PL_KEY_TIME:
    case PL_KEY_TIMES:
        return parse_times(key, texts, n, where, value);
    }
    assert(!"type of key");
    return 0;
}

int pl_value_parse(int key, const char *const *texts, int n, const char *where,
                   struct pl_value *value)
{
    struct pl_value parsed = {0};
    int rc = parse_by_type(&pl_keys[key], texts, n, where, &parsed);
    if (rc) return rc;
    parsed.where = pl_strdup(where);
    *value = parsed;
    return 0;
}

void pl_value_copy(struct pl_value *to, const struct pl_value *from)
{
    *to = *from;
    if (from->text) to->text = pl_strdup(from->text);
    if (from->where) to->where = pl_strdup(from->where);
    if (!from->ticks) return;
    to->ticks = PL_NEW(from->n_ticks, pl_tick);
    memcpy(to->ticks, from->ticks, (size_t)from->n_ticks * sizeof *to->ticks);
}

void pl_value_clear(struct pl_value *value)
{
    free(value->text);
    free(value->ticks);
    free(value->where);
    *value = (struct pl_value){0};
}

int pl_seeds_parse(const char *const *texts, int n, const char *where, uint64_t **seeds)
{
    if (n < 1 || n > PL_MAX_LIST)
        return pl_fail(PL_ECONFIG, "%s: seeds has %d entries, expected 1 to %d", where,
                       n, PL_MAX_LIST);
    uint64_t *list = PL_NEW(n, uint64_t);
    for (int i = 0; i < n; i++) {
        errno = 0;
        bool digits = *texts[i] && strspn(texts[i], "0123456789") == strlen(texts[i]);
        int rc = check_line(texts[i], where, "seeds");
        list[i] = digits ? strtoull(texts[i], NULL, 10) : 0;
        if (!rc && (!digits || errno))
            rc = pl_fail(PL_ECONFIG,
                         "%s: seed '%s', expected an integer from 0 to %" PRIu64, where,
                         texts[i], UINT64_MAX);
        for (int j = 0; j < i && !rc; j++)
            if (list[j] == list[i])
                rc = pl_fail(PL_ECONFIG, "%s: seed %s is given twice", where, texts[i]);
        if (rc) {
            free(list);
            return rc;
        }
    }
    *seeds = list;
    return 0;
}
