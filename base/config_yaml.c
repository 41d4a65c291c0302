/* The YAML reader: a tree of libyaml nodes into a configuration. Anchors and aliases
 * are resolved by libyaml; every node is checked where it is used, so an alias reports
 * the place of its anchor. */
#include "base/config_types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_BYTES = 16 << 20, MAX_DEPTH = 32 };

struct reader {
    struct pl_config *config;
    const char *path;
    yaml_document_t *document;
    struct pl_label *label; /* overrides go here; NULL: the configuration itself */
    int seen[PL_MAX_KEYS];  /* node that set the key in this file or label, or 0 */
};

static char *place(const struct reader *in, yaml_mark_t mark)
{
    return pl_printf("%s:%zu:%zu", in->path, mark.line + 1, mark.column + 1);
}

/* PL_ECONFIG "file:line:column: MESSAGE 'name'", name may be NULL. */
static int fail_at(const struct reader *in, const yaml_node_t *node,
                   const char *message, const char *name)
{
    char *where = place(in, node->start_mark);
    int rc = name ? pl_fail(PL_ECONFIG, "%s: %s '%s'", where, message, name)
                  : pl_fail(PL_ECONFIG, "%s: %s", where, message);
    free(where);
    return rc;
}

static yaml_node_t *node_at(const struct reader *in, int number)
{
    yaml_node_t *node = yaml_document_get_node(in->document, number);
    assert(node);
    return node;
}

static const char *scalar(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static bool is_null(const yaml_node_t *node)
{
    static const char *const spellings[] = {"", "~", "null", "Null", "NULL", NULL};
    if (node->type != YAML_SCALAR_NODE ||
        node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (const char *const *s = spellings; *s; s++)
        if (!strcmp(scalar(node), *s)) return true;
    return false;
}

/* Check that node is a usable scalar: text without NUL and not null. */
static int check_scalar(const struct reader *in, const yaml_node_t *node,
                        const char *what)
{
    if (node->type != YAML_SCALAR_NODE)
        return fail_at(in, node,
                       node->type == YAML_MAPPING_NODE
                           ? "a map, expected one value for"
                           : "a list, expected one value for",
                       what);
    if (strlen(scalar(node)) != node->data.scalar.length)
        return fail_at(in, node, "a NUL character in", what);
    if (is_null(node)) return fail_at(in, node, "no value for", what);
    return 0;
}

/* Scalars of a list, or the one scalar; texts is the caller's to free, entries
 * borrowed. */
static int read_list(const struct reader *in, const yaml_node_t *node, const char *what,
                     const char ***texts, int *n)
{
    bool list = node->type == YAML_SEQUENCE_NODE;
    size_t count =
        list ? (size_t)(node->data.sequence.items.top - node->data.sequence.items.start)
             : 1;
    if (count < 1 || count > PL_MAX_LIST)
        return fail_at(in, node, count ? "too long a list for" : "an empty list for",
                       what);
    const char **entries = PL_NEW(count, const char *);
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item =
            list ? node_at(in, node->data.sequence.items.start[i]) : node;
        int rc = check_scalar(in, item, what);
        if (rc) {
            free(entries);
            return rc;
        }
        entries[i] = scalar(item);
    }
    *texts = entries;
    *n = (int)count;
    return 0;
}

/* The text of pair's key, after a check that no earlier pair of map has the same one.
 */
static int read_key(const struct reader *in, const yaml_node_t *map,
                    const yaml_node_pair_t *pair, const char **name)
{
    const yaml_node_t *node = node_at(in, pair->key);
    if (node->type != YAML_SCALAR_NODE || !*scalar(node) ||
        strlen(scalar(node)) != node->data.scalar.length)
        return fail_at(in, node, "expected the name of a key", NULL);
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < pair; p++)
        if (!strcmp(scalar(node_at(in, p->key)), scalar(node)))
            return fail_at(in, node, "duplicate key", scalar(node));
    *name = scalar(node);
    return 0;
}

static void store(struct reader *in, int key, struct pl_value *value)
{
    if (in->label) {
        struct pl_label *label = in->label;
        label->overrides =
            pl_grow(label->overrides, (size_t)label->n + 1, sizeof *label->overrides);
        label->overrides[label->n++] = (struct pl_override){key, *value};
    } else if (in->config->values[key].pinned) {
        pl_value_clear(value);
    } else {
        pl_value_clear(&in->config->values[key]);
        in->config->values[key] = *value;
    }
}

