/* The keys train.device and train.precision: what computes, and what a model's products
 * are computed in. */
#ifndef PL_CLI_SETUP_PRECISION_H
#define PL_CLI_SETUP_PRECISION_H

#include "base/config.h"
#include "gpu/device.h"

/* Opens the device asked for; auto: cuda, or host where there is no GPU. tell: say why
 * it is host in a line, once in this process. Errors: as pl_device_get. */
int pl_setup_device(const struct pl_config *config, bool tell,
                    const struct pl_device **out);

/* The open device in the precision asked for. Where bf16 cannot be had (no AMX) that is
 * the device itself; tell: say so in a line, once in this process. Errors: PL_ECONFIG:
 * the device has no bf16. */
int pl_setup_precision(const struct pl_config *config, const struct pl_device *device,
                       bool tell, const struct pl_device **out);

#endif
