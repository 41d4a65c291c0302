/* The formats are described in train/data_tokens.c, data_nanogpt.c and
 * data_megatron.c. Megatron: one sequence a document, as its preprocess_data.py
 * --append-eod writes them. */
#include "train/token_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    struct pl_token_shards shards;
    struct pl_file **files; /* [n_files] shards, the last is being written */
    int n_files;
    int64_t in_file;       /* tokens of the last */
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

static struct pl_file *current(const struct pl_token_file *f)
{
    return f->files[f->n_files - 1];
}

/* A header of llm.c; count 0 until it is known. */
static int write_header(struct pl_token_file *f)
{
    unsigned char b[LLMC_HEADER] = {0};
    put(b, LLMC_MAGIC, 4);
    put(b + 4, LLMC_VERSION, 4);
    put(b + 8, (uint64_t)f->in_file, 4);
    return write_bytes(f, current(f), b, sizeof b);
}

char *pl_token_shard_path(const char *path, struct pl_token_shards shards, int k)
{
    const int stem = (int)strlen(path) - (pl_path_ends(path, ".bin") ? 4 : 0);
    if (!shards.tokens) return pl_strdup(path);
    if (!shards.valid) return pl_printf("%.*s_%06d.bin", stem, path, k + 1);
    return pl_printf("%.*s_%s_%06d.bin", stem, path, k ? "train" : "val", k);
}

/* Is name STEM_000001.bin, or with valid STEM_val_000000.bin or STEM_train_000001.bin,
 * with any number? */
static bool is_shard(const char *name, const char *stem, size_t n, bool valid)
{
    int end = 0;
    if (strncmp(name, stem, n)) return false;
    name += n;
    if (valid && strncmp(name, "_val_", 5) && strncmp(name, "_train_", 7)) return false;
    if (valid) name = strchr(name + 1, '_');
    return sscanf(name, "_%*6[0-9].bin%n", &end) == 0 && end == 11 && !name[end];
}

char *pl_token_shards_there(const char *path, struct pl_token_shards shards)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t stem = strlen(name) - (pl_path_ends(name, ".bin") ? 4 : 0);
    char *folder = pl_printf("%.*s", slash ? (int)(slash - path) + 1 : 0, path);
    char *found = NULL;
    DIR *dir = shards.tokens ? opendir(*folder ? folder : ".") : NULL;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
        if (is_shard(entry->d_name, name, stem, shards.valid))
            found = pl_printf("%s%s", folder, entry->d_name);
    if (dir) closedir(dir);
    free(folder);
    return found;
}

/* A pipe, or a file that is already open, has no header to come back to; a pipe would
 * wait for its reader. */
static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

/* The next shard. */
static int open_file(struct pl_token_file *f)
{
    char *path = pl_token_shard_path(f->path, f->shards, f->n_files);
    const bool regular = is_regular(path);
    struct pl_file *file = regular ? pl_file_create(path) : NULL;
    if (!regular) pl_fail(PL_EUSAGE, "%s: expected the name of a regular file", path);
    free(path);
    if (!file) return regular ? PL_EIO : PL_EUSAGE;
    f->files = pl_grow(f->files, (size_t)f->n_files + 1, sizeof *f->files);
    f->files[f->n_files++] = file;
    f->in_file = 0;
    int flags = fcntl(fileno(pl_file_stream(file)), F_GETFL);
    if (flags & O_APPEND) /* a pipe, or a file that is already open */
        return pl_fail(PL_EUSAGE, "%s: expected the name of a regular file", f->path);
    return f->format == LLMC ? write_header(f) : 0;
}

/* Its header says what it has; it is not held open. */
static int finish_file(struct pl_token_file *f)
{
    int rc = 0;
    if (f->format == LLMC && fseek(pl_file_stream(current(f)), 0, SEEK_SET))
        return pl_fail(PL_EIO, "%s: cannot write: %s", f->path, strerror(errno));
    if (f->format == LLMC) rc = write_header(f);
    return rc ? rc : pl_file_finish(current(f));
}

