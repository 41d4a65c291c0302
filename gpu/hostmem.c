#include "gpu/hostmem.h"

#include "base/err.h"
#include "base/mem.h"

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

int pl_hostmem_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes) memcpy(dst, src, bytes);
    return 0;
}

int pl_hostmem_zero(void *dst, size_t bytes)
{
    if (bytes) memset(dst, 0, bytes);
    return 0;
}
