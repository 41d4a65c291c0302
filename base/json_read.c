#include "base/json_read.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_BYTES = 64 << 20 };

struct pl_json_file {
    char *name;
    json_t *root;
    char **places; /* of the handles given out */
    size_t n_places;
};

int pl_json_parse(const char *text, size_t n, const char *name,
                  struct pl_json_file **out)
{
    json_error_t error;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return pl_fail(PL_ECONFIG, "%s:%d:%d: not JSON: %s", name,
                       error.line < 1 ? 1 : error.line,
                       error.column < 1 ? 1 : error.column, error.text);
    struct pl_json_file *file = PL_NEW(1, struct pl_json_file);
    file->name = pl_strdup(name);
    file->root = root;
    *out = file;
    return 0;
}

int pl_json_read(const char *path, struct pl_json_file **out)
{
    char *text;
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, &text, &n);
    if (rc) return rc;
    rc = pl_json_parse(text, n, path, out);
    free(text);
    return rc;
}

void pl_json_free(struct pl_json_file *file)
{
    if (!file) return;
    for (size_t i = 0; i < file->n_places; i++) free(file->places[i]);
    free(file->places);
    free(file->name);
    json_decref(file->root);
    free(file);
}

/* A handle; takes place over. */
static struct pl_json_value make(struct pl_json_file *file, const json_t *node,
                                 char *place)
{
    size_t n = file->n_places;
    if ((n & (n - 1)) == 0)
        file->places = pl_grow(file->places, n ? 2 * n : 1, sizeof *file->places);
    file->places[file->n_places++] = place;
    return (struct pl_json_value){file, node, place};
}

struct pl_json_value pl_json_root(struct pl_json_file *file)
{
    return (struct pl_json_value){file, file->root, ""};
}

enum pl_json_type pl_json_type_of(struct pl_json_value value)
{
    switch (json_typeof((const json_t *)value.node)) {
    case JSON_NULL:
        return PL_JSON_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return PL_JSON_BOOL;
    case JSON_INTEGER:
        return PL_JSON_INT;
    case JSON_REAL:
        return PL_JSON_REAL;
    case JSON_STRING:
        return PL_JSON_TEXT;
    case JSON_ARRAY:
        return PL_JSON_LIST;
    case JSON_OBJECT:
        break;
    }
    return PL_JSON_MAP;
}

size_t pl_json_length(struct pl_json_value value)
{
    enum pl_json_type type = pl_json_type_of(value);
    return type == PL_JSON_LIST  ? json_array_size(value.node)
           : type == PL_JSON_MAP ? json_object_size(value.node)
                                 : 0;
}

bool pl_json_has(struct pl_json_value map, const char *key)
{
    const json_t *node = json_object_get(map.node, key); /* NULL when no map */
    return node && !json_is_null(node);
}

struct pl_json_value pl_json_item(struct pl_json_value list, size_t i)
{
    return make(list.file, json_array_get(list.node, i),
                pl_printf("%s[%zu]", list.place, i));
}

bool pl_json_next(struct pl_json_value map, const char **key,
                  struct pl_json_value *value)
{
    json_t *object = (json_t *)map.node; /* read only, but jansson takes no const */
    void *at = *key ? json_object_iter_next(object, json_object_key_to_iter(*key))
                    : json_object_iter(object); /* NULL when no map */
    if (!at) return false;
    *key = json_object_iter_key(at);
    *value = make(map.file, json_object_iter_value(at),
                  pl_printf("%s%s%s", map.place, *map.place ? "." : "", *key));
    return true;
}