static int open_files(struct pl_token_file *f)
{
    int rc = open_file(f);
    if (rc || f->format != MEGATRON) return rc;
    char *index = pl_printf("%.*s.idx", (int)strlen(f->path) - 4, f->path);
    f->index = pl_file_create(index);
    free(index);
    return f->index ? 0 : PL_EIO;
}

int pl_token_file_create(const char *format, const char *path,
                         struct pl_token_shards shards, int vocab, int32_t end,
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
    if (i == MEGATRON && shards.tokens)
        return pl_fail(PL_EUSAGE,
                       "%s: format megatron is not cut into files: it counts any "
                       "number of tokens",
                       path);
    if (i == LLMC && shards.tokens > INT32_MAX)
        return pl_fail(PL_EUSAGE,
                       "--shard: format llmc counts at most %d tokens in a file",
                       INT32_MAX);
    struct pl_token_file *f = PL_NEW(1, struct pl_token_file);
    f->shards = shards;
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

/* As many of n tokens as there is room for in the current file and in the buffer. */
static int add_part(struct pl_token_file *f, const int32_t *ids, size_t n, size_t *part)
{
    unsigned char buffer[1 << 14];
    const size_t width = (size_t)f->width, most = sizeof buffer / width;
    int rc = 0;
    if (f->shards.tokens && f->in_file == f->shards.tokens) {
        rc = finish_file(f);
        if (!rc) rc = open_file(f);
        if (rc) return rc;
    }
    if (n > most) n = most;
    if (f->shards.tokens && (int64_t)n > f->shards.tokens - f->in_file)
        n = (size_t)(f->shards.tokens - f->in_file);
    for (size_t i = 0; i < n; i++) put(buffer + i * width, (uint32_t)ids[i], f->width);
    f->tokens += (int64_t)n;
    f->in_file += (int64_t)n;
    *part = n;
    return write_bytes(f, current(f), buffer, n * width);
}

int pl_token_file_add(struct pl_token_file *file, const int32_t *ids, size_t n)
{
    size_t part = 0;
    int rc = 0;
    if (file->format == LLMC && !file->shards.tokens &&
        file->tokens + (int64_t)n > INT32_MAX)
        return pl_fail(PL_EUNSUP,
                       "%s: format llmc counts at most %d tokens in a file; --shard "
                       "cuts it, or use --format megatron",
                       file->path, INT32_MAX);
    for (; n > 0 && !rc; ids += part, n -= part) rc = add_part(file, ids, n, &part);
    return rc;
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

int pl_token_file_shards(const struct pl_token_file *file)
{
    return file->n_files;
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
    return rc;
}

/* Takes files and index out of f, which is left for pl_token_file_discard. */
static int commit(struct pl_token_file *f)
{
    int rc = finish_file(f);
    if (!rc && f->index) rc = write_index(f);
    if (!rc && f->index) rc = pl_file_finish(f->index);
    for (int i = 0; i < f->n_files && !rc; i++) {
        rc = pl_file_commit(f->files[i]);
        f->files[i] = NULL;
    }
    if (rc || !f->index) return rc;
    struct pl_file *index = f->index;
    f->index = NULL;
    return pl_file_commit(index);
}

static void remove_old(const struct pl_token_file *f)
{
    bool removed = f->shards.tokens > 0;
    for (int k = f->n_files; removed; k++) {
        char *path = pl_token_shard_path(f->path, f->shards, k);
        removed = !unlink(path);
        free(path);
    }
}

int pl_token_file_commit(struct pl_token_file *file)
{
    int rc = commit(file);
    if (!rc) remove_old(file);
    pl_token_file_discard(file);
    return rc;
}

void pl_token_file_discard(struct pl_token_file *file)
{
    if (!file) return;
    for (int i = 0; i < file->n_files; i++) pl_file_discard(file->files[i]);
    pl_file_discard(file->index);
    free(file->files);
    free(file->lengths);
    free(file->path);
    free(file);
}
