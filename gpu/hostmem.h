/* Memory of the devices that live in plain host memory (ref, host): the functions their
 * tables share. Blocks are 64-byte aligned; release() with pl_hostmem_release. */
#ifndef PL_GPU_HOSTMEM_H
#define PL_GPU_HOSTMEM_H

#include <stddef.h>

/* Zeroed block; on failure *ptr is NULL and PL_EMEM gives the bytes asked and free. */
int pl_hostmem_alloc(size_t bytes, void **ptr);
void pl_hostmem_release(void *ptr);
/* Copies in every direction are memcpy; blocks must not overlap. Never fail. */
int pl_hostmem_copy(void *dst, const void *src, size_t bytes);
int pl_hostmem_zero(void *dst, size_t bytes);

#endif
