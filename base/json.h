/* Streaming JSON writer for --json output: keys in the order written, %.17g numbers
 * (NaN and infinities become null), UTF-8 passed through, control characters escaped.
 */
#ifndef PL_BASE_JSON_H
#define PL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pl_json {
    FILE *out;
    int depth;
    bool one_line;  /* set after pl_json_open: no line breaks inside, for JSON lines */
    int line_depth; /* set after pl_json_open: entries down to here get a line each (1)
                     */
    bool first[32]; /* nothing written yet at this depth */
};

void pl_json_open(struct pl_json *json, FILE *out);
void pl_json_close(struct pl_json *json); /* final newline; asserts that depth is 0 */
/* key is NULL inside an array and at the top. */
void pl_json_begin(struct pl_json *json, const char *key,
                   char bracket);                     /* '{' or '[' */
void pl_json_end(struct pl_json *json, char bracket); /* '}' or ']' */
void pl_json_real(struct pl_json *json, const char *key, double value);
void pl_json_int(struct pl_json *json, const char *key, int64_t value);
void pl_json_uint(struct pl_json *json, const char *key, uint64_t value);
/* A number that is already printed, for exact decimals. */
void pl_json_number(struct pl_json *json, const char *key, const char *digits);
void pl_json_bool(struct pl_json *json, const char *key, bool value);
void pl_json_text(struct pl_json *json, const char *key,
                  const char *value); /* NULL: null */

#endif
