/* Reading safetensors: every header is checked as the reference implementation does
 * (safetensors/src/tensor.rs, SafeTensors::read_metadata): sizes follow from type and
 * shape, and the tensors in the order of their offsets fill the file exactly. */
#include "train/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json_read.h"
#include "base/mem.h"

enum { PREFIX = 8 };
/* As in the reference implementation. */
static const uint64_t max_header = 100000000;

/* The header as text: *text is the caller's, *begin where the numbers start. */
static int read_header(int fd, const char *path, uint64_t size, char **text,
                       uint64_t *begin)
{
    unsigned char prefix[PREFIX];
    uint64_t n = 0;
    if (size < PREFIX + 2)
        return pl_fail(PL_EINPUT, "%s: has %" PRIu64 " bytes, too few for safetensors",
                       path, size);
    int rc = pl_file_read_at(fd, path, prefix, PREFIX, 0);
    if (rc) return rc;
    for (int i = 0; i < PREFIX; i++) n |= (uint64_t)prefix[i] << 8 * i;
    if (n < 2 || n > max_header || n > size - PREFIX)
        return pl_fail(PL_EINPUT,
                       "%s: is no safetensors file: its header would have %" PRIu64
                       " bytes, expected 2 to %" PRIu64,
                       path, n,
                       size - PREFIX < max_header ? size - PREFIX : max_header);
    char *header = pl_alloc(n + 1, 1);
    rc = pl_file_read_at(fd, path, header, n, PREFIX);
    if (!rc && *header != '{')
        rc = pl_fail(PL_EINPUT,
                     "%s: is no safetensors file: the header does not begin with '{'",
                     path);
    if (rc) {
        free(header);
        return rc;
    }
    *text = header;
    *begin = PREFIX + n;
    return 0;
}

static int check_notes(struct pl_json_value notes)
{
    const char *key = NULL, *text;
    struct pl_json_value value;
    int rc = pl_json_expect(notes, PL_JSON_MAP);
    while (!rc && pl_json_next(notes, &key, &value)) rc = pl_json_as_text(value, &text);
    return rc;
}

static int read_shape(struct pl_json_value info, const char *path, struct pl_tensor *t)
{
    struct pl_json_value list;
    int rc = pl_json_member(info, "shape", &list);
    if (!rc) rc = pl_json_expect(list, PL_JSON_LIST);
    if (rc) return rc;
    size_t rank = pl_json_length(list);
    if (rank > PL_TENSOR_RANK)
        return pl_fail(PL_EUNSUP, "%s: %s has %zu dimensions, at most %d are supported",
                       path, t->name, rank, PL_TENSOR_RANK);
    t->rank = (int)rank;
    t->count = 1;
    for (int k = 0; k < t->rank && !rc; k++) {
        int64_t size = 0;
        rc = pl_json_as_int(pl_json_item(list, (size_t)k), 0, INT64_MAX, &size);
        t->shape[k] = (uint64_t)size;
        if (!rc && __builtin_mul_overflow(t->count, t->shape[k], &t->count))
            rc =
                pl_fail(PL_ECONFIG, "%s: %s has more than 2^64 numbers", path, t->name);
    }
    return rc;
}

/* Type, shape and place; begin counts from the end of the header. */
static int read_tensor(struct pl_json_value info, const char *path, struct pl_tensor *t)
{
    const char *type;
    int64_t ends[2] = {0};
    struct pl_json_value list;
    uint64_t bytes;
    int rc = pl_json_get_text(info, "dtype", &type);
    if (!rc && !(t->type = pl_tensor_type_find(type)))
        rc = pl_fail(PL_EUNSUP, "%s: %s has the unknown dtype '%s'", path, t->name,
                     type);
    if (!rc) rc = read_shape(info, path, t);
    if (!rc) rc = pl_json_member(info, "data_offsets", &list);
    if (!rc) rc = pl_json_expect(list, PL_JSON_LIST);
    if (!rc && pl_json_length(list) != 2)
        rc = pl_fail(PL_ECONFIG, "%s: %s has %zu data_offsets, expected 2", path,
                     t->name, pl_json_length(list));
    for (size_t k = 0; k < 2 && !rc; k++)
        rc =
            pl_json_as_int(pl_json_item(list, k), k ? ends[0] : 0, INT64_MAX, &ends[k]);
    if (rc) return rc;
    t->begin = (uint64_t)ends[0];
    t->size = (uint64_t)(ends[1] - ends[0]);
    if (!__builtin_mul_overflow(t->count, t->type->bytes, &bytes) && bytes == t->size)
        return 0;
    char shape[200];
    return pl_fail(PL_ECONFIG, "%s: %s has %" PRIu64 " bytes, not those of %s %s", path,
                   t->name, t->size, type, pl_tensor_shape(t, shape, sizeof shape));
}

