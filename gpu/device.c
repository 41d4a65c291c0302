/* The registry of devices. `cuda` is a shared object, found and opened by its loader.
 */
#include "gpu/device.h"
#include "base/err.h"
#include "gpu/cuda_load.h"
#include "gpu/host.h"
#include "gpu/host_bf16.h"

#include <string.h>

static const struct pl_device *const devices[] = {&pl_device_ref, &pl_device_host};
const char *const pl_device_choices[] = {"auto", "ref", "host", "cuda", NULL};
const char *const *const pl_device_names = pl_device_choices + 1;

int pl_device_get(const char *name, const struct pl_device **device)
{
    const struct pl_device *found = NULL;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (!strcmp(devices[i]->name, name)) found = devices[i];
    if (!strcmp(name, "cuda")) {
        int status = pl_cuda_load(&found);
        if (status) return status;
    }
    if (!found)
        return pl_fail_unknown(PL_ENODEV, "device", "device", name, pl_device_names);
    int status = found->open();
    if (!status) *device = found;
    return status;
}

size_t pl_device_scratch(const struct pl_device *device, int T, int head_dim)
{
    if (!device->host_memory || !strcmp(device->name, "ref")) return 0;
    const bool bf16 = strcmp(device->precision, "fp32") != 0;
    return (size_t)pl_pool_threads() * pl_host_scratch_bytes(T, head_dim, bf16);
}

const char *const pl_precision_names[] = {"fp32", "tf32", "bf16", "bf16-emulated",
                                          NULL};
static const char *const have_it[] = {"all", "cuda", "host and cuda", "host"};

int pl_device_precision(const struct pl_device *device, const char *precision,
                        const struct pl_device **out)
{
    int i = 0;
    while (pl_precision_names[i] && strcmp(pl_precision_names[i], precision)) i++;
    if (!pl_precision_names[i])
        return pl_fail_unknown(PL_EUNSUP, "precision", "precision", precision,
                               pl_precision_names);
    for (const struct pl_device *d = device; d; d = d->twin) {
        if (strcmp(d->precision, precision)) continue;
        *out = d;
        return 0;
    }
    if (device == &pl_device_host && strcmp(precision, "tf32"))
        return pl_host_precision(precision, out);
    return pl_fail(PL_EUNSUP, "%s is there for the device %s, not for %s", precision,
                   have_it[i], device->name);
}
