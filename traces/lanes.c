/* Places inside the row of a device: lanes by first fit over the intervals of an owner
 * in order of their start, and ranks of chunks. */
#include <stdlib.h>

#include "base/mem.h"
#include "traces/ops.h"

struct interval {
    int64_t owner, start, end, row;
};

static int by_start(const void *left, const void *right)
{
    const struct interval *x = left, *y = right;
    if (x->owner != y->owner) return x->owner < y->owner ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

int pl_lanes(int64_t n, const int64_t *owner, const int64_t *start, const int64_t *end,
             int32_t *lane, int32_t *lanes)
{
    struct interval *all = PL_NEW(n, struct interval);
    int64_t rows = n;
    n = 0; /* from here on those with a length */
    for (int64_t i = 0; i < rows; i++) {
        lane[i] = 0;
        if (lanes) lanes[i] = 1;
        if (end[i] > start[i])
            all[n++] = (struct interval){owner[i], start[i], end[i], i};
    }
    if (n) qsort(all, (size_t)n, sizeof *all, by_start);
    int64_t *free_at = NULL, cluster = 0, last = 0; /* cluster: rows that touch */
    int used = 0, most = 1;
    for (int64_t i = 0; i <= n; i++) {
        if (i == n || !used || all[i].owner != all[cluster].owner ||
            all[i].start >= last) {
            for (int64_t k = cluster; lanes && k < i; k++) lanes[all[k].row] = used;
            if (i == n) break;
            cluster = i;
            used = 0;
            last = all[i].start;
        }
        int k = 0;
        while (k < used && free_at[k] > all[i].start) k++;
        if (k == used) {
            free_at = pl_grow(free_at, (size_t)++used, sizeof *free_at);
            if (used > most) most = used;
        }
        free_at[k] = all[i].end;
        if (all[i].end > last) last = all[i].end;
        lane[all[i].row] = k;
    }
    free(free_at);
    free(all);
    return most;
}

int32_t *pl_chunk_ranks(int64_t n, const int32_t *device, const int32_t *chunk,
                        int *most)
{
    int32_t chunks = 0, devices = 0;
    for (int64_t i = 0; i < n; i++) {
        if (chunk[i] >= chunks) chunks = chunk[i] + 1;
        if (device[i] >= devices) devices = device[i] + 1;
    }
    int32_t *home = PL_NEW(chunks, int32_t), *count = PL_NEW(devices, int32_t);
    int32_t *rank_of = PL_NEW(chunks, int32_t), *rank = PL_NEW(n, int32_t);
    for (int64_t i = 0; i < n; i++) home[chunk[i]] = device[i] + 1;
    *most = 1;
    for (int32_t q = 0; q < chunks; q++) {
        if (!home[q]) continue;
        rank_of[q] = count[home[q] - 1]++;
        if (count[home[q] - 1] > *most) *most = count[home[q] - 1];
    }
    for (int64_t i = 0; i < n; i++) rank[i] = rank_of[chunk[i]];
    free(home);
    free(count);
    free(rank_of);
    return rank;
}
