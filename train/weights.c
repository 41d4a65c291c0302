#include "train/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/weights_names.h"

struct pl_weights {
    struct pl_safetensors *st;
    int n;
    struct pl_weight *list; /* [n] */
    int *stored;            /* [n] position in st->tensors */
};

/* ", the nearest is X (2 x 3)" among tensors, or nothing; text has n bytes. */
static const char *nearest(const char *name, const struct pl_tensor *const *tensors,
                           int n, char *text, size_t size)
{
    const char **names = PL_NEW(n + 1, const char *);
    char shape[200];
    *text = '\0';
    for (int i = 0; i < n; i++) names[i] = tensors[i]->name;
    const char *near = pl_nearest(name, names);
    for (int i = 0; near && i < n; i++)
        if (tensors[i]->name == near)
            snprintf(text, size, ", the nearest name is %s (%s)", near,
                     pl_tensor_shape(tensors[i], shape, sizeof shape));
    free(names);
    return text;
}

static int fail_missing(const struct pl_weights *w, const struct pl_tensor *t)
{
    char shape[200], text[300];
    const struct pl_tensor **all = PL_NEW(w->st->n, const struct pl_tensor *);
    for (int i = 0; i < w->st->n; i++) all[i] = &w->st->tensors[i];
    int rc = pl_fail(PL_EINPUT, "%s: %s (%s) is missing%s", w->st->path, t->name,
                     pl_tensor_shape(t, shape, sizeof shape),
                     nearest(t->name, all, w->st->n, text, sizeof text));
    free(all);
    return rc;
}

static int fail_left_over(const struct pl_weights *w, const struct pl_tensor *t)
{
    char shape[200], text[300];
    const struct pl_tensor **all = PL_NEW(w->n, const struct pl_tensor *);
    for (int i = 0; i < w->n; i++) all[i] = &w->list[i].tensor;
    int rc = pl_fail(PL_EINPUT, "%s: %s (%s) is no tensor of the model%s", w->st->path,
                     t->name, pl_tensor_shape(t, shape, sizeof shape),
                     nearest(t->name, all, w->n, text, sizeof text));
    free(all);
    return rc;
}

/* Position of a tensor, also where the files lack the prefix of all names; or -1. */
static int find(const struct pl_safetensors *st, const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    int i = pl_safetensors_find(st, name);
    return i < 0 && !strncmp(name, prefix, n) ? pl_safetensors_find(st, name + n) : i;
}

static int check_shape(const struct pl_weights *w, const struct pl_tensor *t,
                       const struct pl_tensor *stored)
{
    char a[200], b[200];
    bool same = stored->rank == t->rank &&
                !memcmp(stored->shape, t->shape, sizeof *t->shape * (size_t)t->rank);
    if (!same)
        return pl_fail(PL_EINPUT, "%s: %s is %s, expected %s", w->st->path,
                       stored->name, pl_tensor_shape(stored, a, sizeof a),
                       pl_tensor_shape(t, b, sizeof b));
    if (!stored->type->decode)
        return pl_fail(PL_EINPUT, "%s: %s has dtype %s, expected F32, BF16, F16 or F64",
                       w->st->path, stored->name, stored->type->name);
    return 0;
}

/* Every parameter has its tensor, and every tensor its parameter. */
static int place(struct pl_weights *w, const char *prefix, bool tied)
{
    bool *used = PL_NEW(w->st->n, bool);
    int rc = 0;
    for (int i = 0; i < w->n && !rc; i++) {
        const struct pl_tensor *t = &w->list[i].tensor;
        w->stored[i] = find(w->st, t->name, prefix);
        if (w->stored[i] < 0) {
            rc = fail_missing(w, t);
            break;
        }
        used[w->stored[i]] = true;
        rc = check_shape(w, t, &w->st->tensors[w->stored[i]]);
    }
    for (int i = 0; i < w->st->n && !rc; i++) {
        const struct pl_tensor *t = &w->st->tensors[i];
        if (used[i] || pl_weight_ignored(t->name)) continue;
        if (!tied || strcmp(t->name, "lm_head.weight")) rc = fail_left_over(w, t);
    }
    free(used);
    return rc;
}

