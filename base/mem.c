#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void die(size_t count, size_t size, const char *file, int line)
{
    fprintf(stderr, "pipelag: out of memory: %zu x %zu bytes at %s:%d\n", count, size, file,
            line);
    exit(1);
}

void *pl_alloc_at(size_t count, size_t size, const char *file, int line)
{
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (!p) die(count, size, file, line);
    return p;
}

void *pl_grow_at(void *old, size_t count, size_t size, const char *file, int line)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) die(count, size, file, line);
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p) die(count, size, file, line);
    return p;
}

char *pl_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(pl_alloc(n, 1), text, n);
}

char *pl_printf(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    char *text = pl_alloc((size_t)(n < 0 ? 0 : n) + 1, 1);
    va_start(ap, format);
    vsnprintf(text, (size_t)n + 1, format, ap);
    va_end(ap);
    return text;
}
