/* Where tokens come from; internal to train/data*.c. A source is a flat array of tokens
 * of one or two bytes (little-endian), in memory or in a mapped file. */
#ifndef PL_TRAIN_DATA_SOURCE_H
#define PL_TRAIN_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_source {
    const char *name;           /* for messages; borrowed */
    const unsigned char *bytes; /* first token */
    int64_t n;                  /* tokens */
    int width;                  /* bytes per token */
    size_t header;              /* bytes of the file before the first token */
    void *map;                  /* mapped file, or NULL */
    size_t map_bytes;
    char *text; /* owned memory, or NULL */
};

struct pl_data_type {
    const char *name, *summary, *source;
    double bytes_per_token; /* NaN: unknown */
    bool needs_path;
    int (*load)(const char *path, struct pl_source *out); /* PL_EINPUT; out untouched */
};

extern const struct pl_data_type pl_data_grammar, pl_data_text, pl_data_token_file;

/* Map a whole file; bytes, n, width as for text. PL_EINPUT: missing, not a file, empty.
 */
int pl_source_map(const char *path, struct pl_source *out);
void pl_source_free(struct pl_source *source);

static inline int32_t pl_source_token(const struct pl_source *s, int64_t i)
{
    return s->width == 1 ? s->bytes[i] : s->bytes[2 * i] | s->bytes[2 * i + 1] << 8;
}

#endif
