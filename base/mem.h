/* Host memory: running out is fatal, with size and site; so these never return NULL.
 * The caller owns what is returned and releases it with free(). */
#ifndef PL_BASE_MEM_H
#define PL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

#define pl_alloc(count, size) pl_alloc_at((count), (size), __FILE__, __LINE__)
#define pl_grow(old, count, size) pl_grow_at((old), (count), (size), __FILE__, __LINE__)
#define PL_NEW(count, type) ((type *)pl_alloc((size_t)(count), sizeof(type)))

/* count * size bytes, zeroed; overflow of the product is fatal too. */
void *pl_alloc_at(size_t count, size_t size, const char *file, int line);

/* The same end for bytes that were asked for by other means. */
#define pl_out_of_memory(bytes) pl_out_of_memory_at((bytes), __FILE__, __LINE__)
__attribute__((noreturn)) void pl_out_of_memory_at(size_t bytes, const char *file,
                                                   int line);

/* Resize old (may be NULL) to count * size bytes; new bytes are not set. */
void *pl_grow_at(void *old, size_t count, size_t size, const char *file, int line);

/* Bytes that this process could still take: free memory and reclaimable cache of the
 * machine and of the control group, and the limit of `ulimit -v`; the least of them.
 * INFINITY when the system does not say. */
double pl_memory_available(void);

/* Refuse before the machine runs out: PL_EMEM "WHAT needs 12 GiB of memory, 3 GiB are
 * free" when bytes are more than available. */
int pl_memory_check(double bytes, const char *what);

/* Under `ulimit -v`: can so many bytes be mapped in one piece, for a library that does
 * not take no for an answer? PL_EMEM naming the limit. */
int pl_memory_piece_check(size_t bytes, const char *what);

/* Keep what is freed for the next allocation instead of handing it back to the system:
 * a fresh page costs about 1 us. For programs that simulate again and again. */
void pl_memory_keep(void);

/* Copy of text; formatted text. Caller frees. */
char *pl_strdup(const char *text);
char *pl_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Is it one of the words, which single spaces separate? */
bool pl_has_word(const char *words, const char *word);

#endif
