/* Writing safetensors: the header follows from names and shapes, so it comes first and
 * the numbers stream after it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "train/safetensors.h"

enum { ALIGN = 8, CHUNK = 1 << 18 }; /* the header's end; numbers at a time */

struct pl_safetensors_writer {
    struct pl_file *file;
    char *path;
    const struct pl_tensor_type *type;
    int n, next; /* tensors, and those written */
    char **names;
    uint64_t *counts;
    void *buffer; /* CHUNK encoded numbers */
};

static void put_tensor(struct pl_json *json, const struct pl_tensor *t,
                       const struct pl_tensor_type *type, uint64_t begin, uint64_t end)
{
    pl_json_begin(json, t->name, '{');
    pl_json_text(json, "dtype", type->name);
    pl_json_begin(json, "shape", '[');
    for (int k = 0; k < t->rank; k++) pl_json_uint(json, NULL, t->shape[k]);
    pl_json_end(json, ']');
    pl_json_begin(json, "data_offsets", '[');
    pl_json_uint(json, NULL, begin);
    pl_json_uint(json, NULL, end);
    pl_json_end(json, ']');
    pl_json_end(json, '}');
}

/* Length and JSON; counts are set. */
static void put_header(struct pl_safetensors_writer *w, const struct pl_tensor *tensors,
                       const struct pl_tensor_note *notes)
{
    char *text = NULL;
    size_t n = 0;
    uint64_t at = 0;
    struct pl_json json;
    FILE *memory = open_memstream(&text, &n);
    if (!memory) pl_alloc(SIZE_MAX, 2); /* fatal, with size and site */
    pl_json_open(&json, memory);
    json.one_line = true;
    pl_json_begin(&json, NULL, '{');
    pl_json_begin(&json, "__metadata__", '{');
    for (; notes && notes->key; notes++) pl_json_text(&json, notes->key, notes->value);
    pl_json_end(&json, '}');
    for (int i = 0; i < w->n; i++) {
        uint64_t count = 1;
        for (int k = 0; k < tensors[i].rank; k++) count *= tensors[i].shape[k];
        put_tensor(&json, &tensors[i], w->type, at, at + count * w->type->bytes);
        at += count * w->type->bytes;
        w->counts[i] = count;
        w->names[i] = pl_strdup(tensors[i].name);
    }
    pl_json_end(&json, '}');
    fclose(memory);
    uint64_t padded = (n + ALIGN - 1) / ALIGN * ALIGN;
    FILE *out = pl_file_stream(w->file);
    for (int i = 0; i < 8; i++) putc((int)(padded >> 8 * i & 255), out);
    fwrite(text, 1, n, out);
    fprintf(out, "%*s", (int)(padded - n), "");
    free(text);
}

int pl_safetensors_create(const char *path, const struct pl_tensor_type *type,
                          const struct pl_tensor *tensors, int n,
                          const struct pl_tensor_note *notes,
                          struct pl_safetensors_writer **out)
{
    struct pl_file *file = pl_file_create(path);
    if (!file) return PL_EIO;
    struct pl_safetensors_writer *w = PL_NEW(1, struct pl_safetensors_writer);
    *w = (struct pl_safetensors_writer){.file = file,
                                        .path = pl_strdup(path),
                                        .type = type,
                                        .n = n,
                                        .names = PL_NEW(n, char *),
                                        .counts = PL_NEW(n, uint64_t),
                                        .buffer = pl_alloc(CHUNK, type->bytes)};
    put_header(w, tensors, notes);
    *out = w;
    return 0;
}

int pl_safetensors_put(struct pl_safetensors_writer *w, const float *x)
{
    const int i = w->next++;
    for (uint64_t at = 0, k; at < w->counts[i]; at += k) {
        k = w->counts[i] - at < CHUNK ? w->counts[i] - at : CHUNK;
        for (uint64_t j = at; j < at + k; j++)
            if (!(fabs((double)x[j]) <= w->type->largest))
                return pl_fail(PL_EUNSUP,
                               "%s: %s has %g at number %" PRIu64 ", %s holds up to %g",
                               w->path, w->names[i], (double)x[j], j, w->type->name,
                               w->type->largest);
        w->type->encode(x + at, k, w->buffer);
        if (fwrite(w->buffer, w->type->bytes, k, pl_file_stream(w->file)) != k)
            return pl_fail(PL_EIO, "%s: cannot write: %s", w->path, strerror(errno));
    }
    return 0;
}

static void writer_free(struct pl_safetensors_writer *w)
{
    for (int i = 0; i < w->n; i++) free(w->names[i]);
    free(w->names);
    free(w->counts);
    free(w->buffer);
    free(w->path);
    free(w);
}

int pl_safetensors_commit(struct pl_safetensors_writer *w)
{
    int rc = pl_file_commit(w->file);
    writer_free(w);
    return rc;
}

void pl_safetensors_discard(struct pl_safetensors_writer *w)
{
    if (!w) return;
    pl_file_discard(w->file);
    writer_free(w);
}
