/* The formats are described in train/data_tokens.c, data_nanogpt.c and
 * data_megatron.c. Megatron: one sequence a document, as its preprocess_data.py
 * --append-eod writes them. */
#include "train/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { LLMC, NANOGPT, MEGATRON };
enum { LLMC_HEADER = 1024, LLMC_MAGIC = 20240520, LLMC_VERSION = 1 };
enum { MEGATRON_U16 = 8, MEGATRON_I32 = 4, MEGATRON_NARROW = 65500 };
const char *const pl_token_formats[] = {"llmc", "nanogpt", "megatron", NULL};

struct pl_token_file {
    int format, width;
    int32_t end;
    char *path;
    struct pl_file *file;
    struct pl_file *index; /* megatron */
    int32_t *lengths;      /* megatron: of the documents so far */
    size_t lengths_room;
    int64_t tokens, documents;
    int64_t begun; /* tokens before the current document */
};

static void put(unsigned char *b, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) b[i] = (unsigned char)(value >> 8 * i);
}

static int write_bytes(struct pl_token_file *f, struct pl_file *file, const void *bytes,
                       size_t n)
{
    if (fwrite(bytes, 1, n, pl_file_stream(file)) == n) return 0;
    return pl_fail(PL_EIO, "%s: cannot write: %s", f->path, strerror(errno));
}

static int write_number(struct pl_token_file *f, struct pl_file *file, uint64_t value,
                        int width)
{
    unsigned char b[8];
    put(b, value, width);
    return write_bytes(f, file, b, (size_t)width);
}

/* A header of llm.c; count 0 until it is known. */
static int write_header(struct pl_token_file *f)
{
    unsigned char b[LLMC_HEADER] = {0};
    put(b, LLMC_MAGIC, 4);
    put(b + 4, LLMC_VERSION, 4);
    put(b + 8, (uint64_t)f->tokens, 4);
    return write_bytes(f, f->file, b, sizeof b);
}

static int open_files(struct pl_token_file *f)
{
    f->file = pl_file_create(f->path);
    if (!f->file) return PL_EIO;
    int flags = fcntl(fileno(pl_file_stream(f->file)), F_GETFL);
    if (flags & O_APPEND) /* a pipe, or a file that is already open */
        return pl_fail(PL_EUSAGE, "%s: expected the name of a regular file", f->path);
    if (f->format == LLMC) return write_header(f);
    if (f->format == NANOGPT) return 0;
    char *index = pl_printf("%.*s.idx", (int)strlen(f->path) - 4, f->path);
    f->index = pl_file_create(index);
    free(index);
    return f->index ? 0 : PL_EIO;
}

int pl_token_file_create(const char *format, const char *path, int vocab, int32_t end,
                         struct pl_token_file **out)
{
    int i = 0;
    *out = NULL;
    while (pl_token_formats[i] && strcmp(pl_token_formats[i], format)) i++;
    if (!pl_token_formats[i])
        return pl_fail_unknown(PL_EUSAGE, "--format", "format", format,
                               pl_token_formats);
    bool wide = vocab > (i == MEGATRON ? MEGATRON_NARROW - 1 : 1 << 16);
    if (wide && i != MEGATRON)
        return pl_fail(PL_EUNSUP,
                       "%s: tokens of format %s have 16 bits, the vocabulary has %d; "
                       "megatron has wider ones",
                       path, format, vocab);
    if (i == MEGATRON && !pl_path_ends(path, ".bin"))
        return pl_fail(PL_EUSAGE,
                       "%s: expected NAME.bin, format megatron writes NAME.idx too",
                       path);
    struct pl_token_file *f = PL_NEW(1, struct pl_token_file);
    f->format = i;
    f->width = wide ? 4 : 2;
    f->end = end;
    f->path = pl_strdup(path);
    int rc = open_files(f);
    if (rc)
        pl_token_file_discard(f);
    else
        *out = f;
    return rc;
}

