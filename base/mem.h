/* Host memory: running out is fatal, with size and site; so these never return NULL.
 * The caller owns what is returned and releases it with free(). */
#ifndef PL_BASE_MEM_H
#define PL_BASE_MEM_H

#include <stddef.h>

#define pl_alloc(count, size) pl_alloc_at((count), (size), __FILE__, __LINE__)
#define pl_grow(old, count, size) pl_grow_at((old), (count), (size), __FILE__, __LINE__)
#define PL_NEW(count, type) ((type *)pl_alloc((size_t)(count), sizeof(type)))

/* count * size bytes, zeroed; overflow of the product is fatal too. */
void *pl_alloc_at(size_t count, size_t size, const char *file, int line);

/* Resize old (may be NULL) to count * size bytes; new bytes are not set. */
void *pl_grow_at(void *old, size_t count, size_t size, const char *file, int line);

/* Copy of text; formatted text. Caller frees. */
char *pl_strdup(const char *text);
char *pl_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
