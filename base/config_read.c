/* A YAML tree into a configuration; every node is checked where it is used. */
#include "base/config_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/yaml.h"

enum { MAX_AXES = 32 };

struct reader {
    struct pl_config *config;
    const char *path;
    struct pl_label *label; /* overrides go here; NULL: the configuration itself */
    const char *group;      /* a preset: keys of this group only; NULL: a file */
    bool made;              /* the text is in no file: its lines mean nothing */
    bool sweep;             /* inside `sweep`: values are lists of values */
    const struct pl_yaml
        *seen[PL_MAX_KEYS]; /* what set the key in this scope, or NULL */
};

static char *place(const struct reader *in, const struct pl_yaml *node)
{
    if (in->made) return pl_strdup(in->path);
    return pl_printf("%s:%zu:%zu", in->path, node->line, node->column);
}

/* PL_ECONFIG "file:line:column: MESSAGE 'name'", name may be NULL. */
static int fail_at(const struct reader *in, const struct pl_yaml *node,
                   const char *message, const char *name)
{
    char *where = place(in, node);
    int rc = name ? pl_fail(PL_ECONFIG, "%s: %s '%s'", where, message, name)
                  : pl_fail(PL_ECONFIG, "%s: %s", where, message);
    free(where);
    return rc;
}

static bool is_null(const struct pl_yaml *node)
{
    static const char *const spellings[] = {"", "~", "null", "Null", "NULL", NULL};
    if (node->kind != PL_YAML_TEXT || !node->plain) return false;
    for (const char *const *s = spellings; *s; s++)
        if (!strcmp(node->text, *s)) return true;
    return false;
}

/* Check that node is a usable scalar: text without NUL and not null. */
static int check_scalar(const struct reader *in, const struct pl_yaml *node,
                        const char *what)
{
    if (node->kind != PL_YAML_TEXT)
        return fail_at(in, node,
                       node->kind == PL_YAML_MAP ? "a map, expected one value for"
                                                 : "a list, expected one value for",
                       what);
    if (strlen(node->text) != node->length)
        return fail_at(in, node, "a NUL character in", what);
    if (is_null(node)) return fail_at(in, node, "no value for", what);
    return 0;
}

/* Scalars of a list, or the one scalar; texts is the caller's to free, entries
 * borrowed. */
static int read_list(const struct reader *in, const struct pl_yaml *node,
                     const char *what, const char ***texts, int *n)
{
    bool list = node->kind == PL_YAML_LIST;
    int count = list ? node->n : 1;
    if (count < 1 || count > PL_MAX_LIST)
        return fail_at(in, node, count ? "too long a list for" : "an empty list for",
                       what);
    const char **entries = PL_NEW(count, const char *);
    for (int i = 0; i < count; i++) {
        const struct pl_yaml *item = list ? node->items[i] : node;
        int rc = check_scalar(in, item, what);
        if (rc) {
            free(entries);
            return rc;
        }
        entries[i] = item->text;
    }
    *texts = entries;
    *n = count;
    return 0;
}

/* The key at items[i] of map, after a check that no earlier one is the same. */
static int read_key(const struct reader *in, const struct pl_yaml *map, int i,
                    const char **name)
{
    const struct pl_yaml *node = map->items[i];
    if (node->kind != PL_YAML_TEXT || !*node->text ||
        strlen(node->text) != node->length)
        return fail_at(in, node, "expected the name of a key", NULL);
    for (const char *p = node->text; *p; p++)
        if ((unsigned char)*p < 0x20)
            return fail_at(in, node, "a control character in the name of a key", NULL);
    for (int j = 0; j < i; j += 2)
        if (!strcmp(map->items[j]->text, node->text))
            return fail_at(in, node, "duplicate key", node->text);
    *name = node->text;
    return 0;
}