static int read_value(struct reader *in, int key, const yaml_node_t *key_node,
                      const yaml_node_t *node)
{
    const char *name = pl_keys[key].name, **texts;
    if (in->seen[key]) {
        yaml_mark_t first = node_at(in, in->seen[key])->start_mark;
        char *where = place(in, key_node->start_mark);
        int rc = pl_fail(PL_ECONFIG, "%s: duplicate key '%s', first given in line %zu",
                         where, name, first.line + 1);
        free(where);
        return rc;
    }
    in->seen[key] = (int)(key_node - in->document->nodes.start) + 1;
    int n = 1, rc = 0;
    if (pl_keys[key].type == PL_KEY_TIMES)
        rc = read_list(in, node, name, &texts, &n);
    else if (!(rc = check_scalar(in, node, name)))
        *(texts = PL_NEW(1, const char *)) = scalar(node);
    if (rc) return rc;
    struct pl_value value;
    char *where = place(in, node->start_mark);
    rc = pl_value_parse(key, texts, n, where, &value);
    if (!rc) store(in, key, &value);
    free(where);
    free(texts);
    return rc;
}

static int read_top(struct reader *in, const char *name, const yaml_node_t *key_node,
                    const yaml_node_t *node, bool *found);

/* All pairs of a map; prefix "" or "group." goes before their names. */
static int read_map(struct reader *in, const yaml_node_t *map, const char *prefix,
                    int depth)
{
    if (is_null(map)) return 0;
    if (map->type != YAML_MAPPING_NODE)
        return fail_at(in, map,
                       *prefix ? "expected a map of keys under" : "expected a map",
                       *prefix ? prefix : NULL);
    if (depth > MAX_DEPTH) return fail_at(in, map, "maps nested too deeply", NULL);
    int rc = 0;
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
         pair < map->data.mapping.pairs.top && !rc; pair++) {
        const char *last;
        if ((rc = read_key(in, map, pair, &last))) break;
        const yaml_node_t *key_node = node_at(in, pair->key);
        const yaml_node_t *node = node_at(in, pair->value);
        char *name = pl_printf("%s%s%s", prefix, *prefix ? "." : "", last);
        int key = pl_key_find(name);
        bool found = false;
        if (!*prefix) rc = read_top(in, name, key_node, node, &found);
        if (rc || found) {
            ;
        } else if (key >= 0) {
            rc = read_value(in, key, key_node, node);
        } else if (pl_key_is_group(name)) {
            rc = read_map(in, node, name, depth + 1);
        } else {
            char *where = place(in, key_node->start_mark);
            rc = pl_key_fail_unknown(name, node->type == YAML_MAPPING_NODE, where);
            free(where);
        }
        free(name);
    }
    return rc;
}

static int read_seeds(struct reader *in, const yaml_node_t *node)
{
    const char **texts;
    uint64_t *seeds;
    int n, rc = read_list(in, node, "seeds", &texts, &n);
    if (rc) return rc;
    char *where = place(in, node->start_mark);
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

static int read_title(struct reader *in, const yaml_node_t *node)
{
    int rc = check_scalar(in, node, "title");
    if (rc || in->config->title_pinned) return rc;
    free(in->config->title);
    in->config->title = pl_strdup(scalar(node));
    in->config->title_given = true;
    return 0;
}

static int check_name(const struct reader *in, const yaml_node_t *node)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.-";
    size_t n = strlen(scalar(node));
    if (n > PL_MAX_LABEL || strspn(scalar(node), letters) != n)
        return fail_at(in, node,
                       "expected a name of at most 64 of A-Z a-z 0-9 _ . -, not",
                       scalar(node));
    return 0;
}

static int read_labels(struct reader *in, const yaml_node_t *map, struct pl_axis *axis)
{
    if (map->type != YAML_MAPPING_NODE ||
        map->data.mapping.pairs.top == map->data.mapping.pairs.start)
        return fail_at(in, map, "expected a map of label: overrides for axis",
                       axis->name);
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
         pair < map->data.mapping.pairs.top; pair++) {
        const char *name;
        int rc = read_key(in, map, pair, &name);
        if (!rc) rc = check_name(in, node_at(in, pair->key));
        if (!rc && axis->n == PL_MAX_ARMS) rc = fail_at(in, map, "too many arms", NULL);
        if (rc) return rc;
        axis->labels = pl_grow(axis->labels, (size_t)axis->n + 1, sizeof *axis->labels);
        struct pl_label *label = &axis->labels[axis->n++];
        *label = (struct pl_label){.name = pl_strdup(name)};
        struct reader inner = *in;
        inner.label = label;
        memset(inner.seen, 0, sizeof inner.seen);
        rc = read_map(&inner, node_at(in, pair->value), "", 1);
        if (rc) return rc;
    }
    return 0;
}

