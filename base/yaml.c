#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_BYTES = 16 << 20, MAX_NODES = 100000, MAX_DEPTH = 32, MAX_ANCHORS = 1000 };

struct anchor {
    char *name;
    struct pl_yaml *node;
};

struct door {
    const char *path;
    char *data;
    size_t n_data;
    yaml_parser_t parser;
    struct pl_yaml_file *file;
    struct anchor *anchors;
    int n_anchors;
};

static int fail_at(const struct door *door, yaml_mark_t mark, const char *problem,
                   const char *detail)
{
    return pl_fail(PL_ECONFIG, "%s:%zu:%zu: %s%s%s", door->path, mark.line + 1,
                   mark.column + 1, problem, *detail ? " " : "", detail);
}

/* Where libyaml stopped; for what is not even characters it only gives a byte offset.
 */
static yaml_mark_t problem_mark(const struct door *door)
{
    yaml_mark_t mark = door->parser.problem_mark;
    if (door->parser.error != YAML_READER_ERROR) return mark;
    mark.line = mark.column = 0;
    for (size_t i = 0; i < door->n_data && i < door->parser.problem_offset; i++) {
        mark.column++;
        if (door->data[i] != '\n') continue;
        mark.line++;
        mark.column = 0;
    }
    return mark;
}

static bool is_indented_by_tab(const struct door *door, size_t line)
{
    const char *p = door->data, *end = p + door->n_data;
    for (size_t i = 0; i < line && p; i++)
        if ((p = memchr(p, '\n', (size_t)(end - p)))) p++;
    return p && p[strspn(p, " ")] == '\t';
}

static int fail_parser(const struct door *door)
{
    const yaml_parser_t *parser = &door->parser;
    yaml_mark_t mark = problem_mark(door);
    if (is_indented_by_tab(door, mark.line))
        return fail_at(door, mark, "a tab in the indentation, use spaces", "");
    return fail_at(door, mark, parser->problem ? parser->problem : "out of memory",
                   parser->context ? parser->context : "");
}

static int next_event(struct door *door, yaml_event_t *event)
{
    return yaml_parser_parse(&door->parser, event) ? 0 : fail_parser(door);
}

static struct pl_yaml *add_node(struct door *door, const yaml_event_t *event)
{
    struct pl_yaml_file *file = door->file;
    if ((file->n & (file->n - 1)) == 0)
        file->nodes = pl_grow(file->nodes, file->n ? 2 * (size_t)file->n : 1,
                              sizeof *file->nodes);
    struct pl_yaml *node = PL_NEW(1, struct pl_yaml);
    file->nodes[file->n++] = node;
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    return node;
}

static void append(struct pl_yaml *node, struct pl_yaml *item)
{
    if ((node->n & (node->n - 1)) == 0)
        node->items = pl_grow(node->items, node->n ? 2 * (size_t)node->n : 1,
                              sizeof(struct pl_yaml *));
    node->items[node->n++] = item;
}

static int read_alias(struct door *door, const yaml_event_t *event,
                      struct pl_yaml **out)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (int i = door->n_anchors - 1; i >= 0; i--) {
        if (strcmp(door->anchors[i].name, name)) continue;
        struct pl_yaml *node = add_node(door, event);
        size_t line = node->line, column = node->column;
        *node = *door->anchors[i].node;
        node->line = line;
        node->column = column;
        node->alias = true;
        *out = node;
        return 0;
    }
    return fail_at(door, event->start_mark, "no anchor (complete) for alias", name);
}

/* An anchor counts from the end of its node, so that no node can hold itself. */
static int add_anchor(struct door *door, const yaml_event_t *event,
                      const yaml_char_t *name, struct pl_yaml *node)
{
    if (!name) return 0;
    if (door->n_anchors == MAX_ANCHORS)
        return fail_at(door, event->start_mark, "too many anchors", "");
    door->anchors =
        pl_grow(door->anchors, (size_t)door->n_anchors + 1, sizeof *door->anchors);
    door->anchors[door->n_anchors++] =
        (struct anchor){pl_strdup((const char *)name), node};
    return 0;
}