static void store(struct reader *in, int key, struct pl_value *value)
{
    if (in->label) {
        struct pl_label *label = in->label;
        label->overrides =
            pl_grow(label->overrides, (size_t)label->n + 1, sizeof *label->overrides);
        label->overrides[label->n++] = (struct pl_override){key, *value};
    } else if (in->config->values[key].pinned ||
               (in->group && in->config->values[key].where &&
                !in->config->values[key].preset)) {
        pl_value_clear(value);
    } else {
        value->preset = in->group != NULL;
        pl_value_clear(&in->config->values[key]);
        in->config->values[key] = *value;
    }
}

static int parse_node(struct reader *in, int key, const struct pl_yaml *node,
                      struct pl_value *value)
{
    const char *name = pl_keys[key].name, **texts;
    int n = 1, rc = 0;
    if (pl_keys[key].type == PL_KEY_TIMES)
        rc = read_list(in, node, name, &texts, &n);
    else if (!(rc = check_scalar(in, node, name)))
        *(texts = PL_NEW(1, const char *)) = node->text;
    if (rc) return rc;
    char *where = place(in, node);
    rc = pl_value_parse(key, texts, n, where, value);
    free(where);
    free(texts);
    return rc;
}

static int read_range(struct pl_axis *axis, int key, const char *text,
                      const char *where)
{
    int64_t *values;
    int n, rc = pl_range_parse(text, where, pl_keys[key].name, &values, &n);
    if (rc) return rc;
    for (int i = 0; !rc && i < n; i++) {
        struct pl_value value;
        char *one = pl_printf("%lld", (long long)values[i]);
        rc = pl_value_parse(key, (const char *const *)&one, 1, where, &value);
        if (!rc) pl_swept_append(axis, key, &value);
        free(one);
    }
    free(values);
    return rc;
}

/* The values that one key of `sweep` takes: a list, or one value. */
static int read_swept(struct reader *in, int key, const struct pl_yaml *node)
{
    struct pl_config *config = in->config;
    bool list = node->kind == PL_YAML_LIST;
    int rc = 0, n = list ? node->n : 1;
    if (!n) return fail_at(in, node, "an empty list for", pl_keys[key].name);
    config->swept =
        pl_grow(config->swept, (size_t)config->n_swept + 1, sizeof *config->swept);
    struct pl_axis *axis = &config->swept[config->n_swept++];
    *axis = (struct pl_axis){.name = pl_strdup(pl_keys[key].name)};
    for (int i = 0; !rc && i < n; i++) {
        const struct pl_yaml *item = list ? node->items[i] : node;
        char *where = place(in, item);
        struct pl_value value;
        if (pl_keys[key].type == PL_KEY_INT && item->kind == PL_YAML_TEXT &&
            pl_range_is(item->text))
            rc = read_range(axis, key, item->text, where);
        else if (!(rc = parse_node(in, key, item, &value)))
            pl_swept_append(axis, key, &value);
        if (!rc && axis->n > PL_MAX_SWEPT)
            rc = fail_at(in, item, "more than 100000 values for", axis->name);
        free(where);
    }
    char *where = place(in, node);
    if (!rc) rc = pl_swept_check(axis, where);
    free(where);
    return rc;
}

static int read_value(struct reader *in, int key, const struct pl_yaml *key_node,
                      const struct pl_yaml *node)
{
    if (in->group && pl_key_is_preset(key))
        return fail_at(in, key_node, "a preset cannot choose a preset,",
                       pl_keys[key].name);
    if (in->seen[key]) {
        char *where = place(in, key_node);
        int rc = pl_fail(PL_ECONFIG, "%s: duplicate key '%s', first given in line %zu",
                         where, pl_keys[key].name, in->seen[key]->line);
        free(where);
        return rc;
    }
    in->seen[key] = key_node;
    if (in->sweep) return read_swept(in, key, node);
    struct pl_value value;
    int rc = parse_node(in, key, node, &value);
    if (!rc) store(in, key, &value);
    return rc;
}

static int read_top(struct reader *in, const char *name, const struct pl_yaml *key_node,
                    const struct pl_yaml *node, bool *found);