int pl_token_file_add(struct pl_token_file *file, const int32_t *ids, size_t n)
{
    unsigned char buffer[1 << 14];
    const size_t most = sizeof buffer / (size_t)file->width;
    if (file->format == LLMC && file->tokens + (int64_t)n > INT32_MAX)
        return pl_fail(PL_EUNSUP,
                       "%s: format llmc counts at most %d tokens in a file; cut the "
                       "text, or use --format megatron",
                       file->path, INT32_MAX);
    file->tokens += (int64_t)n;
    while (n > 0) {
        size_t part = n < most ? n : most;
        for (size_t i = 0; i < part; i++)
            put(buffer + i * (size_t)file->width, (uint32_t)ids[i], file->width);
        int rc = write_bytes(file, file->file, buffer, part * (size_t)file->width);
        if (rc) return rc;
        ids += part;
        n -= part;
    }
    return 0;
}

int pl_token_file_begin(struct pl_token_file *file)
{
    file->begun = file->tokens;
    return file->format == LLMC ? pl_token_file_add(file, &file->end, 1) : 0;
}

int pl_token_file_end(struct pl_token_file *file)
{
    int rc = file->format == LLMC ? 0 : pl_token_file_add(file, &file->end, 1);
    file->documents++;
    if (rc || file->format != MEGATRON) return rc;
    if (file->tokens - file->begun > INT32_MAX)
        return pl_fail(PL_EUNSUP, "%s: document %lld has more than %d tokens",
                       file->path, (long long)file->documents, INT32_MAX);
    if ((size_t)file->documents > file->lengths_room) {
        file->lengths_room = 2 * (size_t)file->documents + 1024;
        file->lengths =
            pl_grow(file->lengths, file->lengths_room, sizeof *file->lengths);
    }
    file->lengths[file->documents - 1] = (int32_t)(file->tokens - file->begun);
    return 0;
}

int64_t pl_token_file_tokens(const struct pl_token_file *file)
{
    return file->tokens;
}

int64_t pl_token_file_documents(const struct pl_token_file *file)
{
    return file->documents;
}

static int write_index(struct pl_token_file *f)
{
    const int64_t S = f->documents;
    int rc = write_bytes(f, f->index, "MMIDIDX\0\0", 9);
    if (!rc) rc = write_number(f, f->index, 1, 8);
    if (!rc)
        rc = write_number(f, f->index, f->width == 4 ? MEGATRON_I32 : MEGATRON_U16, 1);
    if (!rc) rc = write_number(f, f->index, (uint64_t)S, 8);
    if (!rc) rc = write_number(f, f->index, (uint64_t)S + 1, 8);
    for (int64_t i = 0; i < S && !rc; i++)
        rc = write_number(f, f->index, (uint32_t)f->lengths[i], 4);
    uint64_t at = 0;
    for (int64_t i = 0; i < S && !rc; i++) {
        rc = write_number(f, f->index, at, 8);
        at += (uint64_t)f->lengths[i] * (uint64_t)f->width;
    }
    for (int64_t i = 0; i <= S && !rc; i++)
        rc = write_number(f, f->index, (uint64_t)i, 8);
    if (!rc && fflush(pl_file_stream(f->index)))
        rc = pl_fail(PL_EIO, "%s: cannot write its .idx: %s", f->path, strerror(errno));
    return rc;
}

/* Takes file and index out of f, which is left for pl_token_file_discard. */
static int commit(struct pl_token_file *f)
{
    struct pl_file *file = f->file, *index = f->index;
    int rc = 0;
    if (f->format == MEGATRON) rc = write_index(f);
    if (!rc && f->format == LLMC) {
        if (fseek(pl_file_stream(file), 0, SEEK_SET))
            rc = pl_fail(PL_EIO, "%s: cannot write: %s", f->path, strerror(errno));
        if (!rc) rc = write_header(f);
    }
    if (rc) return rc;
    f->file = f->index = NULL;
    rc = pl_file_commit(file);
    if (!index) return rc;
    if (!rc) return pl_file_commit(index);
    pl_file_discard(index);
    return rc;
}

int pl_token_file_commit(struct pl_token_file *file)
{
    int rc = commit(file);
    pl_token_file_discard(file);
    return rc;
}

void pl_token_file_discard(struct pl_token_file *file)
{
    if (!file) return;
    pl_file_discard(file->file);
    pl_file_discard(file->index);
    free(file->lengths);
    free(file->path);
    free(file);
}
