#include "gpu/hostmem.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* AddressSanitizer sees the ends of malloc's blocks only. */
#ifdef __SANITIZE_ADDRESS__
enum { MAPPED = 0 };
#else
enum { MAPPED = 1 };
#endif
enum { ALIGN = 64, PAGE = 4096, HUGE_PAGE = 1 << 21, LARGE = 1 << 24 };

/* Before a block: what to give back. */
struct header {
    void *start;
    size_t mapped; /* bytes, or 0: of aligned_alloc */
};

/* Whole pages that the system may make huge: a walk through a matrix touches a page a
 * row, and small ones miss. Touched here, so that no update of weights waits for a
 * page. NULL when there is no room. */
static char *map_pages(size_t bytes)
{
    const size_t room = bytes + HUGE_PAGE;
    char *start =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    size_t skip = HUGE_PAGE - (uintptr_t)start % HUGE_PAGE;
    munmap(start, skip);
    if (skip < HUGE_PAGE) munmap(start + skip + bytes, HUGE_PAGE - skip);
    start += skip;
    madvise(start, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < bytes; at += PAGE) ((volatile char *)start)[at] = 0;
    return start;
}

int pl_hostmem_alloc(size_t bytes, void **ptr)
{
    *ptr = NULL;
    /* the kernel promises more than there is and kills who takes it */
    if (bytes >= LARGE && pl_memory_check((double)bytes, "a block of the host device"))
        return PL_EMEM;
    struct header h = {0};
    char *block = NULL;
    if (bytes < PTRDIFF_MAX - 2 * HUGE_PAGE) {
        size_t size = (ALIGN + bytes + PAGE - 1) / PAGE * PAGE;
        if (MAPPED && size >= HUGE_PAGE) {
            h.mapped = size;
            block = map_pages(size);
        } else {
            size = (2 * ALIGN + bytes - 1) / ALIGN * ALIGN;
            block = aligned_alloc(ALIGN, size);
            if (block) memset(block, 0, size);
        }
    }
    if (!block) {
        double mib = 1024.0 * 1024.0;
        double spare =
            (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
        return pl_fail(PL_EMEM, "host memory: %zu bytes asked, about %.0f MiB free",
                       bytes, spare / mib);
    }
    h.start = block;
    memcpy(block, &h, sizeof h);
    *ptr = block + ALIGN;
    return 0;
}

void pl_hostmem_release(void *ptr)
{
    struct header h;
    if (!ptr) return;
    memcpy(&h, (char *)ptr - ALIGN, sizeof h);
    if (h.mapped)
        munmap(h.start, h.mapped);
    else
        free(h.start);
}

/* Large blocks by all threads. */
enum { PIECE = 1 << 18 };

struct bytes {
    char *to;
    const char *from; /* NULL: zeros */
    size_t n;
};

static void bytes_part(void *context, int i)
{
    const struct bytes *b = context;
    size_t at = (size_t)i * PIECE, left = b->n - at, n = left < PIECE ? left : PIECE;
    if (b->from)
        memcpy(b->to + at, b->from + at, n);
    else
        memset(b->to + at, 0, n);
}

static int move(struct bytes b)
{
    pl_pool_for((int)((b.n + PIECE - 1) / PIECE), bytes_part, &b);
    return 0;
}

int pl_hostmem_copy(void *dst, const void *src, size_t bytes)
{
    return move((struct bytes){dst, src, bytes});
}

int pl_hostmem_zero(void *dst, size_t bytes)
{
    return move((struct bytes){dst, NULL, bytes});
}