/* All pairs of a map; prefix "" or "group" goes before their names. A group has no
 * groups inside unless the table says so, which bounds the recursion. */
static int read_map(struct reader *in, const struct pl_yaml *map, const char *prefix)
{
    if (is_null(map)) return 0;
    if (map->kind != PL_YAML_MAP)
        return fail_at(in, map,
                       *prefix ? "expected a map of keys under" : "expected a map",
                       *prefix ? prefix : NULL);
    int rc = 0;
    for (int i = 0; i < map->n && !rc; i += 2) {
        const struct pl_yaml *node = map->items[i + 1];
        const char *last;
        if ((rc = read_key(in, map, i, &last))) break;
        char *name = pl_printf("%s%s%s", prefix, *prefix ? "." : "", last);
        int key = pl_key_find(name);
        bool found = false;
        if (!*prefix) rc = read_top(in, name, map->items[i], node, &found);
        if (!rc && !found && key >= 0) {
            rc = read_value(in, key, map->items[i], node);
        } else if (!rc && !found && pl_key_is_group(name)) {
            rc = read_map(in, node, name);
        } else if (!rc && !found) {
            char *where = place(in, map->items[i]);
            rc = pl_key_fail_unknown(name, node->kind == PL_YAML_MAP, where);
            free(where);
        }
        free(name);
    }
    return rc;
}

static int read_seeds(struct reader *in, const struct pl_yaml *node)
{
    const char **texts;
    uint64_t *seeds;
    int n, rc = read_list(in, node, "seeds", &texts, &n);
    if (rc) return rc;
    char *where = place(in, node);
    rc = pl_seeds_parse(texts, n, where, &seeds);
    free(where);
    free(texts);
    if (rc) return rc;
    if (in->config->seeds_pinned) {
        free(seeds);
        return 0;
    }
    free(in->config->seeds);
    in->config->seeds = seeds;
    in->config->n_seeds = n;
    in->config->seeds_given = true;
    return 0;
}

static int read_title(struct reader *in, const struct pl_yaml *node)
{
    int rc = check_scalar(in, node, "title");
    if (rc || in->config->title_pinned) return rc;
    free(in->config->title);
    in->config->title = pl_strdup(node->text);
    in->config->title_given = true;
    return 0;
}

static int check_name(const struct reader *in, const struct pl_yaml *node)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.-";
    size_t n = strlen(node->text);
    if (n > PL_MAX_LABEL || strspn(node->text, letters) != n)
        return fail_at(in, node,
                       "expected a name of at most 64 of A-Z a-z 0-9 _ . -, not",
                       node->text);
    /* groups of the trace, where "." is the group itself */
    if (strspn(node->text, ".") == n)
        return fail_at(in, node, "expected a name with a letter or digit, not",
                       node->text);
    return 0;
}

static int read_labels(struct reader *in, const struct pl_yaml *map,
                       struct pl_axis *axis)
{
    if (map->kind != PL_YAML_MAP || !map->n)
        return fail_at(in, map, "expected a map of label: overrides for axis",
                       axis->name);
    for (int i = 0; i < map->n; i += 2) {
        const char *name;
        int rc = read_key(in, map, i, &name);
        if (!rc) rc = check_name(in, map->items[i]);
        if (!rc && axis->n == PL_MAX_ARMS)
            rc = fail_at(in, map, "too many labels", NULL);
        if (rc) return rc;
        axis->labels = pl_grow(axis->labels, (size_t)axis->n + 1, sizeof *axis->labels);
        struct pl_label *label = &axis->labels[axis->n++];
        *label = (struct pl_label){.name = pl_strdup(name)};
        struct reader inner = {.config = in->config, .path = in->path, .label = label};
        rc = read_map(&inner, map->items[i + 1], "");
        if (rc) return rc;
    }
    return 0;
}

