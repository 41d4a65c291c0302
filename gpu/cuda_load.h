/* The device `cuda` is a shared object of its own, so that the program starts at once
 * on a machine without GPU, driver or cuBLAS. */
#ifndef PL_GPU_CUDA_LOAD_H
#define PL_GPU_CUDA_LOAD_H

#include "gpu/device.h"

/* pl_cuda_load - find pipelag-cuda.so in the folders of $PIPELAG_PLUGIN_PATH (separated
 * by colons), beside the executable, then in pkglibdir; load the first found (it stays
 * loaded). *device is borrowed and not yet open. Errors: PL_ENODEV: no such file, a
 * library it needs (cuBLAS) is missing, or it was built for another pipelag. */
int pl_cuda_load(const struct pl_device **device);

#endif
