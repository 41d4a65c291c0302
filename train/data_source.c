#include "train/data_source.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_OPEN = 64, CHUNK_BYTES = 16384 };

int pl_token_bytes(enum pl_token_type type)
{
    static const int bytes[] = {1, 1, 2, 2, 4, 4, 8};
    return bytes[type];
}

/* What the file of a shard is like now: its bytes and struct pl_shard's `changed`. */
static int look(const struct pl_shard *shard, int64_t *bytes, int64_t changed[3])
{
    struct stat st;
    if (fstat(shard->fd, &st))
        return pl_fail(PL_EINPUT, "%s: %s", shard->path, strerror(errno));
    *bytes = st.st_size;
    changed[0] = (int64_t)st.st_ino;
    changed[1] = st.st_mtim.tv_sec;
    changed[2] = st.st_mtim.tv_nsec;
    return 0;
}

static int check_unchanged(const struct pl_shard *shard)
{
    int64_t bytes = 0, changed[3] = {0};
    int rc = look(shard, &bytes, changed);
    if (rc ||
        (bytes == shard->bytes && !memcmp(changed, shard->changed, sizeof changed)))
        return rc;
    return pl_fail(PL_EINPUT,
                   "%s: changed while in use: %" PRId64 " bytes, it had %" PRId64
                   " when it was opened%s",
                   shard->path, bytes, shard->bytes,
                   bytes == shard->bytes ? ", and was written to since" : "");
}

int pl_shard_open(struct pl_shard *shard)
{
    struct stat st;
    uint64_t bytes;
    if (!stat(shard->path, &st) && S_ISDIR(st.st_mode))
        return pl_fail(PL_EINPUT, "%s: is a folder, expected files, such as %s/*",
                       shard->path, shard->path);
    int fd, rc = pl_file_open(shard->path, &fd, &bytes);
    if (rc) return rc;
    if (!bytes) {
        close(fd);
        return pl_fail(PL_EINPUT, "%s: empty file", shard->path);
    }
    shard->fd = fd;
    return look(shard, &shard->bytes, shard->changed);
}

int pl_shard_read(const struct pl_shard *shard, int64_t offset, void *buffer, size_t n)
{
    return pl_file_read_at(shard->fd, shard->path, buffer, n, (uint64_t)offset);
}

/* Close the one that was opened longest ago when too many are. */
static void shut_one(struct pl_source *s)
{
    while (s->n_open >= MAX_OPEN) {
        struct pl_shard *shard = &s->shards[s->next_shut];
        s->next_shut = (s->next_shut + 1) % s->n_shards;
        if (shard->fd < 0) continue;
        close(shard->fd);
        shard->fd = -1;
        s->n_open--;
    }
}

static int reopen(struct pl_source *s, struct pl_shard *shard)
{
    if (shard->fd >= 0) return 0;
    const struct pl_shard first = *shard;
    shut_one(s);
    int rc = pl_shard_open(shard);
    if (shard->fd >= 0) s->n_open++;
    shard->bytes = first.bytes;
    memcpy(shard->changed, first.changed, sizeof first.changed);
    return rc;
}

/* Where the file of path is when the suffix may be left out; the caller's. */
static char *with_suffix(const char *path, const char *suffix)
{
    if (*suffix && access(path, F_OK)) {
        char *longer = pl_printf("%s%s", path, suffix);
        if (!access(longer, F_OK)) return longer;
        free(longer);
    }
    return pl_strdup(path);
}

static int open_files(const struct pl_data_type *type, const char *names,
                      struct pl_source *s)
{
    char **paths;
    int n, rc = pl_data_paths(names, &paths, &n);
    if (rc) return rc;
    s->shards = PL_NEW(n, struct pl_shard);
    for (int i = 0; i < n && !rc; i++) {
        struct pl_shard *shard = &s->shards[s->n_shards];
        shut_one(s);
        shard->path = with_suffix(paths[i], type->suffix);
        shard->fd = -1;
        shard->first = s->n;
        s->n_shards++;
        rc = pl_shard_open(shard);
        if (rc) break;
        s->n_open++;
        rc = type->open(shard);
        s->n += shard->n;
    }
    pl_data_paths_free(paths, n);
    return rc;
}

