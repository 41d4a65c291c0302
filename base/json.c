#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum { MAX_DEPTH = sizeof((struct pl_json){0}.first) / sizeof(bool) };

static void put_string(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            putc_unlocked(c, out);
    }
    putc_unlocked('"', out);
}

/* Comma, line and key that come before a value: one line for each top-level entry. */
static void put_key(struct pl_json *json, const char *key)
{
    bool *first = &json->first[json->depth];
    assert(json->depth > 0 || *first); /* one value at the top */
    if (!*first) putc(',', json->out);
    if (json->depth && json->depth <= json->line_depth && !json->one_line)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    else if (!*first)
        putc(' ', json->out);
    *first = false;
    if (!key) return;
    put_string(json->out, key);
    fputs(": ", json->out);
}

void pl_json_open(struct pl_json *json, FILE *out)
{
    *json = (struct pl_json){.out = out, .line_depth = 1};
    json->first[0] = true;
}

void pl_json_close(struct pl_json *json)
{
    assert(json->depth == 0);
    putc('\n', json->out);
}

void pl_json_begin(struct pl_json *json, const char *key, char bracket)
{
    assert((bracket == '{' || bracket == '[') && json->depth + 1 < MAX_DEPTH);
    put_key(json, key);
    putc(bracket, json->out);
    json->first[++json->depth] = true;
}

void pl_json_end(struct pl_json *json, char bracket)
{
    assert((bracket == '}' || bracket == ']') && json->depth > 0);
    if (json->depth <= json->line_depth && !json->first[json->depth] && !json->one_line)
        fprintf(json->out, "\n%*s", 2 * (json->depth - 1), "");
    putc(bracket, json->out);
    json->depth--;
}

void pl_json_real(struct pl_json *json, const char *key, double value)
{
    put_key(json, key);
    if (isfinite(value))
        fprintf(json->out, "%.17g", value);
    else
        fputs("null", json->out);
}

void pl_json_int(struct pl_json *json, const char *key, int64_t value)
{
    put_key(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void pl_json_uint(struct pl_json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void pl_json_number(struct pl_json *json, const char *key, const char *digits)
{
    put_key(json, key);
    fputs(digits, json->out);
}

void pl_json_bool(struct pl_json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->out);
}

void pl_json_text(struct pl_json *json, const char *key, const char *value)
{
    put_key(json, key);
    if (value)
        put_string(json->out, value);
    else
        fputs("null", json->out);
}
