/* Operations of the device `ref`; see gpu/device.h for each. */
#ifndef PL_GPU_REF_H
#define PL_GPU_REF_H

#include "gpu/ops.h"

PL_DEVICE_OPS(pl_ref_)

#endif
