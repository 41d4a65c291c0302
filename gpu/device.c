/* The registry of devices. `cuda` is a shared object, found and opened by its loader.
 */
#include "gpu/device.h"
#include "base/err.h"

#include <string.h>

static const struct pl_device *const devices[] = {&pl_device_ref, &pl_device_host};
const char *const pl_device_names[] = {"ref", "host", NULL};

int pl_device_get(const char *name, const struct pl_device **device)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (!strcmp(devices[i]->name, name)) {
            int status = devices[i]->open();
            if (!status) *device = devices[i];
            return status;
        }
    return pl_fail_unknown(PL_ENODEV, "device", "device", name, pl_device_names);
}
