/* Where tokens come from; internal to train/data*.c. A source is one stream of tokens:
 * the shards in their order, one after another, or a text in memory.
 *
 * Shards are read with pread, a window at a time, and not mapped: a file that shrinks
 * or fails under a running job is then an error with a name instead of SIGBUS. A
 * window of 1024 tokens costs 3.5 us so and 2.1 us from a map, nothing beside training.
 * Nothing here reads a whole file. One thread at a time per source. */
#ifndef PL_TRAIN_DATA_SOURCE_H
#define PL_TRAIN_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a token is stored; little-endian. */
enum pl_token_type {
    PL_TOKEN_U8,
    PL_TOKEN_I8,
    PL_TOKEN_I16,
    PL_TOKEN_U16,
    PL_TOKEN_I32,
    PL_TOKEN_U32,
    PL_TOKEN_I64
};
int pl_token_bytes(enum pl_token_type type);

struct pl_shard {
    char *path;         /* owned */
    int fd;             /* -1: closed for now */
    int64_t bytes;      /* size of the file when it was opened */
    int64_t changed[3]; /* its inode, seconds and nanoseconds of its last change */
    int64_t offset;     /* of the first token in the file, bytes */
    int64_t n;          /* tokens */
    int64_t first;      /* number in the stream of its first token */
    enum pl_token_type type;
};

struct pl_source { /* owned: pl_source_free */
    int n_shards;
    struct pl_shard *shards;
    int64_t n;     /* tokens of all */
    char *text;    /* the only shard's bytes, when they are in memory */
    int n_open;    /* file descriptors held */
    int next_shut; /* shard whose turn it is to be closed */
};

struct pl_data_type {
    const char *name, *summary, *source;
    double bytes_per_token; /* NaN: unknown */
    /* A text made here (no path is needed), or NULL: n bytes, the caller's. */
    char *(*make)(int64_t *n);
    /* Offset, n and type of a shard whose path, fd and bytes are set. PL_EINPUT. */
    int (*open)(struct pl_shard *shard);
    const char *suffix; /* file names may lack it; "" */
};

extern const struct pl_data_type pl_data_grammar, pl_data_text, pl_data_token_file,
    pl_data_nanogpt, pl_data_megatron;

/* The files that the value of a key names: one path, or several paths and patterns
 * (* ? [) between spaces, in their order, what a pattern finds sorted. Errors:
 * PL_EINPUT nothing found, a folder not readable; PL_ECONFIG one file twice. */
int pl_data_paths(const char *names, char ***paths, int *n);
void pl_data_paths_free(char **paths, int n);

/* Open the files that names stands for (NULL where the type makes its text). *out is
 * untouched on error. Errors: those of pl_data_paths; PL_EINPUT a file missing, no
 * regular file, empty, not of this type. */
int pl_source_open(const struct pl_data_type *type, const char *names,
                   struct pl_source *out);
void pl_source_free(struct pl_source *source);

/* Tokens first .. first+n-1 of the stream into ids. PL_EINPUT: the file, the offset
 * and the id of the first one that is not in [0, vocab); a file that was written to
 * since it was opened (size, time of change), replaced between two times that it was
 * open, or cannot be read. */
int pl_source_read(struct pl_source *source, int64_t first, int64_t n, int vocab,
                   int32_t *ids);

/* n bytes of the file from offset. PL_EINPUT: not there, or not readable. */
int pl_shard_read(const struct pl_shard *shard, int64_t offset, void *buffer, size_t n);
/* Open path for reading: fd and bytes. PL_EINPUT: missing, no regular file, empty. */
int pl_shard_open(struct pl_shard *shard);

/* What the first bytes of a file say. */
enum pl_file_kind {
    PL_FILE_UNKNOWN, /* raw numbers, or text in another script than Latin */
    PL_FILE_TEXT,    /* printable ASCII so far */
    PL_FILE_LLMC,
    PL_FILE_OTHER /* certainly no tokens and no text */
};
enum pl_file_kind pl_data_guess(const struct pl_shard *shard);
/* The same for bytes in memory, the first of a file; *what is it in words. */
enum pl_file_kind pl_data_guess_bytes(const unsigned char *b, size_t n,
                                      const char **what);
/* PL_EINPUT: "PATH: `cause`; it is WHAT (the setting that reads it)". */
int pl_data_fail_kind(const struct pl_shard *shard, const char *cause);

/* Little-endian numbers at any address. */
static inline uint32_t pl_le32(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}

static inline uint64_t pl_le64(const unsigned char *b)
{
    return pl_le32(b) | (uint64_t)pl_le32(b + 4) << 32;
}

#endif
