#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/units.h"

struct pl_file {
    FILE *stream;    /* NULL: finished */
    char *path;      /* what the user named, for messages */
    char *target;    /* path with symbolic links followed */
    char *temporary; /* NULL when target is written in place: devices and pipes */
};

static int fail_write(const char *path, int error)
{
    return pl_fail(PL_EIO, "%s: cannot write: %s", path, strerror(error));
}

/* Where the bytes go: through symbolic links, so that the link survives. */
static char *resolve(const char *path)
{
    char *real = realpath(path, NULL); /* malloc'd by libc */
    if (!real) return pl_strdup(path);
    return real;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return pl_strdup(".");
    return pl_printf("%.*s", (int)(slash - path + 1), path);
}

char *pl_file_temporary(const char *path)
{
    char *target = resolve(path);
    const char *slash = strrchr(target, '/');
    int folder = slash ? (int)(slash - target + 1) : 0;
    char *name =
        pl_printf("%.*s.%s.tmp-%ld", folder, target, target + folder, (long)getpid());
    free(target);
    return name;
}

static int sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return 0; /* a folder may be writable but not readable */
    /* EINVAL: a file system that cannot sync folders */
    int error = fsync(fd) && errno != EINVAL && errno != EROFS ? errno : 0;
    close(fd);
    return error;
}

/* What must not be renamed over. /dev/stdout may lead to a regular file, which another
 * descriptor holds open; /dev/shm is an ordinary folder. */
static bool is_device(const char *path, const struct stat *st)
{
    static const char *const open_files[] = {"/dev/std", "/dev/fd/", "/proc/", NULL};
    for (const char *const *p = open_files; *p; p++)
        if (!strncmp(path, *p, strlen(*p))) return true;
    return !S_ISREG(st->st_mode);
}

static int open_temporary(struct pl_file *file, const struct stat *old)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    file->temporary = pl_file_temporary(file->path);
    int fd = open(file->temporary, flags, 0666);
    if (fd < 0 && errno == EEXIST &&
        !unlink(file->temporary)) /* left by a dead process */
        fd = open(file->temporary, flags, 0666);
    if (fd >= 0 && old && fchmod(fd, old->st_mode & 0777)) {
        int error = errno;
        close(fd);
        unlink(file->temporary);
        errno = error;
        return -1;
    }
    return fd;
}

static void file_free(struct pl_file *file)
{
    free(file->path);
    free(file->target);
    free(file->temporary);
    free(file);
}

struct pl_file *pl_file_create(const char *path)
{
    struct stat st;
    bool exists = !stat(path, &st);
    size_t n = strlen(path);
    int error = 0;
    if (!n || (exists && S_ISDIR(st.st_mode)) || (n && path[n - 1] == '/'))
        error = n ? EISDIR : ENOENT;
    else if (exists && access(path, W_OK))
        error = errno;
    if (error) {
        fail_write(path, error);
        return NULL;
    }
    struct pl_file *file = PL_NEW(1, struct pl_file);
    file->path = pl_strdup(path);
    file->target = resolve(path);
    int fd =
        exists && is_device(path, &st)
            ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) /* after earlier output */
            : open_temporary(file, exists ? &st : NULL);
    if (fd >= 0) file->stream = fdopen(fd, "w");
    if (!file->stream) {
        fail_write(path, errno);
        if (fd >= 0) {
            close(fd);
            if (file->temporary) unlink(file->temporary);
        }
        file_free(file);
        return NULL;
    }
    return file;
}

FILE *pl_file_stream(struct pl_file *file)
{
    return file->stream;
}

static int finish(struct pl_file *file)
{
    int error = 0;
    if (!file->stream) return 0;
    errno = 0;
    /* an earlier failed write leaves only the flag, no errno */
    if (fflush(file->stream) || ferror(file->stream)) error = errno ? errno : EIO;
    if (!error && file->temporary && fsync(fileno(file->stream))) error = errno;
    if (fclose(file->stream) && !error) error = errno;
    file->stream = NULL;
    return error;
}

int pl_file_finish(struct pl_file *file)
{
    int error = finish(file);
    return error ? fail_write(file->path, error) : 0;
}