/* PL_ECONFIG "FILE: place: is VALUE, expected WHAT". */
static int fail(struct pl_json_value value, const char *expected)
{
    char *text = json_dumps(value.node, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *shown = text && strlen(text) <= 40 ? text : NULL;
    static const char *const types[] = {"null",   "a boolean", "an integer", "a number",
                                        "a text", "a list",    "a map"};
    const char *root = *value.place ? "" : "the file";
    int rc = pl_fail(PL_ECONFIG, "%s: %s%s is %s, expected %s", value.file->name,
                     value.place, root, shown ? shown : types[pl_json_type_of(value)],
                     expected);
    free(text);
    return rc;
}

int pl_json_expect(struct pl_json_value value, enum pl_json_type type)
{
    static const char *const names[] = {
        "null", "true or false", "an integer", "a number", "a text", "a list", "a map"};
    return pl_json_type_of(value) == type ? 0 : fail(value, names[type]);
}

/* Find a member; expected is what a missing one should have been. */
static int find(struct pl_json_value map, const char *key, const char *expected,
                struct pl_json_value *out)
{
    if (pl_json_type_of(map) != PL_JSON_MAP) return fail(map, "a map");
    const json_t *node = json_object_get(map.node, key);
    const char *dot = *map.place ? "." : "";
    if (!node)
        return pl_fail(PL_ECONFIG, "%s: %s%s%s is missing, expected %s", map.file->name,
                       map.place, dot, key, expected);
    *out = make(map.file, node, pl_printf("%s%s%s", map.place, dot, key));
    return 0;
}

int pl_json_member(struct pl_json_value map, const char *key, struct pl_json_value *out)
{
    return find(map, key, "a value", out);
}

static const char *int_range(char *text, size_t n, int64_t min, int64_t max)
{
    snprintf(text, n, "an integer from %" PRId64 " to %" PRId64, min, max);
    return text;
}

static const char *real_range(char *text, size_t n, double min, double max)
{
    snprintf(text, n, "a number from %.15g to %.15g", min, max);
    return text;
}

int pl_json_as_int(struct pl_json_value value, int64_t min, int64_t max, int64_t *out)
{
    char range[80];
    json_int_t i = json_integer_value(value.node);
    if (pl_json_type_of(value) != PL_JSON_INT || i < min || i > max)
        return fail(value, int_range(range, sizeof range, min, max));
    *out = i;
    return 0;
}

int pl_json_as_real(struct pl_json_value value, double min, double max, double *out)
{
    char range[80];
    enum pl_json_type type = pl_json_type_of(value);
    double r = json_number_value(value.node);
    if ((type != PL_JSON_INT && type != PL_JSON_REAL) || !(r >= min && r <= max))
        return fail(value, real_range(range, sizeof range, min, max));
    *out = r;
    return 0;
}

int pl_json_as_bool(struct pl_json_value value, bool *out)
{
    int rc = pl_json_expect(value, PL_JSON_BOOL);
    if (!rc) *out = json_is_true((const json_t *)value.node);
    return rc;
}

int pl_json_as_text(struct pl_json_value value, const char **out)
{
    int rc = pl_json_expect(value, PL_JSON_TEXT);
    if (rc) return rc;
    *out = json_string_value(value.node);
    return 0;
}

int pl_json_get_int(struct pl_json_value map, const char *key, int64_t min, int64_t max,
                    int64_t *out)
{
    char range[80];
    struct pl_json_value value;
    int rc = find(map, key, int_range(range, sizeof range, min, max), &value);
    return rc ? rc : pl_json_as_int(value, min, max, out);
}

int pl_json_get_real(struct pl_json_value map, const char *key, double min, double max,
                     double *out)
{
    char range[80];
    struct pl_json_value value;
    int rc = find(map, key, real_range(range, sizeof range, min, max), &value);
    return rc ? rc : pl_json_as_real(value, min, max, out);
}

int pl_json_get_bool(struct pl_json_value map, const char *key, bool *out)
{
    struct pl_json_value value;
    int rc = find(map, key, "true or false", &value);
    return rc ? rc : pl_json_as_bool(value, out);
}

int pl_json_get_text(struct pl_json_value map, const char *key, const char **out)
{
    struct pl_json_value value;
    int rc = find(map, key, "a text", &value);
    return rc ? rc : pl_json_as_text(value, out);
}
