/* Trace Event Format ("Trace Event Format", N. Duca and D. Sinclair, Google, 2016): a
 * process a device, a thread for compute and one for what it sends (more where slices
 * overlap), transfers also as flows (s, t, f), counters (C).
 *
 * ts and dur are microseconds. Perfetto keeps whole nanoseconds and drops a slice that
 * overlaps another after rounding, so both ends are cut to whole nanoseconds here:
 * slices that touch then touch for every reader. Exact picoseconds go to args where
 * they differ. A flow binds to the slice around its time stamp: s stands in the last
 * nanosecond of the sending op, f at the start of the receiving one. */
#include "traces/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "traces/ops.h"
#include "traces/perfetto_event.h"

enum { TID_COMPUTE = 1, TID_SEND = 101 };

struct export
{
    const struct pl_trace *t;
    struct pl_ops ops;
    struct pl_json json;
    bool chunked; /* several chunks on one device: names tell the chunk */
    int32_t *op_lane, *send_lane;
    int op_lanes, send_lanes; /* most on one device */
    int64_t until;            /* ps; what starts later is left out */
};

void pl_perfetto_time(struct pl_json *json, const char *key, int64_t ns)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%" PRId64, ns / 1000);
    if (ns % 1000)
        snprintf(digits + n, sizeof digits - (size_t)n, ".%03d", (int)(ns % 1000));
    pl_json_number(json, key, digits);
}

void pl_perfetto_begin(struct pl_json *json, const char *phase, const char *name,
                       int64_t pid, int64_t tid)
{
    pl_json_begin(json, NULL, '{');
    pl_json_text(json, "ph", phase);
    pl_json_text(json, "name", name);
    pl_json_int(json, "pid", pid);
    if (tid) pl_json_int(json, "tid", tid);
}

static void put_slice_times(struct pl_json *json, int64_t start, int64_t end)
{
    pl_perfetto_time(json, "ts", start / 1000);
    pl_perfetto_time(json, "dur", end / 1000 - start / 1000);
}

static void put_exact_times(struct pl_json *json, int64_t start, int64_t end)
{
    if (start % 1000 == 0 && end % 1000 == 0) return;
    pl_json_int(json, "start_ps", start);
    pl_json_int(json, "duration_ps", end - start);
}

static void put_metadata(struct pl_json *json, const char *what, int64_t pid,
                         int64_t tid, const char *name, int64_t number)
{
    pl_perfetto_begin(json, "M", what, pid, tid);
    pl_json_begin(json, "args", '{');
    if (name)
        pl_json_text(json, "name", name);
    else
        pl_json_int(json, "sort_index", number);
    pl_json_end(json, '}');
    pl_json_end(json, '}');
}

static void put_thread(struct pl_json *json, int64_t pid, int64_t tid, const char *name)
{
    put_metadata(json, "thread_name", pid, tid, name, 0);
    put_metadata(json, "thread_sort_index", pid, tid, NULL, tid);
}

static void put_names(struct export *e)
{
    char name[64];
    for (int d = 0; d < e->ops.devices; d++) {
        snprintf(name, sizeof name, "device %d", d);
        put_metadata(&e->json, "process_name", d, 0, name, 0);
        put_metadata(&e->json, "process_sort_index", d, 0, NULL, d);
        for (int k = 0; k < e->op_lanes; k++)
            put_thread(&e->json, d, TID_COMPUTE + k,
                       k ? "compute, overlapped" : "compute");
        for (int k = 0; k < e->send_lanes; k++) {
            snprintf(name, sizeof name, k ? "send %d" : "send", k + 1);
            put_thread(&e->json, d, TID_SEND + k, name);
        }
    }
}

/* Colours by their names in chrome://tracing; Perfetto takes the letters of the name.
 */
static const char *const colours[PL_N_KINDS] = {[PL_KIND_F] = "rail_response",
                                                [PL_KIND_B] = "rail_idle",
                                                [PL_KIND_W] = "rail_load",
                                                [PL_KIND_BW] = "rail_idle",
                                                [PL_KIND_U] = "rail_animation"};

static void put_chunk(struct export *e, int64_t chunk)
{
    pl_json_int(&e->json, "chunk", chunk % e->ops.model_chunks);
    if (e->ops.chunks > e->ops.model_chunks)
        pl_json_int(&e->json, "replica", chunk / e->ops.model_chunks);
}

