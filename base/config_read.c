/* A YAML tree into a configuration: scalars, keys of the table and maps; every node is
 * checked where it is used. */
#include "base/config_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

char *pl_read_place(const struct pl_reader *in, const struct pl_yaml *node)
{
    if (in->made) return pl_strdup(in->path);
    return pl_printf("%s:%zu:%zu", in->path, node->line, node->column);
}

int pl_read_fail(const struct pl_reader *in, const struct pl_yaml *node,
                 const char *message, const char *name)
{
    char *where = pl_read_place(in, node);
    int rc = name ? pl_fail(PL_ECONFIG, "%s: %s '%s'", where, message, name)
                  : pl_fail(PL_ECONFIG, "%s: %s", where, message);
    free(where);
    return rc;
}

bool pl_read_is_null(const struct pl_yaml *node)
{
    static const char *const spellings[] = {"", "~", "null", "Null", "NULL", NULL};
    if (node->kind != PL_YAML_TEXT || !node->plain) return false;
    for (const char *const *s = spellings; *s; s++)
        if (!strcmp(node->text, *s)) return true;
    return false;
}

int pl_read_scalar(const struct pl_reader *in, const struct pl_yaml *node,
                   const char *what)
{
    if (node->kind != PL_YAML_TEXT)
        return pl_read_fail(in, node,
                            node->kind == PL_YAML_MAP
                                ? "a map, expected one value for"
                                : "a list, expected one value for",
                            what);
    if (strlen(node->text) != node->length)
        return pl_read_fail(in, node, "a NUL character in", what);
    if (pl_read_is_null(node)) return pl_read_fail(in, node, "no value for", what);
    return 0;
}

int pl_read_list(const struct pl_reader *in, const struct pl_yaml *node,
                 const char *what, const char ***texts, int *n)
{
    bool list = node->kind == PL_YAML_LIST;
    int count = list ? node->n : 1;
    if (count < 1 || count > PL_MAX_LIST)
        return pl_read_fail(in, node,
                            count ? "too long a list for" : "an empty list for", what);
    const char **entries = PL_NEW(count, const char *);
    for (int i = 0; i < count; i++) {
        const struct pl_yaml *item = list ? node->items[i] : node;
        int rc = pl_read_scalar(in, item, what);
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

int pl_read_key(const struct pl_reader *in, const struct pl_yaml *map, int i,
                const char **name)
{
    const struct pl_yaml *node = map->items[i];
    if (node->kind != PL_YAML_TEXT || !*node->text ||
        strlen(node->text) != node->length)
        return pl_read_fail(in, node, "expected the name of a key", NULL);
    for (const char *p = node->text; *p; p++)
        if ((unsigned char)*p < 0x20)
            return pl_read_fail(in, node, "a control character in the name of a key",
                                NULL);
    for (int j = 0; j < i; j += 2)
        if (!strcmp(map->items[j]->text, node->text))
            return pl_read_fail(in, node, "duplicate key", node->text);
    *name = node->text;
    return 0;
}

static void store(struct pl_reader *in, int key, struct pl_value *value)
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

int pl_read_node(struct pl_reader *in, int key, const struct pl_yaml *node,
                 struct pl_value *value)
{
    const char *name = pl_keys[key].name, **texts;
    int n = 1, rc = 0;
    if (pl_keys[key].type == PL_KEY_TIMES)
        rc = pl_read_list(in, node, name, &texts, &n);
    else if (!(rc = pl_read_scalar(in, node, name)))
        *(texts = PL_NEW(1, const char *)) = node->text;
    if (rc) return rc;
    char *where = pl_read_place(in, node);
    rc = pl_value_parse(key, texts, n, where, value);
    free(where);
    free(texts);
    return rc;
}

static int read_value(struct pl_reader *in, int key, const struct pl_yaml *key_node,
                      const struct pl_yaml *node)
{
    if (in->group && pl_key_is_preset(key))
        return pl_read_fail(in, key_node, "a preset cannot choose a preset,",
                            pl_keys[key].name);
    if (in->seen[key]) {
        char *where = pl_read_place(in, key_node);
        int rc = pl_fail(PL_ECONFIG, "%s: duplicate key '%s', first given in line %zu",
                         where, pl_keys[key].name, in->seen[key]->line);
        free(where);
        return rc;
    }
    in->seen[key] = key_node;
    if (in->sweep) return pl_read_swept(in, key, node);
    struct pl_value value;
    int rc = pl_read_node(in, key, node, &value);
    if (!rc) store(in, key, &value);
    return rc;
}

/* A preset has keys of its group only. */
static int check_group(const struct pl_reader *in, const char *name,
                       const struct pl_yaml *key_node)
{
    size_t n = strlen(in->group);
    if (!strncmp(name, in->group, n) && (!name[n] || name[n] == '.')) return 0;
    char *where = pl_read_place(in, key_node);
    int rc = pl_fail(PL_ECONFIG, "%s: '%s' in a %s preset, expected keys %s.* only",
                     where, name, in->group, in->group);
    free(where);
    return rc;
}

int pl_read_map(struct pl_reader *in, const struct pl_yaml *map, const char *prefix)
{
    if (pl_read_is_null(map)) return 0;
    if (map->kind != PL_YAML_MAP)
        return pl_read_fail(in, map,
                            *prefix ? "expected a map of keys under" : "expected a map",
                            *prefix ? prefix : NULL);
    int rc = 0;
    for (int i = 0; i < map->n && !rc; i += 2) {
        const struct pl_yaml *node = map->items[i + 1];
        const char *last;
        if ((rc = pl_read_key(in, map, i, &last))) break;
        char *name = pl_printf("%s%s%s", prefix, *prefix ? "." : "", last);
        int key = pl_key_find(name);
        bool found = false;
        if (!*prefix && in->group)
            rc = check_group(in, name, map->items[i]);
        else if (!*prefix)
            rc = pl_read_top(in, name, map->items[i], node, &found);
        if (!rc && !found && key >= 0) {
            rc = read_value(in, key, map->items[i], node);
        } else if (!rc && !found && pl_key_is_group(name)) {
            rc = pl_read_map(in, node, name);
        } else if (!rc && !found) {
            char *where = pl_read_place(in, map->items[i]);
            rc = pl_key_fail_unknown(name, node->kind == PL_YAML_MAP, where);
            free(where);
        }
        free(name);
    }
    return rc;
}

int pl_config_load(struct pl_config *config, const char *path)
{
    struct pl_yaml_file *file;
    int rc = pl_yaml_read(path, &file);
    if (rc) return rc;
    struct pl_reader in = {.config = config, .path = path};
    if (file->root) rc = pl_read_map(&in, file->root, "");
    pl_yaml_free(file);
    return rc;
}

int pl_config_preset(struct pl_config *config, const char *text, const char *origin,
                     const char *group, bool made)
{
    struct pl_yaml_file *file;
    int rc = pl_yaml_parse(text, origin, &file);
    if (rc) return rc;
    struct pl_reader in = {
        .config = config, .path = origin, .group = group, .made = made};
    if (file->root) rc = pl_read_map(&in, file->root, "");
    pl_yaml_free(file);
    return rc;
}
