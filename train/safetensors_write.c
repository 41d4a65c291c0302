/* Writing one safetensors file: the header follows from names and shapes, so it comes
 * first and the numbers stream after it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "train/safetensors_file.h"

enum { ALIGN = 8, CHUNK = 1 << 18 }; /* the header's end; numbers at a time */

struct pl_tensor_file {
    struct pl_file *file;
    char *path;
    const struct pl_tensor_type *type;
    const struct pl_tensor *tensors; /* [n] borrowed */
    int n, next;                     /* and those written */
};

uint64_t pl_tensor_count(const struct pl_tensor *t)
{
    uint64_t count = 1;
    for (int k = 0; k < t->rank; k++) count *= t->shape[k];
    return count;
}

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

/* Length and JSON. */
static void put_header(struct pl_tensor_file *w, const struct pl_tensor_note *notes)
{
    char *text = NULL;
    size_t n = 0;
    uint64_t at = 0;
    struct pl_json json;
    FILE *memory = open_memstream(&text, &n);
    if (!memory) pl_out_of_memory(BUFSIZ); /* of a stream */
    pl_json_open(&json, memory);
    json.one_line = true;
    pl_json_begin(&json, NULL, '{');
    pl_json_begin(&json, "__metadata__", '{');
    for (; notes && notes->key; notes++) pl_json_text(&json, notes->key, notes->value);
    pl_json_end(&json, '}');
    for (int i = 0; i < w->n; i++) {
        const uint64_t bytes = pl_tensor_count(&w->tensors[i]) * w->type->bytes;
        put_tensor(&json, &w->tensors[i], w->type, at, at + bytes);
        at += bytes;
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

int pl_tensor_file_create(const char *path, const struct pl_safetensors_form *form,
                          const struct pl_tensor *tensors, int n,
                          struct pl_tensor_file **out)
{
    struct pl_file *file = pl_file_create(path);
    if (!file) return PL_EIO;
    struct pl_tensor_file *w = PL_NEW(1, struct pl_tensor_file);
    *w = (struct pl_tensor_file){.file = file,
                                 .path = pl_strdup(path),
                                 .type = form->type,
                                 .tensors = tensors,
                                 .n = n};
    put_header(w, form->notes);
    *out = w;
    return 0;
}

/* k numbers from number `at` of a tensor; buffer has room for them encoded. */
static int put_chunk(struct pl_tensor_file *w, const struct pl_tensor *t,
                     const float *x, uint64_t at, uint64_t k, void *buffer)
{
    for (uint64_t j = at; j < at + k; j++)
        if (!(fabs((double)x[j]) <= w->type->largest))
            return pl_fail(
                PL_EUNSUP, "%s: %s has %g at number %" PRIu64 ", %s holds up to %g",
                w->path, t->name, (double)x[j], j, w->type->name, w->type->largest);
    w->type->encode(x + at, k, buffer);
    if (fwrite(buffer, w->type->bytes, k, pl_file_stream(w->file)) == k) return 0;
    return pl_fail(PL_EIO, "%s: cannot write: %s", w->path, strerror(errno));
}

int pl_tensor_file_put(struct pl_tensor_file *w, const float *x)
{
    const struct pl_tensor *t = &w->tensors[w->next++];
    const uint64_t count = pl_tensor_count(t);
    void *buffer = pl_alloc(CHUNK, w->type->bytes);
    int rc = 0;
    for (uint64_t at = 0, k; at < count && !rc; at += k) {
        k = count - at < CHUNK ? count - at : CHUNK;
        rc = put_chunk(w, t, x, at, k, buffer);
    }
    free(buffer);
    return rc;
}

int pl_tensor_file_finish(struct pl_tensor_file *w)
{
    return pl_file_finish(w->file);
}

int pl_tensor_file_commit(struct pl_tensor_file *w)
{
    int rc = pl_file_commit(w->file);
    free(w->path);
    free(w);
    return rc;
}

void pl_tensor_file_discard(struct pl_tensor_file *w)
{
    if (!w) return;
    pl_file_discard(w->file);
    free(w->path);
    free(w);
}
