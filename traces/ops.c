#include "traces/ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { MAX_DEVICES = 100000, MAX_CHUNKS = 10000000 };

static int find_arm(const struct pl_trace *t, const char *arm, char **out)
{
    const char **arms;
    int n = pl_trace_arms(t, &arms), status = 0;
    const char *found = !arm && n ? arms[0] : NULL;
    for (int i = 0; arm && i < n; i++)
        if (!strcmp(arms[i], arm)) found = arms[i];
    if (!n) {
        status = pl_fail(PL_EINPUT, "the trace holds no arms");
    } else if (!found) {
        const char **names = PL_NEW(n + 1, const char *);
        memcpy(names, arms, (size_t)n * sizeof *arms);
        status = pl_fail_unknown(PL_EINPUT, "trace", "arm", arm, names);
        free(names);
    } else {
        *out = pl_strdup(found);
    }
    free(arms);
    return status;
}

static bool is_op(const struct pl_ops *ops, int64_t i)
{
    return ops->device[i] >= 0 && ops->device[i] < MAX_DEVICES && ops->chunk[i] >= 0 &&
           ops->chunk[i] < MAX_CHUNKS && ops->start[i] >= 0 &&
           ops->end[i] >= ops->start[i];
}

static int load_timeline(const struct pl_trace *t, struct pl_ops *ops)
{
    char *path = pl_printf("/arms/%s/timeline", ops->arm);
    ops->kind = pl_trace_get_i64(t, path, "kind", &ops->n);
    ops->device = pl_trace_get_i64(t, path, "device", NULL);
    ops->chunk = pl_trace_get_i64(t, path, "chunk", NULL);
    ops->micro = pl_trace_get_i64(t, path, "micro", NULL);
    ops->start = pl_trace_get_i64(t, path, "start", NULL);
    ops->end = pl_trace_get_i64(t, path, "end", NULL);
    int status = 0;
    if (!ops->kind || !ops->n) status = pl_fail(PL_EINPUT, "the trace has no %s", path);
    for (int64_t i = 0; !status && i < ops->n; i++) {
        if (!is_op(ops, i)) {
            status = pl_fail(PL_EINPUT, "%s: row %" PRId64 " is not an op", path, i);
            break;
        }
        if (ops->device[i] >= ops->devices) ops->devices = (int)ops->device[i] + 1;
        if (ops->chunk[i] >= ops->chunks) ops->chunks = (int)ops->chunk[i] + 1;
    }
    free(path);
    return status;
}

static bool is_message(const struct pl_ops *ops, int64_t i)
{
    return ops->src[i] >= 0 && ops->src[i] < MAX_DEVICES && ops->dst[i] >= 0 &&
           ops->dst[i] < MAX_DEVICES && ops->sent[i] >= 0 &&
           ops->arrived[i] >= ops->sent[i] &&
           (ops->msg_kind[i] == PL_KIND_F || ops->msg_kind[i] == PL_KIND_B) &&
           (!ops->msg_chunk ||
            (ops->msg_chunk[i] >= 0 && ops->msg_chunk[i] < MAX_CHUNKS));
}

static int load_messages(const struct pl_trace *t, struct pl_ops *ops)
{
    char *path = pl_printf("/arms/%s/messages", ops->arm);
    ops->msg_kind = pl_trace_get_i64(t, path, "kind", &ops->n_messages);
    ops->src = pl_trace_get_i64(t, path, "src", NULL);
    ops->dst = pl_trace_get_i64(t, path, "dst", NULL);
    ops->msg_chunk = pl_trace_get_i64(t, path, "chunk", NULL);
    ops->msg_micro = pl_trace_get_i64(t, path, "micro", NULL);
    ops->sent = pl_trace_get_i64(t, path, "sent", NULL);
    ops->arrived = pl_trace_get_i64(t, path, "arrived", NULL);
    int status = 0;
    for (int64_t i = 0; !status && i < ops->n_messages; i++)
        if (!is_message(ops, i))
            status =
                pl_fail(PL_EINPUT, "%s: row %" PRId64 " is not a message", path, i);
    free(path);
    return status;
}

static int by_key(const void *left, const void *right)
{
    const struct pl_ops_key *x = left, *y = right;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* First row with this key, -1 when there is none. */
static int64_t find_key(const struct pl_ops_key *keys, int64_t n, int64_t a, int64_t b)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (keys[mid].a < a || (keys[mid].a == a && keys[mid].b < b))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && keys[lo].a == a && keys[lo].b == b ? keys[lo].row : -1;
}

/* W and U get keys that no look-up asks for. */
static int64_t op_class(int64_t kind, int64_t chunk)
{
    return kind == PL_KIND_F                         ? 2 * chunk
           : kind == PL_KIND_B || kind == PL_KIND_BW ? 2 * chunk + 1
                                                     : -1;
}