static int read_axes(struct reader *in, const yaml_node_t *map)
{
    struct pl_config *config = in->config;
    int arms = 1;
    pl_axes_free(config->axes, config->n_axes);
    config->axes = NULL;
    config->n_axes = 0;
    if (is_null(map)) return 0;
    if (map->type != YAML_MAPPING_NODE)
        return fail_at(in, map, "expected a map of axis: labels for", "axes");
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
         pair < map->data.mapping.pairs.top; pair++) {
        const char *name;
        int rc = read_key(in, map, pair, &name);
        if (!rc) rc = check_name(in, node_at(in, pair->key));
        if (!rc && config->n_axes == MAX_DEPTH)
            rc = fail_at(in, map, "too many axes", NULL);
        if (rc) return rc;
        config->axes =
            pl_grow(config->axes, (size_t)config->n_axes + 1, sizeof *config->axes);
        struct pl_axis *axis = &config->axes[config->n_axes++];
        *axis = (struct pl_axis){.name = pl_strdup(name)};
        rc = read_labels(in, node_at(in, pair->value), axis);
        if (!rc && (arms *= axis->n) > PL_MAX_ARMS)
            rc = fail_at(in, map, "more than 10000 arms in", "axes");
        if (rc) return rc;
    }
    return 0;
}

/* The keys that are not in the table; they belong to the file, not to an arm. */
static int read_top(struct reader *in, const char *name, const yaml_node_t *key_node,
                    const yaml_node_t *node, bool *found)
{
    bool seeds = !strcmp(name, "seeds"), axes = !strcmp(name, "axes");
    *found = seeds || axes || !strcmp(name, "title");
    if (!*found) return 0;
    if (in->label) return fail_at(in, key_node, "an arm cannot set", name);
    return seeds  ? read_seeds(in, node)
           : axes ? read_axes(in, node)
                  : read_title(in, node);
}

/* Where libyaml stopped; for what is not even characters it only gives a byte offset. */
static yaml_mark_t problem_mark(const yaml_parser_t *parser, const char *data, size_t n)
{
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error != YAML_READER_ERROR) return mark;
    mark.line = mark.column = 0;
    for (size_t i = 0; i < n && i < parser->problem_offset; i++, mark.column++)
        if (data[i] == '\n') {
            mark.line++;
            mark.column = (size_t)-1;
        }
    return mark;
}

static bool is_indented_by_tab(const char *data, size_t n, size_t line)
{
    const char *p = data;
    for (size_t i = 0; i < line && p; i++)
        if ((p = memchr(p, '\n', n - (size_t)(p - data)))) p++;
    return p && p[strspn(p, " ")] == '\t';
}

static int fail_parser(const struct reader *in, const yaml_parser_t *parser,
                       const char *data, size_t n)
{
    yaml_mark_t mark = problem_mark(parser, data, n);
    bool tab = is_indented_by_tab(data, n, mark.line);
    const char *problem = parser->problem ? parser->problem : "out of memory";
    const char *context = parser->context && !tab ? parser->context : "";
    char *where = place(in, mark);
    int rc = pl_fail(PL_ECONFIG, "%s: %s%s%s", where,
                     tab ? "a tab in the indentation, use spaces" : problem,
                     *context ? " " : "", context);
    free(where);
    return rc;
}

static int read_documents(struct reader *in, yaml_parser_t *parser, const char *data,
                          size_t n)
{
    yaml_document_t first, second;
    if (!yaml_parser_load(parser, &first)) return fail_parser(in, parser, data, n);
    int rc = 0;
    if (yaml_document_get_root_node(&first)) {
        if (!yaml_parser_load(parser, &second)) {
            rc = fail_parser(in, parser, data, n);
        } else {
            in->document = &second;
            yaml_node_t *root = yaml_document_get_root_node(&second);
            if (root)
                rc = fail_at(in, root, "a second YAML document, expected one", NULL);
            yaml_document_delete(&second);
        }
        in->document = &first;
        if (!rc) rc = read_map(in, yaml_document_get_root_node(&first), "", 1);
    }
    yaml_document_delete(&first);
    return rc;
}

int pl_config_load(struct pl_config *config, const char *path)
{
    char *data;
    size_t n;
    yaml_parser_t parser;
    int rc = pl_file_read(path, MAX_BYTES, &data, &n);
    if (rc) return rc;
    struct reader in = {.config = config, .path = path};
    if (!yaml_parser_initialize(&parser)) {
        free(data);
        return pl_fail(PL_EINPUT, "%s: cannot start libyaml", path);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)data, n);
    rc = read_documents(&in, &parser, data, n);
    yaml_parser_delete(&parser);
    free(data);
    return rc;
}