static int read_node(struct door *door, const yaml_event_t *event, int depth,
                     struct pl_yaml **out);

/* Items of a list or map up to its end event. */
static int read_items(struct door *door, yaml_event_type_t end, int depth,
                      struct pl_yaml *node)
{
    for (;;) {
        yaml_event_t event;
        struct pl_yaml *item;
        int rc = next_event(door, &event);
        if (rc) return rc;
        bool done = event.type == end;
        if (!done) rc = read_node(door, &event, depth + 1, &item);
        yaml_event_delete(&event);
        if (rc || done) return rc;
        append(node, item);
    }
}

static int read_node(struct door *door, const yaml_event_t *event, int depth,
                     struct pl_yaml **out)
{
    if (depth > MAX_DEPTH)
        return fail_at(door, event->start_mark, "nested deeper than 32 levels", "");
    if (door->file->n == MAX_NODES)
        return fail_at(door, event->start_mark, "more than 100000 entries", "");
    if (event->type == YAML_ALIAS_EVENT) return read_alias(door, event, out);
    struct pl_yaml *node = *out = add_node(door, event);
    if (event->type == YAML_SCALAR_EVENT) {
        node->length = event->data.scalar.length;
        node->text = pl_alloc(node->length + 1, 1);
        memcpy(node->text, event->data.scalar.value, node->length);
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        return add_anchor(door, event, event->data.scalar.anchor, node);
    }
    bool map = event->type == YAML_MAPPING_START_EVENT;
    node->kind = map ? PL_YAML_MAP : PL_YAML_LIST;
    int rc = read_items(door, map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT,
                        depth, node);
    if (rc) return rc;
    return add_anchor(door, event,
                      map ? event->data.mapping_start.anchor
                          : event->data.sequence_start.anchor,
                      node);
}

/* The stream: at most one document. */
static int read_stream(struct door *door)
{
    int documents = 0;
    for (;;) {
        yaml_event_t event;
        int rc = next_event(door, &event);
        if (rc) return rc;
        yaml_event_type_t type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && documents++)
            rc = fail_at(door, event.start_mark, "a second YAML document, expected one",
                         "");
        else if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
                 type == YAML_MAPPING_START_EVENT || type == YAML_ALIAS_EVENT)
            rc = read_node(door, &event, 1, &door->file->root);
        yaml_event_delete(&event);
        if (rc || type == YAML_STREAM_END_EVENT) return rc;
    }
}

/* Takes data over. */
static int parse(const char *path, char *data, size_t n, struct pl_yaml_file **out)
{
    struct door door = {.path = path, .data = data, .n_data = n};
    int rc;
    door.file = PL_NEW(1, struct pl_yaml_file);
    if (yaml_parser_initialize(&door.parser)) {
        yaml_parser_set_input_string(&door.parser, (const unsigned char *)door.data,
                                     door.n_data);
        rc = read_stream(&door);
    } else {
        rc = pl_fail(PL_EINPUT, "%s: cannot start libyaml", path);
    }
    yaml_parser_delete(&door.parser);
    for (int i = 0; i < door.n_anchors; i++) free(door.anchors[i].name);
    free(door.anchors);
    free(door.data);
    if (rc)
        pl_yaml_free(door.file);
    else
        *out = door.file;
    return rc;
}

int pl_yaml_read(const char *path, struct pl_yaml_file **out)
{
    char *data;
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, &data, &n);
    return rc ? rc : parse(path, data, n, out);
}

int pl_yaml_parse(const char *text, const char *name, struct pl_yaml_file **out)
{
    return parse(name, pl_strdup(text), strlen(text), out);
}

void pl_yaml_free(struct pl_yaml_file *file)
{
    if (!file) return;
    for (int i = 0; i < file->n; i++) {
        if (!file->nodes[i]->alias) {
            free(file->nodes[i]->text);
            free(file->nodes[i]->items);
        }
        free(file->nodes[i]);
    }
    free(file->nodes);
    free(file);
}