static void put_op_args(struct export *e, int64_t i)
{
    const struct pl_ops *ops = &e->ops;
    struct pl_json *json = &e->json;
    int64_t version = pl_ops_version(ops, i), kind = ops->kind[i];
    pl_json_begin(json, "args", '{');
    if (kind != PL_KIND_U) pl_json_int(json, "micro", ops->micro[i]);
    put_chunk(e, ops->chunk[i]);
    pl_json_int(json, "update", pl_ops_update(ops, i));
    if (version >= 0) {
        pl_json_int(json, "forward version", ops->forward[version]);
        if (kind != PL_KIND_F)
            pl_json_int(json, "backward version", ops->backward[version]);
        pl_json_int(json, "tau", ops->update[version] - ops->forward[version]);
    }
    put_exact_times(json, ops->start[i], ops->end[i]);
    pl_json_end(json, '}');
}

static void put_op(struct export *e, int64_t i)
{
    const struct pl_ops *ops = &e->ops;
    char name[64];
    int n = snprintf(name, sizeof name, "%s%" PRId64, pl_kind_names[ops->kind[i]],
                     ops->micro[i]);
    if (e->chunked) {
        name[n++] = ' ';
        pl_chunk_name((int)ops->chunk[i], ops->model_chunks, name + n,
                      sizeof name - (size_t)n);
    }
    pl_perfetto_begin(&e->json, "X", name, ops->device[i], TID_COMPUTE + e->op_lane[i]);
    pl_json_text(&e->json, "cat", pl_kind_names[ops->kind[i]]);
    put_slice_times(&e->json, ops->start[i], ops->end[i]);
    pl_json_text(&e->json, "cname", colours[ops->kind[i]]);
    put_op_args(e, i);
    pl_json_end(&e->json, '}');
}

static void put_flight(struct export *e, int64_t i)
{
    const struct pl_ops *ops = &e->ops;
    char name[64];
    snprintf(name, sizeof name, "%s%" PRId64 " to %" PRId64,
             pl_kind_names[ops->msg_kind[i]], ops->msg_micro[i], ops->dst[i]);
    pl_perfetto_begin(&e->json, "X", name, ops->src[i], TID_SEND + e->send_lane[i]);
    pl_json_text(&e->json, "cat", "transfer");
    put_slice_times(&e->json, ops->sent[i], ops->arrived[i]);
    pl_json_text(&e->json, "cname", "grey");
    pl_json_begin(&e->json, "args", '{');
    pl_json_int(&e->json, "micro", ops->msg_micro[i]);
    put_chunk(e, ops->msg_chunk ? ops->msg_chunk[i] : ops->src[i]);
    pl_json_int(&e->json, "to device", ops->dst[i]);
    put_exact_times(&e->json, ops->sent[i], ops->arrived[i]);
    pl_json_end(&e->json, '}');
    pl_json_end(&e->json, '}');
}

static void put_flow(struct export *e, const char *phase, int64_t message, int64_t pid,
                     int64_t tid, int64_t ns)
{
    pl_perfetto_begin(&e->json, phase,
                      e->ops.msg_kind[message] == PL_KIND_F ? "activation" : "gradient",
                      pid, tid);
    pl_json_text(&e->json, "cat", "transfer");
    pl_json_int(&e->json, "id", message + 1);
    if (*phase == 'f') pl_json_text(&e->json, "bp", "e");
    pl_perfetto_time(&e->json, "ts", ns);
    pl_json_end(&e->json, '}');
}

/* Flight, and the flow through it where both ops are recorded; false: they are not. */
static bool put_message(struct export *e, int64_t i)
{
    const struct pl_ops *ops = &e->ops;
    bool forward = ops->msg_kind[i] == PL_KIND_F,
         flies = ops->arrived[i] > ops->sent[i];
    int64_t chunk = ops->msg_chunk ? ops->msg_chunk[i] : ops->src[i];
    int64_t next = ops->msg_chunk ? chunk + (forward ? 1 : -1) : ops->dst[i];
    enum pl_kind kind = forward ? PL_KIND_F : PL_KIND_B;
    int64_t from = pl_ops_find(ops, kind, chunk, ops->msg_micro[i]);
    int64_t to = pl_ops_find(ops, kind, next, ops->msg_micro[i]);
    if (flies) put_flight(e, i);
    if (from < 0 || to < 0 || !pl_ops_within(ops, to, e->until)) return false;
    int64_t start = ops->start[from] / 1000, last = ops->end[from] / 1000 - 1;
    put_flow(e, "s", i, ops->src[i], TID_COMPUTE + e->op_lane[from],
             last > start ? last : start);
    if (flies)
        put_flow(e, "t", i, ops->src[i], TID_SEND + e->send_lane[i],
                 ops->sent[i] / 1000);
    put_flow(e, "f", i, ops->dst[i], TID_COMPUTE + e->op_lane[to],
             ops->start[to] / 1000);
    return true;
}

