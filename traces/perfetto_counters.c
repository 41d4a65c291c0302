/* Counters of the export: activations in flight, out of the timeline, and bytes, out of
 * the memory table where the trace has one. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "traces/perfetto_event.h"

static void put_counter(struct pl_json *json, const char *name, const char *series,
                        int64_t device, int64_t ps, int64_t value)
{
    pl_perfetto_begin(json, "C", name, device, 0);
    pl_perfetto_time(json, "ts", ps / 1000);
    pl_json_begin(json, "args", '{');
    pl_json_int(json, series, value);
    pl_json_end(json, '}');
    pl_json_end(json, '}');
}

struct step {
    int64_t device, time;
    int64_t row, by; /* by: what it adds, or the value itself */
};

static int by_time(const void *left, const void *right)
{
    const struct step *x = left, *y = right;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* One event a nanosecond and device, with the last value. */
static void put_steps(struct pl_json *json, const char *name, const char *series,
                      struct step *steps, int64_t n, bool sum, int64_t until)
{
    if (n) qsort(steps, (size_t)n, sizeof *steps, by_time);
    int64_t value = 0;
    for (int64_t i = 0; i < n; i++) {
        bool fresh = !i || steps[i].device != steps[i - 1].device;
        if (steps[i].time > until) continue;
        value = sum && !fresh ? value + steps[i].by : steps[i].by;
        if (fresh && steps[i].time >= 1000)
            put_counter(json, name, series, steps[i].device, 0, 0);
        if (i + 1 < n && steps[i + 1].device == steps[i].device &&
            steps[i + 1].time / 1000 == steps[i].time / 1000 &&
            steps[i + 1].time <= until)
            continue;
        put_counter(json, name, series, steps[i].device, steps[i].time, value);
    }
}

/* A microbatch's activations are held from the start of F to the end of W (or BW). */
static void put_activations(struct pl_json *json, const struct pl_ops *ops,
                            int64_t until)
{
    struct step *steps = PL_NEW(ops->n, struct step);
    int64_t n = 0;
    for (int64_t i = 0; i < ops->n; i++) {
        int64_t kind = ops->kind[i];
        if (!pl_ops_within(ops, i, until)) continue;
        if (kind == PL_KIND_F)
            steps[n++] = (struct step){ops->device[i], ops->start[i], i, 1};
        else if (kind == PL_KIND_W || kind == PL_KIND_BW)
            steps[n++] = (struct step){ops->device[i], ops->end[i], i, -1};
    }
    put_steps(json, "activations", "in flight", steps, n, true, INT64_MAX);
    free(steps);
}

static void put_memory(struct pl_json *json, const struct pl_trace *t,
                       const struct pl_ops *ops, int64_t until)
{
    char *path = pl_printf("/arms/%s/memory", ops->arm);
    int64_t n;
    const int64_t *device = pl_trace_get_i64(t, path, "device", &n);
    const int64_t *time = pl_trace_get_i64(t, path, "time", NULL);
    const int64_t *bytes = pl_trace_get_i64(t, path, "bytes", NULL);
    free(path);
    struct step *steps = PL_NEW(n, struct step);
    for (int64_t i = 0; i < n; i++)
        steps[i] = (struct step){device[i], time[i], i, bytes[i]};
    put_steps(json, "memory", "bytes", steps, n, false, until);
    free(steps);
}

void pl_perfetto_counters(struct pl_json *json, const struct pl_trace *t,
                          const struct pl_ops *ops, int64_t until)
{
    put_activations(json, ops, until);
    put_memory(json, t, ops, until);
}

int pl_perfetto_check_memory(const struct pl_trace *t, const struct pl_ops *ops)
{
    char *path = pl_printf("/arms/%s/memory", ops->arm);
    int64_t n;
    const int64_t *device = pl_trace_get_i64(t, path, "device", &n);
    const int64_t *time = pl_trace_get_i64(t, path, "time", NULL);
    int status = 0;
    for (int64_t i = 0; !status && i < n; i++)
        if (device[i] < 0 || device[i] >= ops->devices || time[i] < 0)
            status = pl_fail(PL_EINPUT, "%s: row %" PRId64 " has no device or no time",
                             path, i);
    free(path);
    return status;
}
