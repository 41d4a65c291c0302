/* The microbatches and updates in flight, in rings that grow when they must. A
 * microbatch is in flight from its first F until its last weight gradient, an update
 * from the first F of its group until its last U. */
#include <stdlib.h>
#include <string.h>

#include "sim/engine.h"

enum { FIRST_BITS = 4, FIRST_SIZE = 1 << FIRST_BITS };

void pl_window_new(struct engine *e)
{
    struct window *w = &e->window;
    *w = (struct window){
        .micro_size = FIRST_SIZE, .micro_bits = FIRST_BITS, .group_size = FIRST_SIZE};
    w->cell = PL_NEW((size_t)e->Q * FIRST_SIZE, struct cell);
    w->pending = PL_NEW(FIRST_SIZE, int32_t);
    w->left = PL_NEW((size_t)e->C * FIRST_SIZE, int32_t);
    w->left_all = PL_NEW(FIRST_SIZE, int64_t);
    w->to_do = PL_NEW(FIRST_SIZE, int32_t);
}

void pl_window_free(struct window *w)
{
    free(w->cell);
    free(w->pending);
    free(w->left);
    free(w->left_all);
    free(w->to_do);
}

/* A twice as large copy of `rows` rings: entry i of a ring keeps its place modulo the
 * new size, for from <= i < to. */
static void *grow_ring(void *old, size_t rows, int64_t size, size_t width, int64_t from,
                       int64_t to)
{
    char *new = pl_alloc(rows * 2 * (size_t)size, width);
    for (size_t r = 0; r < rows; r++) {
        const char *a = (const char *)old + r * (size_t)size * width;
        char *b = new + r * 2 * (size_t)size *width;
        for (int64_t i = from; i < to; i++)
            memcpy(b + (size_t)(i & (2 * size - 1)) * width,
                   a + (size_t)(i & (size - 1)) * width, width);
    }
    free(old);
    return new;
}

static void grow_micro(struct engine *e)
{
    struct window *w = &e->window;
    int64_t n = w->micro_size, a = w->oldest, b = w->newest;
    w->cell = grow_ring(w->cell, (size_t)e->Q, n, sizeof *w->cell, a, b);
    w->pending = grow_ring(w->pending, 1, n, sizeof *w->pending, a, b);
    w->micro_size = 2 * n;
    w->micro_bits++;
}

static void grow_groups(struct engine *e)
{
    struct window *w = &e->window;
    int64_t n = w->group_size, a = w->updated, b = w->opened;
    w->left = grow_ring(w->left, (size_t)e->C, n, sizeof *w->left, a, b);
    w->left_all = grow_ring(w->left_all, 1, n, sizeof *w->left_all, a, b);
    w->to_do = grow_ring(w->to_do, 1, n, sizeof *w->to_do, a, b);
    w->group_size = 2 * n;
}

static void open_group(struct engine *e)
{
    struct window *w = &e->window;
    int m = e->sched->shape.m;
    if (w->opened - w->updated == w->group_size) grow_groups(e);
    int64_t group = w->opened++, at = group & (w->group_size - 1);
    for (int c = 0; c < e->C; c++) *pl_window_left(e, c, group) = m;
    w->left_all[at] = (int64_t)e->C * m;
    w->to_do[at] = e->Q;
}

void pl_window_open(struct engine *e, int64_t micro)
{
    struct window *w = &e->window;
    while (w->newest <= micro) {
        if (w->newest - w->oldest == w->micro_size) grow_micro(e);
        if (w->newest == w->opened * e->sched->shape.m) open_group(e);
        w->pending[w->newest & (w->micro_size - 1)] = e->C;
        w->newest++;
    }
}