static int by_offset(const void *a, const void *b)
{
    const struct pl_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pl_tensor *)a)->name,
                  ((const struct pl_tensor *)b)->name);
}

/* The tensors of one file fill its `bytes` after the header; begin becomes absolute. */
static int place(const char *path, struct pl_tensor *t, int n, uint64_t header,
                 uint64_t bytes)
{
    uint64_t at = 0;
    if (n) qsort(t, (size_t)n, sizeof *t, by_offset);
    for (int i = 0; i < n; i++) {
        if (t[i].begin != at)
            return pl_fail(PL_ECONFIG, "%s: %s begins at byte %" PRIu64 ", %s %" PRIu64,
                           path, t[i].name, t[i].begin,
                           t[i].begin < at ? "inside the tensor that ends at"
                                           : "but what is before it ends at",
                           at);
        t[i].begin += header;
        at += t[i].size; /* both are below 2^63 */
        if (at > bytes) break;
    }
    if (at == bytes) return 0;
    return pl_fail(PL_EINPUT,
                   "%s: its tensors have %" PRIu64 "%s bytes, the file has %" PRIu64
                   " after the header",
                   path, at, at > bytes ? " or more" : "", bytes);
}

/* The entries of a parsed header, appended to st. */
static int take_tensors(struct pl_safetensors *st, struct pl_json_value root,
                        const char *path)
{
    const char *key = NULL;
    struct pl_json_value info;
    int rc = 0;
    st->tensors = pl_grow(st->tensors, (size_t)st->n + pl_json_length(root) + 1,
                          sizeof *st->tensors);
    while (!rc && pl_json_next(root, &key, &info)) {
        if (!strcmp(key, "__metadata__")) {
            rc = check_notes(info);
            continue;
        }
        struct pl_tensor *t = &st->tensors[st->n++];
        *t = (struct pl_tensor){.name = pl_strdup(key), .file = st->n_files};
        rc = read_tensor(info, path, t);
    }
    return rc;
}

/* Append a file; takes path over. */
static int add_file(struct pl_safetensors *st, char *path)
{
    struct pl_json_file *json = NULL;
    char *text = NULL;
    uint64_t size = 0, begin = 0;
    int fd = -1, first = st->n;
    st->files = pl_grow(st->files, (size_t)st->n_files + 1, sizeof *st->files);
    st->files[st->n_files] = path;
    int rc = pl_file_open(path, &fd, &size);
    if (!rc) {
        rc = read_header(fd, path, size, &text, &begin);
        close(fd);
    }
    if (!rc) rc = pl_json_parse(text, begin - PREFIX, path, &json);
    if (!rc) rc = take_tensors(st, pl_json_root(json), path);
    if (!rc) rc = place(path, st->tensors + first, st->n - first, begin, size - begin);
    st->n_files++;
    pl_json_free(json);
    free(text);
    return rc;
}

/* Number of the shard `file` beside the index; opened when it is new. */
static int find_shard(struct pl_safetensors *st, const char *file, int *number)
{
    const char *slash = strrchr(st->path, '/');
    int folder = slash ? (int)(slash - st->path) + 1 : 0;
    if (strchr(file, '/') || !*file)
        return pl_fail(PL_ECONFIG,
                       "%s: weight_map names '%s', expected a file beside it", st->path,
                       file);
    for (int i = 0; i < st->n_files; i++)
        if (!strcmp(st->files[i] + folder, file)) {
            *number = i;
            return 0;
        }
    *number = st->n_files;
    return add_file(st, pl_printf("%.*s%s", folder, st->path, file));
}

