/* Reading JSON files that others wrote (base/json.h writes). A value is a small handle
 * into a document, passed by value; texts and handles are borrowed from the document
 * and live as long as it does. Every getter names file, place and expectation: "FILE:
 * a.b[3] is "x", expected an integer from 1 to 8". The only door to jansson. Limits:
 * 64 MiB; duplicate keys and NUL characters are errors. */
#ifndef PL_BASE_JSON_READ_H
#define PL_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_json_file;

struct pl_json_value {
    struct pl_json_file *file;
    const void *node;
    const char *place; /* "a.b[3]", "" for the root */
};

enum pl_json_type {
    PL_JSON_NULL,
    PL_JSON_BOOL,
    PL_JSON_INT,
    PL_JSON_REAL,
    PL_JSON_TEXT,
    PL_JSON_LIST,
    PL_JSON_MAP
};

/* Read path; *out is the caller's (pl_json_free). Errors: PL_EINPUT (cannot read),
 * PL_ECONFIG "FILE:line:column: what is wrong". */
int pl_json_read(const char *path, struct pl_json_file **out);
/* Same for n bytes in memory; name starts the messages. */
int pl_json_parse(const char *text, size_t n, const char *name,
                  struct pl_json_file **out);
void pl_json_free(struct pl_json_file *file);
struct pl_json_value pl_json_root(struct pl_json_file *file);

enum pl_json_type pl_json_type_of(struct pl_json_value value);
size_t pl_json_length(struct pl_json_value value); /* of a list or map, else 0 */
/* Does map have key, and not null? */
bool pl_json_has(struct pl_json_value map, const char *key);
/* Entry i < length of a list. */
struct pl_json_value pl_json_item(struct pl_json_value list, size_t i);
/* Entry of a map after the one that *key names, in the order of the file; NULL: the
 * first. false: there is none. *key must come from here. */
bool pl_json_next(struct pl_json_value map, const char **key,
                  struct pl_json_value *value);
/* Errors: PL_ECONFIG when map is no map or has no such key. */
int pl_json_member(struct pl_json_value map, const char *key,
                   struct pl_json_value *out);

/* The value itself. Errors: PL_ECONFIG for another type or out of range; *out is then
 * untouched. A real takes an integer too, an integer takes no real. */
int pl_json_as_int(struct pl_json_value value, int64_t min, int64_t max, int64_t *out);
int pl_json_as_real(struct pl_json_value value, double min, double max, double *out);
int pl_json_as_bool(struct pl_json_value value, bool *out);
int pl_json_as_text(struct pl_json_value value, const char **out);
int pl_json_expect(struct pl_json_value value, enum pl_json_type type);

/* A member of a map. Errors: as above, and when it is missing. */
int pl_json_get_int(struct pl_json_value map, const char *key, int64_t min, int64_t max,
                    int64_t *out);
int pl_json_get_real(struct pl_json_value map, const char *key, double min, double max,
                     double *out);
int pl_json_get_bool(struct pl_json_value map, const char *key, bool *out);
int pl_json_get_text(struct pl_json_value map, const char *key, const char **out);

#endif