static int read_axes(struct reader *in, const struct pl_yaml *map)
{
    struct pl_config *config = in->config;
    int arms = 1;
    pl_axes_free(config->axes, config->n_axes);
    config->axes = NULL;
    config->n_axes = 0;
    if (is_null(map)) return 0;
    if (map->kind != PL_YAML_MAP)
        return fail_at(in, map, "expected a map of axis: labels for", "axes");
    for (int i = 0; i < map->n; i += 2) {
        const char *name;
        int rc = read_key(in, map, i, &name);
        if (!rc) rc = check_name(in, map->items[i]);
        if (!rc && config->n_axes == MAX_AXES)
            rc = fail_at(in, map, "too many axes", NULL);
        if (rc) return rc;
        config->axes =
            pl_grow(config->axes, (size_t)config->n_axes + 1, sizeof *config->axes);
        struct pl_axis *axis = &config->axes[config->n_axes++];
        *axis = (struct pl_axis){.name = pl_strdup(name)};
        rc = read_labels(in, map->items[i + 1], axis);
        if (!rc && (arms *= axis->n) > PL_MAX_ARMS)
            rc = fail_at(in, map, "more than 10000 arms in", "axes");
        if (rc) return rc;
    }
    return 0;
}

/* A preset has keys of its group only. */
static int check_group(const struct reader *in, const char *name,
                       const struct pl_yaml *key_node)
{
    size_t n = strlen(in->group);
    if (!strncmp(name, in->group, n) && (!name[n] || name[n] == '.')) return 0;
    char *where = place(in, key_node);
    int rc = pl_fail(PL_ECONFIG, "%s: '%s' in a %s preset, expected keys %s.* only",
                     where, name, in->group, in->group);
    free(where);
    return rc;
}

static int read_sweep(struct reader *in, const struct pl_yaml *map)
{
    struct reader inner = {.config = in->config, .path = in->path, .sweep = true};
    pl_axes_free(in->config->swept, in->config->n_swept);
    in->config->swept = NULL;
    in->config->n_swept = 0;
    if (map->kind != PL_YAML_MAP && !is_null(map))
        return fail_at(in, map, "expected a map of key: list of values for", "sweep");
    return read_map(&inner, map, "");
}

/* The keys that are not in the table; they belong to the file, not to an arm. */
static int read_top(struct reader *in, const char *name, const struct pl_yaml *key_node,
                    const struct pl_yaml *node, bool *found)
{
    bool seeds = !strcmp(name, "seeds"), axes = !strcmp(name, "axes"),
         sweep = !strcmp(name, "sweep");
    *found = seeds || axes || sweep || !strcmp(name, "title");
    if (in->group) return check_group(in, name, key_node);
    if (!*found) return 0;
    if (in->label) return fail_at(in, key_node, "an arm cannot set", name);
    if (in->sweep) return fail_at(in, key_node, "a sweep cannot vary", name);
    return seeds   ? read_seeds(in, node)
           : axes  ? read_axes(in, node)
           : sweep ? read_sweep(in, node)
                   : read_title(in, node);
}

int pl_config_load(struct pl_config *config, const char *path)
{
    struct pl_yaml_file *file;
    int rc = pl_yaml_read(path, &file);
    if (rc) return rc;
    struct reader in = {.config = config, .path = path};
    if (file->root) rc = read_map(&in, file->root, "");
    pl_yaml_free(file);
    return rc;
}

int pl_config_read_preset(struct pl_config *config, const char *text,
                          const char *origin, const char *group, bool made)
{
    struct pl_yaml_file *file;
    int rc = pl_yaml_parse(text, origin, &file);
    if (rc) return rc;
    struct reader in = {.config = config, .path = origin, .group = group, .made = made};
    if (file->root) rc = read_map(&in, file->root, "");
    pl_yaml_free(file);
    return rc;
}

int pl_config_preset(struct pl_config *config, const char *text, const char *origin,
                     const char *group)
{
    return pl_config_read_preset(config, text, origin, group, false);
}
