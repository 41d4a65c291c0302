#include "base/config_types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

static int count_keys(void)
{
    int n = 0;
    while (pl_keys[n].name) n++;
    assert(n <= PL_MAX_KEYS);
    return n;
}

void pl_value_default(int key, struct pl_value *value)
{
    *value = (struct pl_value){0};
    if (pl_keys[key].type == PL_KEY_TEXT || pl_keys[key].type == PL_KEY_NAME) {
        value->text = pl_strdup(pl_keys[key].fallback); /* names may register later */
        return;
    }
    int rc = pl_value_parse(key, &pl_keys[key].fallback, 1, "default", value);
    assert(!rc && "fallback in base/keys.c");
    free(value->where);
    value->where = NULL;
}

struct pl_config *pl_config_new(void)
{
    struct pl_config *config = PL_NEW(1, struct pl_config);
    config->values = PL_NEW(count_keys(), struct pl_value);
    config->title = pl_strdup("");
    config->seeds = PL_NEW(1, uint64_t);
    config->seeds[0] = 1;
    config->n_seeds = 1;
    for (int k = 0; pl_keys[k].name; k++) pl_value_default(k, &config->values[k]);
    return config;
}

void pl_axes_free(struct pl_axis *axes, int n)
{
    for (int a = 0; a < n; a++) {
        for (int l = 0; l < axes[a].n; l++) {
            struct pl_label *label = &axes[a].labels[l];
            for (int o = 0; o < label->n; o++)
                pl_value_clear(&label->overrides[o].value);
            free(label->overrides);
            free(label->name);
        }
        free(axes[a].labels);
        free(axes[a].name);
    }
    free(axes);
}

void pl_config_free(struct pl_config *config)
{
    if (!config) return;
    for (int k = 0; pl_keys[k].name; k++) pl_value_clear(&config->values[k]);
    pl_axes_free(config->axes, config->n_axes);
    pl_axes_free(config->swept, config->n_swept);
    free(config->values);
    free(config->title);
    free(config->seeds);
    free(config);
}

/* Pieces of text between commas, blanks trimmed, in one allocation. */
static char **split(const char *text, int *n)
{
    size_t length = strlen(text), pieces = 1;
    for (const char *p = text; *p; p++) pieces += *p == ',';
    char **list = pl_alloc(1, pieces * sizeof *list + length + 1);
    char *copy = memcpy((char *)(list + pieces), text, length + 1);
    *n = (int)pieces;
    for (size_t i = 0; i < pieces; i++) {
        char *next = strchr(copy, ',');
        if (next) *next = '\0';
        copy += strspn(copy, " ");
        size_t end = strlen(copy);
        while (end && copy[end - 1] == ' ') copy[--end] = '\0';
        list[i] = copy;
        if (next) copy = next + 1;
    }
    return list;
}

static int set_seeds(struct pl_config *config, const char *value, const char *origin)
{
    int n;
    uint64_t *seeds;
    char **list = split(value, &n);
    int rc = pl_seeds_parse((const char *const *)list, n, origin, &seeds);
    free(list);
    if (rc) return rc;
    free(config->seeds);
    config->seeds = seeds;
    config->n_seeds = n;
    config->seeds_given = config->seeds_pinned = true;
    return 0;
}

static int set_title(struct pl_config *config, const char *value, const char *origin)
{
    int rc = pl_text_check(value, origin, "title");
    if (rc) return rc;
    char *title = pl_strdup(value);
    free(config->title);
    config->title = title;
    config->title_given = config->title_pinned = true;
    return 0;
}

int pl_config_set_value(struct pl_config *config, const char *key, const char *value,
                        const char *origin)
{
    if (!strcmp(key, "seeds")) return set_seeds(config, value, origin);
    if (!strcmp(key, "title")) return set_title(config, value, origin);
    if (!strcmp(key, "axes") || !strcmp(key, "sweep"))
        return pl_fail(PL_ECONFIG, "%s: %s can only be given in a file", origin, key);
    int k = pl_key_find(key);
    if (k < 0 && pl_key_is_group(key))
        return pl_fail(PL_ECONFIG, "%s: '%s' is a group of keys, expected %s.KEY=VALUE",
                       origin, key, key);
    if (k < 0) return pl_key_fail_unknown(key, false, origin);
    struct pl_value parsed;
    int n = 1, rc;
    if (pl_keys[k].type == PL_KEY_TIMES) {
        char **list = split(value, &n);
        rc = pl_value_parse(k, (const char *const *)list, n, origin, &parsed);
        free(list);
    } else {
        rc = pl_value_parse(k, &value, 1, origin, &parsed);
    }
    if (rc) return rc;
    pl_value_clear(&config->values[k]);
    config->values[k] = parsed;
    config->values[k].pinned = true;
    return 0;
}

int pl_config_set(struct pl_config *config, const char *assignment, const char *origin)
{
    const char *equal = strchr(assignment, '=');
    if (!equal || equal == assignment)
        return pl_fail(PL_ECONFIG, "%s: '%s', expected KEY=VALUE", origin, assignment);
    char *key = pl_printf("%.*s", (int)(equal - assignment), assignment);
    int rc = pl_config_set_value(config, key, equal + 1, origin);
    free(key);
    return rc;
}

static const struct pl_value *get(const struct pl_config *config, const char *key,
                                  unsigned types)
{
    int k = pl_key_find(key);
    assert(k >= 0 && "key of base/keys.c");
    assert(types & 1u << pl_keys[k].type);
    return &config->values[k];
}

int64_t pl_config_int(const struct pl_config *config, const char *key)
{
    return get(config, key, 1u << PL_KEY_INT)->i;
}

double pl_config_real(const struct pl_config *config, const char *key)
{
    return get(config, key, 1u << PL_KEY_REAL)->r;
}

bool pl_config_bool(const struct pl_config *config, const char *key)
{
    const int64_t value = get(config, key, 1u << PL_KEY_BOOL)->i;
    assert(value >= 0);
    return value;
}

int pl_config_maybe(const struct pl_config *config, const char *key)
{
    return (int)get(config, key, 1u << PL_KEY_BOOL)->i;
}

int pl_config_choice(const struct pl_config *config, const char *key)
{
    const char *const *names = pl_config_choices(key);
    const char *name = pl_config_text(config, key);
    int i = 0;
    while (strcmp(names[i], name)) i++;
    return i;
}

const char *pl_config_text(const struct pl_config *config, const char *key)
{
    return get(config, key, 1u << PL_KEY_TEXT | 1u << PL_KEY_NAME)->text;
}

pl_tick pl_config_time(const struct pl_config *config, const char *key)
{
    return get(config, key, 1u << PL_KEY_TIME)->ticks[0];
}

const pl_tick *pl_config_times(const struct pl_config *config, const char *key, int *n)
{
    const struct pl_value *value = get(config, key, 1u << PL_KEY_TIMES);
    *n = value->n_ticks;
    return value->ticks;
}

bool pl_config_given(const struct pl_config *config, const char *key)
{
    return get(config, key, ~0u)->where != NULL;
}

const char *pl_config_where(const struct pl_config *config, const char *key)
{
    const char *where = get(config, key, ~0u)->where;
    return where ? where : "default";
}

const char *pl_config_title(const struct pl_config *config)
{
    return config->title;
}

int pl_config_n_seeds(const struct pl_config *config)
{
    return config->n_seeds;
}

uint64_t pl_config_seed(const struct pl_config *config, int i)
{
    assert(i >= 0 && i < config->n_seeds);
    return config->seeds[i];
}