static void put_text(struct export *e, const char *path, const char *name)
{
    const char *text = pl_trace_get_attr_text(e->t, path, name);
    if (text) pl_json_text(&e->json, name, text);
}

static void put_about(struct export *e, int64_t cut)
{
    static const char *const numbers[] = {"P", "v",       "replicas",
                                          "m", "updates", "recorded_updates"};
    char *group = pl_printf("/arms/%s", e->ops.arm);
    pl_json_begin(&e->json, "otherData", '{');
    put_text(e, "/", "creator");
    put_text(e, "/", "creator_version");
    pl_json_text(&e->json, "arm", e->ops.arm);
    put_text(e, group, "schedule");
    for (int k = 0; k < 6; k++) {
        int64_t value;
        if (pl_trace_get_attr_int(e->t, group, numbers[k], &value))
            pl_json_int(&e->json, numbers[k], value);
    }
    pl_json_text(&e->json, "clock", "simulated; ts and dur in us, whole ns");
    pl_json_int(&e->json, "transfers without flow", cut);
    pl_json_end(&e->json, '}');
    free(group);
}

static void put_all(struct export *e, FILE *out)
{
    int64_t cut = 0;
    pl_json_open(&e->json, out);
    e->json.line_depth = 2;
    pl_json_begin(&e->json, NULL, '{');
    pl_json_text(&e->json, "displayTimeUnit", "ms");
    pl_json_begin(&e->json, "traceEvents", '[');
    put_names(e);
    for (int64_t i = 0; i < e->ops.n; i++)
        if (pl_ops_within(&e->ops, i, e->until)) put_op(e, i);
    for (int64_t i = 0; i < e->ops.n_messages; i++)
        if (e->ops.sent[i] < e->until) cut += !put_message(e, i);
    pl_perfetto_counters(&e->json, e->t, &e->ops, e->until);
    pl_json_end(&e->json, ']');
    put_about(e, cut);
    pl_json_end(&e->json, '}');
    pl_json_close(&e->json);
}

static void assign_lanes(struct export *e)
{
    const struct pl_ops *ops = &e->ops;
    e->op_lane = PL_NEW(ops->n, int32_t);
    e->send_lane = PL_NEW(ops->n_messages, int32_t);
    e->op_lanes = pl_lanes(ops->n, ops->device, ops->start, ops->end, e->op_lane, NULL);
    int sends = pl_lanes(ops->n_messages, ops->src, ops->sent, ops->arrived,
                         e->send_lane, NULL);
    for (int64_t i = 0; i < ops->n_messages; i++)
        if (ops->arrived[i] > ops->sent[i]) e->send_lanes = sends;
}

static bool is_chunked(const struct pl_ops *ops)
{
    int32_t *device = PL_NEW(2 * ops->n, int32_t), *chunk = device + ops->n;
    int most;
    for (int64_t i = 0; i < ops->n; i++) {
        device[i] = (int32_t)ops->device[i];
        chunk[i] = (int32_t)ops->chunk[i];
    }
    free(pl_chunk_ranks(ops->n, device, chunk, &most));
    free(device);
    return most > 1;
}

int pl_perfetto_write(const struct pl_trace *t, const char *arm, int64_t updates,
                      const char *path)
{
    struct export e = {.t = t};
    int status = pl_ops_load(t, arm, &e.ops);
    if (status) return status;
    status = pl_perfetto_check_memory(t, &e.ops);
    struct pl_file *file = status ? NULL : pl_file_create(path);
    if (!status && !file) status = PL_EIO;
    if (!status) {
        e.until = pl_ops_until(&e.ops, updates);
        assign_lanes(&e);
        e.chunked = is_chunked(&e.ops);
        put_all(&e, pl_file_stream(file));
        status = pl_file_commit(file);
    }
    free(e.op_lane);
    free(e.send_lane);
    pl_ops_free(&e.ops);
    return status;
}
