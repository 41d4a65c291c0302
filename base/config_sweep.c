/* Points of a sweep: the product of the swept keys, last key fastest. Values were
 * parsed when the file was read; a key that --set fixed keeps that one value. */
#include "base/config_types.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

int pl_config_n_swept(const struct pl_config *config)
{
    return config->n_swept;
}

static const struct pl_axis *get_axis(const struct pl_config *config, int axis)
{
    assert(axis >= 0 && axis < config->n_swept);
    return &config->swept[axis];
}

static int key_of(const struct pl_axis *axis)
{
    return axis->labels[0].overrides[0].key;
}

const char *pl_config_swept(const struct pl_config *config, int axis)
{
    return get_axis(config, axis)->name;
}

int pl_config_n_values(const struct pl_config *config, int axis)
{
    const struct pl_axis *a = get_axis(config, axis);
    return config->values[key_of(a)].pinned ? 1 : a->n;
}

bool pl_config_swept_lists(const struct pl_config *config, int axis)
{
    const struct pl_axis *a = get_axis(config, axis);
    const struct pl_value *pinned = &config->values[key_of(a)];
    if (pinned->pinned) return pinned->n_ticks > 1;
    for (int l = 0; l < a->n; l++)
        if (a->labels[l].overrides[0].value.n_ticks > 1) return true;
    return false;
}

int64_t pl_config_n_points(const struct pl_config *config)
{
    int64_t n = 1;
    for (int a = 0; a < config->n_swept; a++) {
        int64_t values = pl_config_n_values(config, a);
        if (n > INT64_MAX / values) return INT64_MAX;
        n *= values;
    }
    return n;
}

int pl_config_point(const struct pl_config *config, int64_t point,
                    struct pl_config **work)
{
    assert(point >= 0 && point < pl_config_n_points(config));
    bool resolve = false;
    if (!*work) *work = pl_config_copy_plain(config);
    for (int a = config->n_swept - 1; a >= 0; a--) {
        const struct pl_axis *axis = &config->swept[a];
        int n = pl_config_n_values(config, a), key = key_of(axis);
        const struct pl_value *to = &axis->labels[point % n].overrides[0].value;
        point /= n;
        if (config->values[key].pinned) continue;
        struct pl_value *value = &(*work)->values[key];
        resolve |= pl_key_is_preset(key) && strcmp(value->text, to->text) != 0;
        pl_value_clear(value);
        pl_value_copy(value, to);
    }
    return resolve ? pl_config_resolve(*work) : 0;
}

void pl_swept_append(struct pl_axis *axis, int key, struct pl_value *value)
{
    if (!(axis->n & (axis->n - 1))) /* 0, 1, 2, 4, 8 ...: room for as many again */
        axis->labels = pl_grow(axis->labels, axis->n ? 2 * (size_t)axis->n : 1,
                               sizeof *axis->labels);
    struct pl_label *label = &axis->labels[axis->n++];
    *label = (struct pl_label){.name = pl_value_text(key, value), .n = 1};
    label->overrides = PL_NEW(1, struct pl_override);
    label->overrides[0] = (struct pl_override){key, *value};
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int pl_swept_check(const struct pl_axis *axis, const char *where)
{
    const char **names = PL_NEW(axis->n, const char *);
    int rc = 0;
    for (int i = 0; i < axis->n; i++) names[i] = axis->labels[i].name;
    qsort(names, (size_t)axis->n, sizeof *names, compare_texts);
    for (int i = 1; !rc && i < axis->n; i++)
        if (!strcmp(names[i - 1], names[i]))
            rc = pl_fail(PL_ECONFIG, "%s: sweep: %s has the value %s twice", where,
                         axis->name, names[i]);
    free(names);
    return rc;
}

bool pl_range_is(const char *text)
{
    return strstr(text, "..") != NULL;
}

/* Decimal digits at *text, which moves behind them; -1 when there are none. */
static int64_t read_digits(const char **text)
{
    size_t n = strspn(*text, "0123456789");
    if (!n || n > 18) return -1;
    int64_t value = strtoll(*text, NULL, 10);
    *text += n;
    return value;
}

int pl_range_parse(const char *text, const char *where, const char *key,
                   int64_t **values, int *n)
{
    const char *p = text;
    int64_t from = read_digits(&p), to = -1, step = 1;
    char how = '+';
    if (from >= 0 && !strncmp(p, "..", 2)) {
        p += 2;
        to = read_digits(&p);
    }
    p += strspn(p, " ");
    if (to >= 0 && (*p == '+' || *p == 'x')) {
        how = *p++;
        step = read_digits(&p);
    }
    if (to < from || from < 0 || *p || step < 1 ||
        (how == 'x' && (step < 2 || from < 1)))
        return pl_fail(PL_ECONFIG,
                       "%s: %s is '%s', expected a range A..B, A..B +STEP or A..B "
                       "xFACTOR with A <= B",
                       where, key, text);
    *values = NULL;
    *n = 0;
    for (int64_t v = from; v <= to; v = how == 'x' ? v * step : v + step) {
        if (*n == PL_MAX_SWEPT) {
            free(*values);
            return pl_fail(PL_ECONFIG, "%s: %s: '%s' has more than %d values", where,
                           key, text, PL_MAX_SWEPT);
        }
        if (!(*n & (*n - 1))) /* full: a power of two */
            *values = pl_grow(*values, *n ? 2 * (size_t)*n : 1, sizeof **values);
        (*values)[(*n)++] = v;
        if (v > INT64_MAX / 2 / step) break;
    }
    return 0;
}
