#include "base/mem.h"

#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/units.h"

static _Noreturn void die(size_t count, size_t size, const char *file, int line)
{
    fprintf(stderr, "pipelag: out of memory: %zu x %zu bytes at %s:%d\n", count, size,
            file, line);
    exit(1);
}

void pl_out_of_memory_at(size_t bytes, const char *file, int line)
{
    die(1, bytes, file, line);
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

/* The number after key in a file of the kernel, or missing. */
static double kernel_number(const char *path, const char *key, double missing)
{
    FILE *in = fopen(path, "r");
    char line[256];
    double value = missing;
    while (in && value == missing && fgets(line, sizeof line, in)) {
        char *end;
        if (strncmp(line, key, strlen(key))) continue;
        double number = strtod(line + strlen(key), &end);
        if (end > line + strlen(key)) value = number; /* "max": no limit */
    }
    if (in) fclose(in);
    return value;
}

double pl_memory_available(void)
{
    const double kib = 1024;
    double left = kib * kernel_number("/proc/meminfo", "MemAvailable:", INFINITY);
    double limit = kernel_number("/sys/fs/cgroup/memory.max", "", INFINITY);
    if (limit < INFINITY) {
        double used = kernel_number("/sys/fs/cgroup/memory.current", "", 0);
        double cache = kernel_number("/sys/fs/cgroup/memory.stat", "inactive_file ", 0);
        left = fmin(left, limit - used + cache);
    }
    struct rlimit space;
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
        left = fmin(left, (double)space.rlim_cur -
                              kib * kernel_number("/proc/self/status", "VmSize:", 0));
    return fmax(left, 0);
}

int pl_memory_check(double bytes, const char *what)
{
    char need[32], have[32];
    double left = pl_memory_available();
    if (bytes <= left) return 0;
    return pl_fail(PL_EMEM, "%s needs %s of memory, %s are free", what,
                   pl_units_format_bytes(bytes, need, sizeof need),
                   pl_units_format_bytes(left, have, sizeof have));
}

int pl_memory_piece_check(size_t bytes, const char *what)
{
    char size[32], limit[32];
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY) return 0;
    void *piece =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece != MAP_FAILED) {
        munmap(piece, bytes);
        return 0;
    }
    return pl_fail(PL_EMEM, "ulimit -v: an address space of %s has no room for %s, %s",
                   pl_units_format_bytes((double)space.rlim_cur, limit, sizeof limit),
                   what, pl_units_format_bytes((double)bytes, size, sizeof size));
}

void pl_memory_keep(void)
{
#ifdef M_TRIM_THRESHOLD
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
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

bool pl_has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}
