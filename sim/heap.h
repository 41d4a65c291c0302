/* Binary heap of events, earliest first: by time, then by order of insertion. Internal
 * to sim/. The caller frees item. */
#ifndef PL_SIM_HEAP_H
#define PL_SIM_HEAP_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/units.h"

struct event {
    pl_tick time;
    uint64_t sequence;
    int64_t micro;
    int32_t device, kind;
};

struct heap {
    struct event *item;
    int64_t n, room;
    uint64_t sequence;
};

static inline bool earlier(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static inline void heap_push(struct heap *heap, struct event event)
{
    if (heap->n == heap->room) {
        heap->room *= 2;
        heap->item = pl_grow(heap->item, (size_t)heap->room, sizeof *heap->item);
    }
    event.sequence = heap->sequence++;
    int64_t i = heap->n++;
    for (; i > 0 && earlier(&event, &heap->item[(i - 1) / 2]); i = (i - 1) / 2)
        heap->item[i] = heap->item[(i - 1) / 2];
    heap->item[i] = event;
}

static inline struct event heap_pop(struct heap *heap)
{
    struct event top = heap->item[0], last = heap->item[--heap->n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && earlier(&heap->item[child + 1], &heap->item[child]))
            child++;
        if (!earlier(&heap->item[child], &last)) break;
        heap->item[i] = heap->item[child];
    }
    heap->item[i] = last;
    return top;
}

#endif
