/* Inside of the device `host`: its operations exist once for each instruction set,
 * built from the same text (host_*.h, which host_base.c, host_avx2.c and host_avx512.c
 * include), and host.c picks by CPUID at each call. Tests run all three sets.
 * Operations share their loops among the threads of base/pool.h. */
#ifndef PL_GPU_HOST_H
#define PL_GPU_HOST_H

#include "base/pool.h"
#include "gpu/ops.h"

PL_DEVICE_OPS(pl_base_)   /* any CPU: GEMM by OpenBLAS */
PL_DEVICE_OPS(pl_avx2_)   /* x86-64-v3 */
PL_DEVICE_OPS(pl_avx512_) /* x86-64-v4 */

/* Loops over n rows of `width` floats are cut into at most PL_HOST_PARTS parts, of at
 * least some thousand floats and, where a row is one float, whole cache lines; where
 * they are cut depends on n and width only. */
enum { PL_HOST_PARTS = 64 };
typedef void pl_host_work(void *args, int part, size_t from, size_t to);
int pl_host_parts(size_t n, size_t width);
void pl_host_rows(size_t n, size_t width, pl_host_work *work, void *args);

/* This thread's scratch of at least `floats` floats, 64-byte aligned: grown when a
 * larger shape comes, kept until the thread ends, contents undefined. Never NULL. */
float *pl_host_scratch(size_t floats);

/* The most of it that an operation takes in one thread, in bytes. */
size_t pl_host_scratch_bytes(int T, int head_dim, bool bf16);

/* The sets: complete devices that differ in the operations only. NULL-terminated, best
 * first, those that this CPU runs. */
const struct pl_device *const *pl_host_sets(void);

#endif
