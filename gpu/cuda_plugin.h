/* What the program and pipelag-cuda.so agree on. The shared object exports one
 * function, pl_plugin(); it gets the host's services, since it links to nothing of
 * ours. */
#ifndef PL_GPU_CUDA_PLUGIN_H
#define PL_GPU_CUDA_PLUGIN_H

#include "gpu/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compared before anything else is used. Raise the upper half when the meaning of a
 * member changes; a member added or removed shows in the size. */
#define PL_PLUGIN_ABI (5u << 16 | (unsigned)sizeof(struct pl_device))
#define PL_PLUGIN_FILE "pipelag-cuda.so"
#define PL_PLUGIN_SYMBOL "pl_plugin"

struct pl_plugin_host {
    unsigned abi;
    int (*fail)(int code, const char *format, ...); /* pl_fail of base/err.h */
};

/* Returns the ABI number that the plugin was built with; *device (owned by the plugin,
 * valid while it is loaded) is set only when that is host->abi. Host outlives it. */
unsigned pl_plugin(const struct pl_plugin_host *host, const struct pl_device **device);

#ifdef __cplusplus
}
#endif
#endif
