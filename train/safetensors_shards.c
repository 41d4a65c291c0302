/* Writing a model as one safetensors file, or as several with an index: tensors in
 * their order, a new file before one that would make more than form.most bytes; a
 * tensor of more has a file of its own (huggingface_hub,
 * serialization/_base.py, split_state_dict_into_shards_factory). */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "train/safetensors_file.h"

struct shard {
    int first, n; /* tensors */
    char *path;
    struct pl_tensor_file *file; /* NULL: none yet, or committed */
};

struct pl_safetensors_writer {
    char *path, *index; /* of one file; of the index */
    const struct pl_safetensors_form *form;
    const struct pl_tensor *tensors;
    int n, next, n_shards, shard; /* the next tensor, and its shard */
    struct shard *shards;
};

static uint64_t bytes_of(const struct pl_safetensors_writer *w, int i)
{
    return pl_tensor_count(&w->tensors[i]) * w->form->type->bytes;
}

/* Length of a path or name without the suffix. */
static size_t stem_of(const char *path)
{
    static const char suffix[] = ".safetensors";
    return strlen(path) - (pl_path_ends(path, suffix) ? sizeof suffix - 1 : 0);
}

static void cut(struct pl_safetensors_writer *w)
{
    uint64_t held = 0;
    w->shards = PL_NEW(w->n + 1, struct shard);
    w->n_shards = 1;
    for (int i = 0; i < w->n; i++) {
        const uint64_t bytes = bytes_of(w, i), most = w->form->most;
        struct shard *last = &w->shards[w->n_shards - 1];
        if (last->n && most && (bytes > most || held > most - bytes)) {
            w->shards[w->n_shards++].first = i;
            last++;
            held = 0;
        }
        last->n++;
        held += bytes;
    }
    const int stem = (int)stem_of(w->path);
    for (int k = 0; k < w->n_shards; k++)
        w->shards[k].path = w->n_shards == 1
                                ? pl_strdup(w->path)
                                : pl_printf("%.*s-%05d-of-%05d.safetensors", stem,
                                            w->path, k + 1, w->n_shards);
}

static int open_shard(struct pl_safetensors_writer *w)
{
    struct shard *s = &w->shards[w->shard];
    return pl_tensor_file_create(s->path, w->form, w->tensors + s->first, s->n,
                                 &s->file);
}

int pl_safetensors_create(const char *path, const struct pl_safetensors_form *form,
                          const struct pl_tensor *tensors, int n,
                          struct pl_safetensors_writer **out)
{
    struct pl_safetensors_writer *w = PL_NEW(1, struct pl_safetensors_writer);
    *w = (struct pl_safetensors_writer){.path = pl_strdup(path),
                                        .index = pl_printf("%s.index.json", path),
                                        .form = form,
                                        .tensors = tensors,
                                        .n = n};
    cut(w);
    int rc = open_shard(w);
    if (rc)
        pl_safetensors_discard(w);
    else
        *out = w;
    return rc;
}

int pl_safetensors_put(struct pl_safetensors_writer *w, const float *x)
{
    const struct shard *s = &w->shards[w->shard];
    int rc = 0;
    if (w->next == s->first + s->n) {
        rc = pl_tensor_file_finish(w->shards[w->shard++].file);
        if (!rc) rc = open_shard(w);
    }
    w->next++;
    return rc ? rc : pl_tensor_file_put(w->shards[w->shard].file, x);
}

static int write_index(const struct pl_safetensors_writer *w)
{
    struct pl_json json;
    struct pl_file *file = pl_file_create(w->index);
    uint64_t total = 0;
    if (!file) return PL_EIO;
    for (int i = 0; i < w->n; i++) total += bytes_of(w, i);
    pl_json_open(&json, pl_file_stream(file));
    json.line_depth = 2;
    pl_json_begin(&json, NULL, '{');
    pl_json_begin(&json, "metadata", '{');
    pl_json_uint(&json, "total_size", total);
    for (const struct pl_tensor_note *t = w->form->notes; t && t->key; t++)
        pl_json_text(&json, t->key, t->value);
    pl_json_end(&json, '}');
    pl_json_begin(&json, "weight_map", '{');
    for (int k = 0; k < w->n_shards; k++) {
        const char *slash = strrchr(w->shards[k].path, '/');
        for (int i = 0; i < w->shards[k].n; i++)
            pl_json_text(&json, w->tensors[w->shards[k].first + i].name,
                         slash ? slash + 1 : w->shards[k].path);
    }
    pl_json_end(&json, '}');
    pl_json_end(&json, '}');
    pl_json_close(&json);
    return pl_file_commit(file);
}

/* Is name STEM-00001-of-00003.safetensors, with any numbers? */
static bool is_shard(const char *name, const char *stem, size_t n)
{
    int end = 0;
    return !strncmp(name, stem, n) &&
           sscanf(name + n, "-%*5[0-9]-of-%*5[0-9].safetensors%n", &end) == 0 && end &&
           !name[n + (size_t)end];
}

/* Remove the shards of an earlier save, but for those of this one. */
static void clean(const struct pl_safetensors_writer *w)
{
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    const size_t stem = stem_of(name);
    char *folder = pl_printf("%.*s", slash ? (int)(slash - w->path) + 1 : 0, w->path);
    DIR *dir = opendir(*folder ? folder : ".");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *path = pl_printf("%s%s", folder, entry->d_name);
        bool old = is_shard(entry->d_name, name, stem);
        for (int k = 0; k < w->n_shards; k++)
            old &= strcmp(path, w->shards[k].path) != 0;
        if (old) unlink(path);
        free(path);
    }
    if (dir) closedir(dir);
    free(folder);
}

static int drop(const char *path)
{
    if (!unlink(path) || errno == ENOENT) return 0;
    return pl_fail(PL_EIO, "%s: cannot remove it: %s", path, strerror(errno));
}

/* Without an index, or with a single file beside it, shards are no model: so the index
 * goes first and comes last. */
static int commit_all(struct pl_safetensors_writer *w)
{
    int rc = pl_tensor_file_finish(w->shards[w->shard].file);
    if (!rc && w->n_shards > 1) rc = drop(w->index);
    for (int k = 0; k < w->n_shards && !rc; k++) {
        rc = pl_tensor_file_commit(w->shards[k].file);
        w->shards[k].file = NULL;
    }
    if (!rc) rc = drop(w->n_shards > 1 ? w->path : w->index);
    if (!rc && w->n_shards > 1) rc = write_index(w);
    if (!rc) clean(w);
    return rc;
}

int pl_safetensors_commit(struct pl_safetensors_writer *w)
{
    int rc = commit_all(w);
    pl_safetensors_discard(w);
    return rc;
}

void pl_safetensors_discard(struct pl_safetensors_writer *w)
{
    if (!w) return;
    for (int k = 0; k < w->n_shards; k++) {
        pl_tensor_file_discard(w->shards[k].file);
        free(w->shards[k].path);
    }
    free(w->shards);
    free(w->path);
    free(w->index);
    free(w);
}
