/* Keys of a file that are not in the table: title, seeds, axes and sweep. */
#include "base/config_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MAX_AXES = 32 };

static int read_seeds(struct pl_reader *in, const struct pl_yaml *node)
{
    const char **texts;
    uint64_t *seeds;
    int n, rc = pl_read_list(in, node, "seeds", &texts, &n);
    if (rc) return rc;
    char *where = pl_read_place(in, node);
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

static int read_title(struct pl_reader *in, const struct pl_yaml *node)
{
    int rc = pl_read_scalar(in, node, "title");
    if (rc || in->config->title_pinned) return rc;
    free(in->config->title);
    in->config->title = pl_strdup(node->text);
    in->config->title_given = true;
    return 0;
}

static int check_name(const struct pl_reader *in, const struct pl_yaml *node)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.-";
    size_t n = strlen(node->text);
    if (n > PL_MAX_LABEL || strspn(node->text, letters) != n)
        return pl_read_fail(in, node,
                            "expected a name of at most 64 of A-Z a-z 0-9 _ . -, not",
                            node->text);
    /* groups of the trace, where "." is the group itself */
    if (strspn(node->text, ".") == n)
        return pl_read_fail(in, node, "expected a name with a letter or digit, not",
                            node->text);
    return 0;
}

static int read_labels(struct pl_reader *in, const struct pl_yaml *map,
                       struct pl_axis *axis)
{
    if (map->kind != PL_YAML_MAP || !map->n)
        return pl_read_fail(in, map, "expected a map of label: overrides for axis",
                            axis->name);
    for (int i = 0; i < map->n; i += 2) {
        const char *name;
        int rc = pl_read_key(in, map, i, &name);
        if (!rc) rc = check_name(in, map->items[i]);
        if (!rc && axis->n == PL_MAX_ARMS)
            rc = pl_read_fail(in, map, "too many labels", NULL);
        if (rc) return rc;
        axis->labels = pl_grow(axis->labels, (size_t)axis->n + 1, sizeof *axis->labels);
        struct pl_label *label = &axis->labels[axis->n++];
        *label = (struct pl_label){.name = pl_strdup(name)};
        struct pl_reader inner = {
            .config = in->config, .path = in->path, .label = label};
        rc = pl_read_map(&inner, map->items[i + 1], "");
        if (rc) return rc;
    }
    return 0;
}

static int read_axes(struct pl_reader *in, const struct pl_yaml *map)
{
    struct pl_config *config = in->config;
    int arms = 1;
    pl_axes_free(config->axes, config->n_axes);
    config->axes = NULL;
    config->n_axes = 0;
    if (pl_read_is_null(map)) return 0;
    if (map->kind != PL_YAML_MAP)
        return pl_read_fail(in, map, "expected a map of axis: labels for", "axes");
    for (int i = 0; i < map->n; i += 2) {
        const char *name;
        int rc = pl_read_key(in, map, i, &name);
        if (!rc) rc = check_name(in, map->items[i]);
        if (!rc && config->n_axes == MAX_AXES)
            rc = pl_read_fail(in, map, "too many axes", NULL);
        if (rc) return rc;
        config->axes =
            pl_grow(config->axes, (size_t)config->n_axes + 1, sizeof *config->axes);
        struct pl_axis *axis = &config->axes[config->n_axes++];
        *axis = (struct pl_axis){.name = pl_strdup(name)};
        rc = read_labels(in, map->items[i + 1], axis);
        if (!rc && (arms *= axis->n) > PL_MAX_ARMS)
            rc = pl_read_fail(in, map, "more than 10000 arms in", "axes");
        if (rc) return rc;
    }
    return 0;
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

int pl_read_swept(struct pl_reader *in, int key, const struct pl_yaml *node)
{
    struct pl_config *config = in->config;
    bool list = node->kind == PL_YAML_LIST;
    int rc = 0, n = list ? node->n : 1;
    if (!n) return pl_read_fail(in, node, "an empty list for", pl_keys[key].name);
    config->swept =
        pl_grow(config->swept, (size_t)config->n_swept + 1, sizeof *config->swept);
    struct pl_axis *axis = &config->swept[config->n_swept++];
    *axis = (struct pl_axis){.name = pl_strdup(pl_keys[key].name)};
    for (int i = 0; !rc && i < n; i++) {
        const struct pl_yaml *item = list ? node->items[i] : node;
        char *where = pl_read_place(in, item);
        struct pl_value value;
        if (pl_keys[key].type == PL_KEY_INT && item->kind == PL_YAML_TEXT &&
            pl_range_is(item->text))
            rc = read_range(axis, key, item->text, where);
        else if (!(rc = pl_read_node(in, key, item, &value)))
            pl_swept_append(axis, key, &value);
        if (!rc && axis->n > PL_MAX_SWEPT)
            rc = pl_read_fail(in, item, "more than 100000 values for", axis->name);
        free(where);
    }
    char *where = pl_read_place(in, node);
    if (!rc) rc = pl_swept_check(axis, where);
    free(where);
    return rc;
}

static int read_sweep(struct pl_reader *in, const struct pl_yaml *map)
{
    struct pl_reader inner = {.config = in->config, .path = in->path, .sweep = true};
    pl_axes_free(in->config->swept, in->config->n_swept);
    in->config->swept = NULL;
    in->config->n_swept = 0;
    if (map->kind != PL_YAML_MAP && !pl_read_is_null(map))
        return pl_read_fail(in, map, "expected a map of key: list of values for",
                            "sweep");
    return pl_read_map(&inner, map, "");
}

int pl_read_top(struct pl_reader *in, const char *name, const struct pl_yaml *key_node,
                const struct pl_yaml *node, bool *found)
{
    bool seeds = !strcmp(name, "seeds"), axes = !strcmp(name, "axes"),
         sweep = !strcmp(name, "sweep");
    *found = seeds || axes || sweep || !strcmp(name, "title");
    if (!*found) return 0;
    if (in->label) return pl_read_fail(in, key_node, "an arm cannot set", name);
    if (in->sweep) return pl_read_fail(in, key_node, "a sweep cannot vary", name);
    return seeds   ? read_seeds(in, node)
           : axes  ? read_axes(in, node)
           : sweep ? read_sweep(in, node)
                   : read_title(in, node);
}