int pl_file_commit(struct pl_file *file)
{
    int error = finish(file);
    if (file->temporary) {
        if (!error && rename(file->temporary, file->target)) error = errno;
        if (error)
            unlink(file->temporary);
        else
            error = sync_folder(file->target);
    }
    int rc = error ? fail_write(file->path, error) : 0;
    file_free(file);
    return rc;
}

void pl_file_discard(struct pl_file *file)
{
    if (!file) return;
    if (file->stream) fclose(file->stream);
    if (file->temporary) unlink(file->temporary);
    file_free(file);
}

int pl_file_install(const char *temporary, const char *path)
{
    struct stat st;
    if (!stat(path, &st) && is_device(path, &st)) {
        unlink(temporary);
        return pl_fail(PL_EIO, "%s: cannot write: not a regular file", path);
    }
    int error = 0;
    char *target = resolve(path);
    int fd = open(temporary, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd)) error = errno;
    if (fd >= 0) close(fd);
    if (!error && rename(temporary, target)) error = errno;
    if (error)
        unlink(temporary);
    else
        error = sync_folder(target);
    free(target);
    return error ? fail_write(path, error) : 0;
}

static int read_stream(FILE *in, const char *path, size_t max_bytes, char **data,
                       size_t *n)
{
    size_t used = 0, room = 1 << 16;
    char *text = pl_grow(NULL, room + 1, 1);
    for (;;) {
        used += fread(text + used, 1, room - used, in);
        if (used < room || used > max_bytes) break;
        text = pl_grow(text, (room *= 2) + 1, 1);
    }
    if (ferror(in)) {
        free(text);
        return pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    }
    if (used > max_bytes) {
        char limit[32];
        free(text);
        return pl_fail(PL_EINPUT, "%s: larger than %s", path,
                       pl_units_format_bytes((double)max_bytes, limit, sizeof limit));
    }
    text[used] = '\0';
    *data = text;
    *n = used;
    return 0;
}

/* Open for reading. A pipe that somebody has open for writing is read to its end, such
 * as the shell's <(command); one without a writer, which would be waited for, is none:
 * there the first read finds an end. */
static FILE *open_stream(const char *path)
{
    struct stat st = {0};
    unsigned char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st)) {
        pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    ssize_t first = S_ISFIFO(st.st_mode) ? read(fd, &byte, 1) : -1;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    FILE *in = first ? fdopen(fd, "rb") : NULL;
    if (!in) {
        pl_fail(PL_EINPUT, "%s: %s", path,
                first ? strerror(errno)
                      : "is a pipe without a writer, expected a file");
        close(fd);
    } else if (first > 0) {
        ungetc(byte, in);
    }
    return in;
}

int pl_file_read(const char *path, size_t max_bytes, char **data, size_t *n)
{
    FILE *in = open_stream(path);
    if (!in) return PL_EINPUT;
    int rc = read_stream(in, path, max_bytes, data, n);
    fclose(in);
    return rc;
}

int pl_file_open(const char *path, int *fd, uint64_t *bytes)
{
    struct stat st = {0};
    /* O_NONBLOCK: a pipe without a writer would wait for one */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) return pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    if (!fstat(*fd, &st) && S_ISREG(st.st_mode)) {
        *bytes = (uint64_t)st.st_size;
        return 0;
    }
    close(*fd);
    *fd = -1;
    return pl_fail(PL_EINPUT, "%s: %s", path,
                   S_ISDIR(st.st_mode) ? "is a folder, expected a file"
                                       : "not a regular file");
}

int pl_file_read_at(int fd, const char *path, void *data, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(fd, (char *)data + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0)
            return pl_fail(PL_EINPUT, "%s: cannot read at byte %" PRIu64 ": %s", path,
                           at + done, strerror(errno));
        if (k == 0)
            return pl_fail(PL_EINPUT,
                           "%s: ends at byte %" PRIu64 ": truncated while in use", path,
                           at + done);
        done += (size_t)k;
    }
    return 0;
}

bool pl_path_ends(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && !strcmp(path + n - m, suffix);
}

uint32_t pl_crc32(uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;
    uLong sum = crc;
    for (; n > UINT_MAX; n -= UINT_MAX, p += UINT_MAX) sum = crc32(sum, p, UINT_MAX);
    return (uint32_t)crc32(sum, p, (uInt)n);
}
