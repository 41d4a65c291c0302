/* Files that are whole or absent: written to a temporary name beside the target,
 * synced, then renamed. Also a checksum. */
#ifndef PL_BASE_FILE_H
#define PL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pl_file;

/* Start writing path through a temporary; NULL + message (PL_EIO) when the folder is
 * not writable. Write to pl_file_stream(). */
struct pl_file *pl_file_create(const char *path);
FILE *pl_file_stream(struct pl_file *file);
/* Flush, sync, rename, free. On any write error (disk full): PL_EIO, the temporary is
 * removed and the old target, if any, is untouched. */
int pl_file_commit(struct pl_file *file);
/* The first part of it, for several files that are whole together: flush, sync, close
 * the stream, so that only the rename is left, which needs no room. PL_EIO; then, or
 * instead of the commit: pl_file_discard. */
int pl_file_finish(struct pl_file *file);
void pl_file_discard(struct pl_file *file); /* remove the temporary; NULL is fine */

/* Same ending for a temporary that a library wrote under its own name: sync and rename.
 */
int pl_file_install(const char *temporary, const char *path);
/* Name for such a temporary beside path; caller frees. */
char *pl_file_temporary(const char *path);

/* Whole file into memory (NUL-terminated; caller frees). PL_EINPUT when missing, a
 * folder, a pipe that nobody writes to, or larger than max_bytes. */
int pl_file_read(const char *path, size_t max_bytes, char **data, size_t *n);

/* Open a regular file for reading parts of it: its descriptor and its bytes. Never
 * waits. PL_EINPUT: missing, a folder, a pipe. */
int pl_file_open(const char *path, int *fd, uint64_t *bytes);
/* n bytes of it from byte `at`. PL_EINPUT: not readable, or it has become shorter. */
int pl_file_read_at(int fd, const char *path, void *data, size_t n, uint64_t at);

/* Is path a name with this suffix, such as ".yaml"? */
bool pl_path_ends(const char *path, const char *suffix);

uint32_t pl_crc32(uint32_t crc, const void *data, size_t n); /* zlib's; start with 0 */

#endif
