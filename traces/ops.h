/* The executed run of one arm of a trace, checked, with what drawings and exports ask
 * of it. Columns are borrowed from the trace, the rest is owned (pl_ops_free). Rows
 * keep the order of the trace. Chunks are instances: replica * (chunks of the model) +
 * chunk of the model. */
#ifndef PL_TRACES_OPS_H
#define PL_TRACES_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/schema.h"
#include "traces/trace.h"

struct pl_ops_key { /* index entry: sorted by a, then b */
    int64_t a, b, row;
};

struct pl_ops {
    char *arm;
    int64_t n;
    int devices, chunks; /* largest number seen + 1 */
    int64_t m;           /* microbatches per update; 0: the trace does not tell */
    int model_chunks;    /* of one replica */
    const int64_t *kind, *device, *chunk, *micro;
    const int64_t *start, *end; /* ps */
    int64_t n_messages;         /* 0 without table */
    const int64_t *msg_kind, *src, *dst, *msg_micro, *sent, *arrived;
    const int64_t *msg_chunk; /* sending chunk; NULL: the device is the chunk */
    int64_t n_versions;
    const int64_t *update, *forward, *backward; /* [n_versions] */
    struct pl_ops_key *by_op, *by_version;
};

/* arm == NULL: the first. Errors: PL_EINPUT (no such arm, the nearest named; no
 * timeline; a row that is no op or no message, named). */
int pl_ops_load(const struct pl_trace *t, const char *arm, struct pl_ops *out);
void pl_ops_free(struct pl_ops *ops);

/* Row of the forward (kind F) or of the op that makes the input gradient (kind B: a B
 * or BW) of a microbatch on a chunk; -1 when not recorded. O(log n). */
int64_t pl_ops_find(const struct pl_ops *ops, enum pl_kind kind, int64_t chunk,
                    int64_t micro);
/* Name of a chunk: "c5", in the second replica "c5'"; size >= 16. */
void pl_chunk_name(int chunk, int model_chunks, char *name, size_t size);

/* Row of the version map for op i, -1 where there is none (U, or not recorded). */
int64_t pl_ops_version(const struct pl_ops *ops, int64_t i);
/* Update that consumes the gradient of op i; of U its own number. */
int64_t pl_ops_update(const struct pl_ops *ops, int64_t i);

/* End of the last U of update `updates` - 1; INT64_MAX when that is <= 0 or not
 * recorded. Does op i start before that (or is it one of those U)? */
int64_t pl_ops_until(const struct pl_ops *ops, int64_t updates);
bool pl_ops_within(const struct pl_ops *ops, int64_t i, int64_t until);

/* Rank of each op's chunk among the chunks of its device, [n], caller frees; *most: the
 * largest number of chunks on one device. */
int32_t *pl_chunk_ranks(int64_t n, const int32_t *device, const int32_t *chunk,
                        int *most);

/* Lanes: intervals of one owner that overlap get different lanes, lowest first, so that
 * every lane is serial; those without length share lane 0. owner, start, end, lane,
 * lanes: [n]; lanes (may be NULL) becomes the number of lanes in use around the
 * interval, 1 for the undisturbed. Returns the largest number of lanes, 1 or more.
 * O(n log n). */
int pl_lanes(int64_t n, const int64_t *owner, const int64_t *start, const int64_t *end,
             int32_t *lane, int32_t *lanes);

#endif
