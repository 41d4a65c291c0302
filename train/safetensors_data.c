/* The numbers of safetensors files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "train/safetensors.h"

enum { CHUNK = 1 << 20 };

const char *pl_tensor_shape(const struct pl_tensor *t, char *text, size_t n)
{
    size_t used = 0;
    snprintf(text, n, "scalar");
    for (int k = 0; k < t->rank && used < n; k++)
        used += (size_t)snprintf(text + used, n - used, "%s%" PRIu64, k ? " x " : "",
                                 t->shape[k]);
    return text;
}

static int use_file(struct pl_safetensors *st, int file)
{
    uint64_t size;
    if (st->fd >= 0 && st->open == file) return 0;
    if (st->fd >= 0) close(st->fd);
    st->open = file;
    return pl_file_open(st->files[file], &st->fd, &size);
}

static int check_finite(const char *path, const struct pl_tensor *t, uint64_t first,
                        const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return pl_fail(PL_EINPUT, "%s: %s has %g at number %" PRIu64, path, t->name,
                           (double)x[i], first + i);
    return 0;
}

int pl_safetensors_read(struct pl_safetensors *st, int i, float *out)
{
    const struct pl_tensor *t = &st->tensors[i];
    const char *path = st->files[t->file];
    if (!t->type->decode)
        return pl_fail(PL_EINPUT, "%s: %s has dtype %s, expected F32, BF16, F16 or F64",
                       path, t->name, t->type->name);
    int rc = use_file(st, t->file);
    char *buffer = pl_alloc(CHUNK, 1);
    for (uint64_t at = 0, k; at < t->count && !rc; at += k) {
        k = CHUNK / t->type->bytes;
        if (k > t->count - at) k = t->count - at;
        rc = pl_file_read_at(st->fd, path, buffer, k * t->type->bytes,
                             t->begin + at * t->type->bytes);
        if (rc) break;
        t->type->decode(buffer, k, out + at);
        rc = check_finite(path, t, at, out + at, k);
    }
    free(buffer);
    return rc;
}

int pl_safetensors_crc(const struct pl_safetensors *st, uint32_t *crc)
{
    char *buffer = pl_alloc(CHUNK, 1);
    int rc = 0;
    *crc = 0;
    for (int i = 0; i < st->n_files && !rc; i++) {
        uint64_t size = 0;
        int fd;
        if ((rc = pl_file_open(st->files[i], &fd, &size))) break;
        for (uint64_t at = 0; at < size && !rc; at += CHUNK) {
            size_t k = size - at < CHUNK ? size - at : CHUNK;
            rc = pl_file_read_at(fd, st->files[i], buffer, k, at);
            *crc = pl_crc32(*crc, buffer, k);
        }
        close(fd);
    }
    free(buffer);
    return rc;
}
