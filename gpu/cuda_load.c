#include "gpu/cuda_load.h"
#include "gpu/cuda_plugin.h"
#include "base/err.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* path = FOLDER/pipelag-cuda.so when that is a readable file. */
static bool plugin_in(const char *folder, size_t n, char path[PATH_MAX])
{
    if (!n) return false;
    int length = snprintf(path, PATH_MAX, "%.*s/%s", (int)n, folder, PL_PLUGIN_FILE);
    return length < PATH_MAX && access(path, R_OK) == 0;
}

static bool plugin_in_list(const char *list, char path[PATH_MAX])
{
    while (list) {
        const char *end = strchr(list, ':');
        size_t n = end ? (size_t)(end - list) : strlen(list);
        if (n < PATH_MAX && plugin_in(list, n, path)) return true;
        list = end ? end + 1 : NULL;
    }
    return false;
}

static bool plugin_beside_program(char path[PATH_MAX])
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return false;
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    return slash && plugin_in(program, (size_t)(slash - program), path);
}

int pl_cuda_load(const struct pl_device **device)
{
    static const struct pl_plugin_host host = {PL_PLUGIN_ABI, pl_fail};
    char path[PATH_MAX];
    if (!plugin_in_list(getenv("PIPELAG_PLUGIN_PATH"), path) &&
        !plugin_beside_program(path) && !plugin_in(PKGLIBDIR, strlen(PKGLIBDIR), path))
        return pl_fail(PL_ENODEV,
                       "device cuda: no %s in $PIPELAG_PLUGIN_PATH, beside the program "
                       "or in %s (built when configure finds nvcc)",
                       PL_PLUGIN_FILE, PKGLIBDIR);
    /* never closed: the device's functions stay in use until the program ends */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return pl_fail(PL_ENODEV,
                       "device cuda: %s (is the CUDA library's folder in "
                       "LD_LIBRARY_PATH?)",
                       dlerror());
    unsigned (*plugin)(const struct pl_plugin_host *, const struct pl_device **) = NULL;
    void *symbol = dlsym(object, PL_PLUGIN_SYMBOL);
    memcpy(&plugin, &symbol, sizeof plugin); /* no cast from data to code in ISO C */
    if (!plugin)
        return pl_fail(PL_ENODEV,
                       "device cuda: %s is no plugin of pipelag: no symbol %s", path,
                       PL_PLUGIN_SYMBOL);
    const struct pl_device *found = NULL;
    unsigned abi = plugin(&host, &found);
    if (abi != host.abi || !found)
        return pl_fail(
            PL_ENODEV,
            "device cuda: %s has plugin ABI %u.%u, this program needs %u.%u: "
            "build both from one source",
            path, abi >> 16, abi & 0xffff, host.abi >> 16, host.abi & 0xffff);
    *device = found;
    return 0;
}
