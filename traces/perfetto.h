/* Chrome trace-event JSON of one arm: what ui.perfetto.dev and chrome://tracing open
 * and PyTorch's profiler writes. */
#ifndef PL_TRACES_PERFETTO_H
#define PL_TRACES_PERFETTO_H

#include "traces/trace.h"

/* Write the arm (NULL: the first) to path, whole or not at all; an existing file is
 * replaced. updates > 0: only the ops that start, and what is sent, before the end of
 * that many updates. Errors: PL_EINPUT (no such arm, no timeline), PL_EIO. O(n log n)
 * time; the events are streamed. */
int pl_perfetto_write(const struct pl_trace *t, const char *arm, int64_t updates,
                      const char *path);

#endif