static void index_ops(struct pl_ops *ops)
{
    ops->by_op = PL_NEW(ops->n, struct pl_ops_key);
    for (int64_t i = 0; i < ops->n; i++)
        ops->by_op[i] = (struct pl_ops_key){op_class(ops->kind[i], ops->chunk[i]),
                                            ops->micro[i], i};
    qsort(ops->by_op, (size_t)ops->n, sizeof *ops->by_op, by_key);
}

static void load_versions(const struct pl_trace *t, struct pl_ops *ops)
{
    char *path = pl_printf("/arms/%s/versions", ops->arm);
    const int64_t *stage = pl_trace_get_i64(t, path, "stage", &ops->n_versions);
    const int64_t *micro = pl_trace_get_i64(t, path, "micro", NULL);
    ops->update = pl_trace_get_i64(t, path, "update", NULL);
    ops->forward = pl_trace_get_i64(t, path, "forward", NULL);
    ops->backward = pl_trace_get_i64(t, path, "backward", NULL);
    ops->by_version = PL_NEW(ops->n_versions, struct pl_ops_key);
    for (int64_t i = 0; i < ops->n_versions; i++)
        ops->by_version[i] = (struct pl_ops_key){stage[i], micro[i], i};
    if (ops->n_versions)
        qsort(ops->by_version, (size_t)ops->n_versions, sizeof *ops->by_version,
              by_key);
    free(path);
}

static int count_model_chunks(const struct pl_trace *t, const char *group,
                              const struct pl_ops *ops)
{
    int64_t P, v;
    bool told = pl_trace_get_attr_int(t, group, "P", &P) &&
                pl_trace_get_attr_int(t, group, "v", &v) && P > 0 && v > 0;
    return told && P <= MAX_CHUNKS / v ? (int)(P * v) : ops->chunks;
}

void pl_chunk_name(int chunk, int model_chunks, char *name, size_t size)
{
    if (model_chunks < 1) model_chunks = chunk + 1;
    int replica = chunk / model_chunks;
    snprintf(name, size,
             replica > 1 ? "c%d'%d"
             : replica   ? "c%d'"
                         : "c%d",
             chunk % model_chunks, replica);
}

int pl_ops_load(const struct pl_trace *t, const char *arm, struct pl_ops *out)
{
    struct pl_ops ops = {0};
    int status = find_arm(t, arm, &ops.arm);
    if (!status) status = load_timeline(t, &ops);
    if (!status) status = load_messages(t, &ops);
    if (!status) {
        index_ops(&ops);
        load_versions(t, &ops);
        char *group = pl_printf("/arms/%s", ops.arm);
        if (!pl_trace_get_attr_int(t, group, "m", &ops.m) || ops.m < 0) ops.m = 0;
        ops.model_chunks = count_model_chunks(t, group, &ops);
        free(group);
        *out = ops;
    } else {
        pl_ops_free(&ops);
    }
    return status;
}

void pl_ops_free(struct pl_ops *ops)
{
    free(ops->arm);
    free(ops->by_op);
    free(ops->by_version);
    *ops = (struct pl_ops){0};
}

int64_t pl_ops_find(const struct pl_ops *ops, enum pl_kind kind, int64_t chunk,
                    int64_t micro)
{
    return find_key(ops->by_op, ops->n, op_class(kind, chunk), micro);
}

int64_t pl_ops_version(const struct pl_ops *ops, int64_t i)
{
    if (ops->kind[i] == PL_KIND_U) return -1;
    return find_key(ops->by_version, ops->n_versions, ops->chunk[i] % ops->model_chunks,
                    ops->micro[i]);
}

int64_t pl_ops_update(const struct pl_ops *ops, int64_t i)
{
    int64_t version = pl_ops_version(ops, i);
    if (version >= 0) return ops->update[version];
    return ops->kind[i] == PL_KIND_U || !ops->m ? ops->micro[i]
                                                : ops->micro[i] / ops->m;
}

int64_t pl_ops_until(const struct pl_ops *ops, int64_t updates)
{
    int64_t until = INT64_MAX;
    for (int64_t i = 0; updates > 0 && i < ops->n; i++)
        if (ops->kind[i] == PL_KIND_U && ops->micro[i] == updates - 1 &&
            (until == INT64_MAX || ops->end[i] > until))
            until = ops->end[i];
    return until;
}

bool pl_ops_within(const struct pl_ops *ops, int64_t i, int64_t until)
{
    return ops->start[i] < until || (ops->kind[i] == PL_KIND_U && ops->end[i] == until);
}