int pl_weights_open(const char *path, const char *model_type, bool tied,
                    const struct pl_problem *problem, struct pl_weights **out)
{
    struct pl_safetensors *st;
    int rc = pl_safetensors_open(path, &st);
    if (rc) return rc;
    struct pl_weights *w = PL_NEW(1, struct pl_weights);
    w->st = st;
    w->n = pl_weight_list(model_type, problem, &w->list);
    w->stored = PL_NEW(w->n, int);
    rc = place(w, pl_weight_prefix(model_type), tied);
    if (rc)
        pl_weights_close(w);
    else
        *out = w;
    return rc;
}

void pl_weights_close(struct pl_weights *w)
{
    if (!w) return;
    pl_weight_list_free(w->list, w->n);
    pl_safetensors_free(w->st);
    free(w->stored);
    free(w);
}

/* Room on the host for the largest tensor, twice where it is transposed. */
struct room {
    float *stored, *part;
};

static struct room room_new(const struct pl_weight *list, int n)
{
    uint64_t most = 1, turned = 1;
    for (int i = 0; i < n; i++) {
        uint64_t count = list[i].tensor.count;
        if (count > most) most = count;
        if (list[i].transposed && count > turned) turned = count;
    }
    return (struct room){pl_alloc(most, sizeof(float)),
                         pl_alloc(turned, sizeof(float))};
}

static void room_free(struct room *room)
{
    free(room->stored);
    free(room->part);
}

/* Between a part (rows, cols) and its columns, from `first` on, of the stored (cols,
 * width). */
static void turn(bool loading, const struct pl_param *q, float *part, float *stored,
                 size_t width, size_t first)
{
    const size_t rows = (size_t)q->rows, cols = (size_t)q->cols;
    for (size_t c = 0; c < cols; c++) {
        float *row = stored + c * width + first;
        for (size_t r = 0; r < rows; r++) {
            float *x = part + r * cols + c;
            if (loading)
                *x = row[r];
            else
                row[r] = *x;
        }
    }
}

/* One stored tensor to or from the device. */
static int move(bool loading, const struct pl_problem *p, const struct pl_weight *w,
                const struct room *room, float *const *blocks)
{
    size_t at = 0;
    int rc = 0;
    for (int k = 0; k < w->n_parts && !rc; k++) {
        const struct pl_param *q = &p->params[w->part[k]];
        const size_t bytes = sizeof(float) * pl_param_size(q);
        float *device = blocks[q->stage] + q->offset;
        float *host = w->transposed ? room->part : room->stored + at;
        if (!loading) rc = p->device->download(host, device, bytes);
        if (w->transposed && !rc)
            turn(loading, q, host, room->stored, (size_t)w->tensor.shape[1], at);
        if (loading) rc = p->device->upload(device, host, bytes);
        at += w->transposed ? (size_t)q->rows : pl_param_size(q);
    }
    return rc;
}

int pl_weights_check(struct pl_weights *w)
{
    struct room room = room_new(w->list, w->n);
    int rc = 0;
    for (int i = 0; i < w->n && !rc; i++)
        rc = pl_safetensors_read(w->st, w->stored[i], room.stored);
    room_free(&room);
    return rc;
}

int pl_weights_load(struct pl_weights *w, const struct pl_problem *problem,
                    float *const *blocks)
{
    struct room room = room_new(w->list, w->n);
    int rc = 0;
    for (int i = 0; i < w->n && !rc; i++) {
        rc = pl_safetensors_read(w->st, w->stored[i], room.stored);
        if (!rc) rc = move(true, problem, &w->list[i], &room, blocks);
    }
    room_free(&room);
    return rc;
}

int pl_weights_save(const char *path, const char *model_type,
                    const struct pl_safetensors_form *form,
                    const struct pl_problem *problem, const float *const *blocks)
{
    struct pl_weight *list;
    struct pl_safetensors_writer *out = NULL;
    int n = pl_weight_list(model_type, problem, &list);
    struct pl_tensor *tensors = PL_NEW(n, struct pl_tensor);
    for (int i = 0; i < n; i++) tensors[i] = list[i].tensor;
    int rc = pl_safetensors_create(path, form, tensors, n, &out);
    struct room room = room_new(list, n);
    for (int i = 0; i < n && !rc; i++) {
        rc = move(false, problem, &list[i], &room, (float *const *)blocks);
        if (!rc) rc = pl_safetensors_put(out, room.stored);
    }
    if (rc)
        pl_safetensors_discard(out);
    else
        rc = pl_safetensors_commit(out);
    room_free(&room);
    free(tensors);
    pl_weight_list_free(list, n);
    return rc;
}
