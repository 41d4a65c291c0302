#include "gpu/hostmem.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64, LARGE = 1 << 24 };

int pl_hostmem_alloc(size_t bytes, void **ptr)
{
    *ptr = NULL;
    /* the kernel promises more than there is and kills who takes it */
    if (bytes >= LARGE && pl_memory_check((double)bytes, "a block of the host device"))
        return PL_EMEM;
    size_t size =
        bytes > SIZE_MAX - ALIGN ? bytes : (bytes + ALIGN - 1) / ALIGN * ALIGN;
    void *block = size > PTRDIFF_MAX ? NULL : aligned_alloc(ALIGN, size ? size : ALIGN);
    if (!block) {
        double mib = 1024.0 * 1024.0;
        double spare =
            (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
        return pl_fail(PL_EMEM, "host memory: %zu bytes asked, about %.0f MiB free",
                       bytes, spare / mib);
    }
    memset(block, 0, size ? size : ALIGN);
    *ptr = block;
    return 0;
}

void pl_hostmem_release(void *ptr)
{
    free(ptr);
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