/* Every shard, and then every entry: a tensor is where the index says, and once. */
static int read_index(struct pl_safetensors *st)
{
    struct pl_json_file *json;
    struct pl_json_value map, value;
    const char *key = NULL, *file;
    int rc = pl_json_read(st->path, &json), shard = 0;
    if (rc) return rc;
    rc = pl_json_member(pl_json_root(json), "weight_map", &map);
    if (!rc) rc = pl_json_expect(map, PL_JSON_MAP);
    while (!rc && pl_json_next(map, &key, &value)) {
        rc = pl_json_as_text(value, &file);
        if (!rc) rc = find_shard(st, file, &shard);
    }
    if (!rc && st->n) qsort(st->tensors, (size_t)st->n, sizeof *st->tensors, by_name);
    for (int i = 0; i < st->n && !rc; i++) {
        const struct pl_tensor *t = &st->tensors[i];
        rc = pl_json_get_text(map, t->name, &file);
        if (!rc) rc = find_shard(st, file, &shard);
        if (!rc && t->file != shard)
            rc = pl_fail(PL_ECONFIG, "%s: %s should be in %s, but is in %s", st->path,
                         t->name, file, st->files[t->file]);
    }
    key = NULL;
    while (!rc && pl_json_next(map, &key, &value))
        if (pl_safetensors_find(st, key) < 0)
            rc = pl_fail(PL_ECONFIG, "%s: %s is in none of the files", st->path, key);
    pl_json_free(json);
    return rc;
}

/* The file or index that path stands for; caller frees. */
static int find_path(const char *path, char **out)
{
    static const char *const names[] = {"model.safetensors",
                                        "model.safetensors.index.json"};
    struct stat st;
    if (stat(path, &st)) return pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        *out = pl_strdup(path);
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        char *file = pl_printf("%s/%s", path, names[i]);
        if (!access(file, F_OK)) {
            *out = file;
            return 0;
        }
        free(file);
    }
    return pl_fail(PL_EINPUT, "%s: has neither %s nor %s", path, names[0], names[1]);
}

int pl_safetensors_open(const char *path, struct pl_safetensors **out)
{
    char *file = NULL;
    int rc = find_path(path, &file);
    if (rc) return rc;
    struct pl_safetensors *st = PL_NEW(1, struct pl_safetensors);
    st->path = file;
    st->fd = -1;
    if (pl_path_ends(file, ".json"))
        rc = read_index(st);
    else if (!(rc = add_file(st, pl_strdup(file))) && st->n)
        qsort(st->tensors, (size_t)st->n, sizeof *st->tensors, by_name);
    if (rc)
        pl_safetensors_free(st);
    else
        *out = st;
    return rc;
}

void pl_safetensors_free(struct pl_safetensors *st)
{
    if (!st) return;
    for (int i = 0; i < st->n; i++) free(st->tensors[i].name);
    for (int i = 0; i < st->n_files; i++) free(st->files[i]);
    if (st->fd >= 0) close(st->fd);
    free(st->tensors);
    free(st->files);
    free(st->path);
    free(st);
}

int pl_safetensors_find(const struct pl_safetensors *st, const char *name)
{
    const struct pl_tensor key = {.name = (char *)name};
    const struct pl_tensor *t =
        st->n ? bsearch(&key, st->tensors, (size_t)st->n, sizeof key, by_name) : NULL;
    return t ? (int)(t - st->tensors) : -1;
}

/* The map of notes in a file's header or in an index; free *json. */
static int find_notes(const char *path, struct pl_json_file **json,
                      struct pl_json_value *notes)
{
    const bool index = pl_path_ends(path, ".json");
    char *text = NULL;
    uint64_t size, begin;
    int fd = -1;
    int rc = index ? pl_json_read(path, json) : pl_file_open(path, &fd, &size);
    if (!rc && !index) rc = read_header(fd, path, size, &text, &begin);
    if (!rc && !index) rc = pl_json_parse(text, begin - PREFIX, path, json);
    if (!rc)
        rc = pl_json_member(pl_json_root(*json), index ? "metadata" : "__metadata__",
                            notes);
    if (fd >= 0) close(fd);
    free(text);
    return rc;
}

char *pl_safetensors_note(const char *path, const char *key)
{
    struct pl_json_file *json = NULL;
    struct pl_json_value notes;
    char *file = NULL, *value = NULL;
    const char *found;
    if (!find_path(path, &file) && !find_notes(file, &json, &notes) &&
        !pl_json_get_text(notes, key, &found))
        value = pl_strdup(found);
    pl_json_free(json);
    free(file);
    return value;
}
