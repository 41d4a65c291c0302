/* Any file as bytes: token = byte, vocabulary 256. Not decoded, so text that is not
 * UTF-8 is as good as any other. */
#include "train/data_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

int pl_source_map(const char *path, struct pl_source *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    struct stat st;
    int rc = 0;
    void *map = MAP_FAILED;
    if (fstat(fd, &st) < 0)
        rc = pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = pl_fail(PL_EINPUT, "%s: not a regular file", path);
    else if (st.st_size == 0)
        rc = pl_fail(PL_EINPUT, "%s: empty file", path);
    else if ((map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) ==
             MAP_FAILED)
        rc = pl_fail(PL_EINPUT, "%s: cannot map: %s", path, strerror(errno));
    close(fd);
    if (rc) return rc;
    *out = (struct pl_source){.name = path,
                              .bytes = map,
                              .n = st.st_size,
                              .width = 1,
                              .map = map,
                              .map_bytes = (size_t)st.st_size};
    return 0;
}

void pl_source_free(struct pl_source *source)
{
    if (source->map) munmap(source->map, source->map_bytes);
    free(source->text);
    *source = (struct pl_source){0};
}

const struct pl_data_type pl_data_text = {
    .name = "text",
    .summary = "the bytes of a file",
    .source = "",
    .bytes_per_token = 1,
    .needs_path = true,
    .load = pl_source_map,
};
