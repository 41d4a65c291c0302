/* Independent tasks on the cores of this machine: forked workers take shares of them
 * from a counter in shared memory and send what they find through pipes. A worker that
 * dies takes nothing with it; who computed what, and when, leaves no mark. */
#ifndef PL_CLI_POOL_H
#define PL_CLI_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/* Bytes that grow: records on their way. Owned: free(data). */
struct pl_bytes {
    char *data;
    size_t n, room;
};

static inline void pl_bytes_add(struct pl_bytes *bytes, const void *data, size_t n)
{
    if (bytes->n + n > bytes->room) {
        bytes->room = 2 * (bytes->n + n);
        bytes->data = (char *)pl_grow(bytes->data, bytes->room, 1);
    }
    memcpy(bytes->data + bytes->n, data, n);
    bytes->n += n;
}

struct pl_pool_job {
    int64_t n;     /* tasks */
    int n_workers; /* >= 1 */
    int64_t share; /* tasks that a worker takes at a time */
    void *context;
    void (*begin)(void *context);           /* in each worker, once; may be NULL */
    bool (*skip)(void *context, int64_t i); /* nothing to do? May be NULL */
    /* In a worker: append the records of task i to out. */
    void (*work)(void *context, int64_t i, struct pl_bytes *out);
    /* In the caller: take the whole records at the start of bytes and remove them.
     * Errors end the job. */
    int (*take)(void *context, struct pl_bytes *bytes);
    void (*tick)(void *context); /* in the caller, ten times a second or more often */
    /* "point 17 (...)" for messages; caller frees. */
    char *(*describe)(void *context, int64_t i);
};

/* SIGINT and SIGTERM (caught by pl_workers_catch_signals) end it early: then it returns
 * 0, as after a whole run, and pl_workers_signal() tells. Errors: PL_EIO (no process,
 * a worker died: which task), those of take. */
int pl_pool_run(const struct pl_pool_job *job);

#endif
