/* From text files to token files and back. A document ends at a line that holds only
 * <|endoftext|> (which is dropped with the line break before it, and is a document's
 * end also at the end of the file) or with its file; empty ones are left out. */
#ifndef PL_TRAIN_TOKENIZE_H
#define PL_TRAIN_TOKENIZE_H

#include <stdio.h>

#include "train/token_file.h"
#include "train/tokenizer.h"

struct pl_tokenize {
    struct pl_tokenizer *tokenizer; /* borrowed */
    struct pl_token_file *out;      /* borrowed */
    int64_t bytes;                  /* of text read so far, over all files */
    /* Called now and then; nonzero stops with PL_EINTR. */
    int (*on_progress)(void *context, int64_t bytes);
    void *context;
};

/* Append the documents of path ("-": standard input) to out. Memory: a few MiB, at most
 * a few times the longest word (PL_WORD_MAX). Errors: PL_EINPUT naming file and offset:
 * missing, a folder, no text; PL_EINTR; those of pl_token_file_add. */
int pl_tokenize_file(struct pl_tokenize *job, const char *path);

/* Write the text of token files (format: one of pl_token_formats; names as in
 * train/data.h) to out. An end token becomes a line <|endoftext|> unless it is the
 * first or the last token of all. Errors: PL_EINPUT; PL_EIO; PL_EINTR. */
int pl_detokenize(struct pl_tokenize *job, const char *format, const char *names,
                  FILE *out);

#endif