int pl_source_open(const struct pl_data_type *type, const char *names,
                   struct pl_source *out)
{
    struct pl_source s = {0};
    int rc = 0;
    if (type->make) {
        s.shards = PL_NEW(1, struct pl_shard);
        s.text = type->make(&s.n);
        s.n_shards = 1;
        s.shards[0] = (struct pl_shard){.path = pl_strdup(type->name),
                                        .fd = -1,
                                        .bytes = s.n,
                                        .n = s.n,
                                        .type = PL_TOKEN_U8};
    } else {
        rc = open_files(type, names, &s);
    }
    if (rc)
        pl_source_free(&s);
    else
        *out = s;
    return rc;
}

void pl_source_free(struct pl_source *source)
{
    for (int i = 0; i < source->n_shards; i++) {
        if (source->shards[i].fd >= 0) close(source->shards[i].fd);
        free(source->shards[i].path);
    }
    free(source->shards);
    free(source->text);
    *source = (struct pl_source){0};
}

/* The shard that has token i. */
static struct pl_shard *find(const struct pl_source *s, int64_t i)
{
    int low = 0, high = s->n_shards - 1; /* last one that starts at or before i */
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (s->shards[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return &s->shards[low];
}

static int64_t decode(enum pl_token_type type, const unsigned char *b)
{
    switch (type) {
    case PL_TOKEN_U8:
        return b[0];
    case PL_TOKEN_I8:
        return (int8_t)b[0];
    case PL_TOKEN_I16:
        return (int16_t)(b[0] | b[1] << 8);
    case PL_TOKEN_U16:
        return b[0] | b[1] << 8;
    case PL_TOKEN_I32:
        return (int32_t)pl_le32(b);
    case PL_TOKEN_U32:
        return pl_le32(b);
    case PL_TOKEN_I64:
        return (int64_t)pl_le64(b);
    }
    return -1;
}

static int fail_id(const struct pl_shard *shard, int64_t i, int64_t id, int vocab)
{
    return pl_fail(PL_EINPUT,
                   "%s: token %" PRId64 " (byte offset %" PRId64 ") has id %" PRId64
                   ", expected below the vocabulary of %d (model.vocab; bytes need "
                   "256, GPT-2 tokens 50257)",
                   shard->path, i, shard->offset + i * pl_token_bytes(shard->type), id,
                   vocab);
}

/* n tokens that lie in the bytes b, the first of them number i of the shard. */
static int convert(const struct pl_shard *shard, int64_t i, const unsigned char *b,
                   int64_t n, int vocab, int32_t *ids)
{
    const int width = pl_token_bytes(shard->type);
    for (int64_t j = 0; j < n; j++) {
        int64_t id = decode(shard->type, b + j * width);
        if (id < 0 || id >= vocab) return fail_id(shard, i + j, id, vocab);
        ids[j] = (int32_t)id;
    }
    return 0;
}

int pl_source_read(struct pl_source *source, int64_t first, int64_t n, int vocab,
                   int32_t *ids)
{
    assert(first >= 0 && n >= 0 && first + n <= source->n);
    if (source->text)
        return convert(&source->shards[0], first,
                       (const unsigned char *)source->text + first, n, vocab, ids);
    unsigned char buffer[CHUNK_BYTES];
    while (n > 0) {
        struct pl_shard *shard = find(source, first);
        const int width = pl_token_bytes(shard->type);
        int64_t i = first - shard->first, part = CHUNK_BYTES / width;
        if (part > shard->n - i) part = shard->n - i;
        if (part > n) part = n;
        int rc = reopen(source, shard);
        if (!rc) rc = check_unchanged(shard);
        if (!rc)
            rc = pl_shard_read(shard, shard->offset + i * width, buffer,
                               (size_t)(part * width));
        if (!rc) rc = convert(shard, i, buffer, part, vocab, ids);
        if (rc) return rc;
        first += part;
        ids += part;
        n -= part;
    }
    return 0;
}
