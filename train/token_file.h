/* Writing token files in the formats that train/data*.c reads. Owned: ended by
 * pl_token_file_commit or pl_token_file_discard; until then the target is untouched. */
#ifndef PL_TRAIN_TOKEN_FILE_H
#define PL_TRAIN_TOKEN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_token_file;

extern const char
    *const pl_token_formats[]; /* llmc nanogpt megatron, NULL-terminated */

/* A stream cut into files of `tokens` each, wherever that is in a document, as llm.c's
 * dev/data/fineweb.py does it: NAME_000001.bin and so on for path NAME.bin; valid: the
 * first is NAME_val_000000.bin, the others NAME_train_000001.bin and so on. */
struct pl_token_shards {
    int64_t tokens; /* 0: one file, path itself */
    bool valid;
};
/* Name of file k, from 0; caller frees. */
char *pl_token_shard_path(const char *path, struct pl_token_shards shards, int k);
/* One that is there already, of any number; caller frees. NULL: none, or no shards. */
char *pl_token_shards_there(const char *path, struct pl_token_shards shards);

/* vocab: ids are below it; it decides the bytes of a token (megatron: 2 below 65500,
 * else 4). end: the id between documents. Errors: PL_EUSAGE an unknown format, a path
 * that is no name for it, or shards of megatron; PL_EUNSUP ids too wide for the format;
 * PL_EIO. */
int pl_token_file_create(const char *format, const char *path,
                         struct pl_token_shards shards, int vocab, int32_t end,
                         struct pl_token_file **out);
/* A document starts, n more tokens of it, it ends; llmc puts the end token before it,
 * the others behind it. Errors: PL_EIO; PL_EUNSUP more tokens than the format can
 * count. */
int pl_token_file_begin(struct pl_token_file *file);
int pl_token_file_add(struct pl_token_file *file, const int32_t *ids, size_t n);
int pl_token_file_end(struct pl_token_file *file);

int64_t pl_token_file_tokens(const struct pl_token_file *file); /* so far */
int64_t pl_token_file_documents(const struct pl_token_file *file);
int pl_token_file_shards(const struct pl_token_file *file);

/* Shards of an earlier stream that follow the last one by number are removed. */
int pl_token_file_commit(struct pl_token_file *file);
void pl_token_file_discard(struct pl_token_file *file); /* NULL is fine */

#endif
