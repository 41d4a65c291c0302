/* Inside of the device `host`: its operations exist once for each instruction set,
 * built from the same text (host_gemm.h, host_layers.h and host_attention.h, which
 * host_base.c, host_avx2.c and host_avx512.c include), and host.c picks by CPUID at
 * each call. Tests run all three sets. */
#ifndef PL_GPU_HOST_H
#define PL_GPU_HOST_H

#include "gpu/ops.h"

PL_DEVICE_OPS(pl_base_)   /* any CPU: GEMM by OpenBLAS */
PL_DEVICE_OPS(pl_avx2_)   /* x86-64-v3 */
PL_DEVICE_OPS(pl_avx512_) /* x86-64-v4 */

/* This thread's scratch of at least `floats` floats, 64-byte aligned: grown when a
 * larger shape comes, kept until the thread ends, contents undefined. Never NULL. */
float *pl_host_scratch(size_t floats);

/* The sets: complete devices that differ in the operations only. NULL-terminated, best
 * first, those that this CPU runs. */
const struct pl_device *const *pl_host_sets(void);

#endif
