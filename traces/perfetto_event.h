/* What the files of the Perfetto export share. */
#ifndef PL_TRACES_PERFETTO_EVENT_H
#define PL_TRACES_PERFETTO_EVENT_H

#include "base/json.h"
#include "traces/ops.h"

/* Open an event: phase, name, process, thread (0: none). pl_json_end closes it. */
void pl_perfetto_begin(struct pl_json *json, const char *phase, const char *name,
                       int64_t pid, int64_t tid);
/* Nanoseconds as microseconds, exactly. */
void pl_perfetto_time(struct pl_json *json, const char *key, int64_t ns);

/* Counter events of all devices up to `until` ps. */
void pl_perfetto_counters(struct pl_json *json, const struct pl_trace *t,
                          const struct pl_ops *ops, int64_t until);
/* PL_EINPUT when the memory table has a row without device or time. */
int pl_perfetto_check_memory(const struct pl_trace *t, const struct pl_ops *ops);

#endif
