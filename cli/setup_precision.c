#include "cli/setup_precision.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

/* OpenBLAS takes a buffer with its first product, and tries for ever. */
static int get_host(const struct pl_device **out)
{
    const int rc = pl_memory_piece_check((size_t)128 << 20, "a buffer of OpenBLAS");
    return rc ? rc : pl_device_get("host", out);
}

int pl_setup_device(const struct pl_config *config, bool tell,
                    const struct pl_device **out)
{
    static bool told;
    const char *name = pl_config_text(config, "train.device");
    if (!strcmp(name, "host")) return get_host(out);
    if (strcmp(name, "auto")) return pl_device_get(name, out);
    int rc = pl_device_get("cuda", out);
    if (rc != PL_ENODEV) return rc;
    if (tell && !told)
        pl_log(PL_LOG_INFO, "%s: train.device auto is host: %s",
               pl_config_where(config, "train.device"), pl_error_text());
    told |= tell;
    return get_host(out);
}

int pl_setup_precision(const struct pl_config *config, const struct pl_device *device,
                       bool tell, const struct pl_device **out)
{
    static bool told;
    const char *where = pl_config_where(config, "train.precision");
    int rc =
        pl_device_precision(device, pl_config_text(config, "train.precision"), out);
    if (rc == PL_ENODEV) {
        if (tell && !told)
            pl_log(PL_LOG_INFO, "%s: train.precision bf16: %s; products are in fp32",
                   where, pl_error_text());
        told |= tell;
        *out = device;
        return 0;
    }
    if (rc)
        return pl_fail(PL_ECONFIG, "%s: train.precision: %s", where, pl_error_text());
    return 0;
}
