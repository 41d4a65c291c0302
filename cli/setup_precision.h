/* The key train.precision: what a model's products are computed in. */
#ifndef PL_CLI_SETUP_PRECISION_H
#define PL_CLI_SETUP_PRECISION_H

#include "base/config.h"
#include "gpu/device.h"

/* The open device in the precision asked for. Where bf16 cannot be had (no AMX) that is
 * the device itself; tell: say so in a line, once in this process. Errors: PL_ECONFIG:
 * the device has no bf16. */
int pl_setup_precision(const struct pl_config *config, const struct pl_device *device,
                       bool tell, const struct pl_device **out);

#endif
