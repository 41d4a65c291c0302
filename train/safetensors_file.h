/* What the readers of safetensors share; private to train/safetensors*.c. */
#ifndef PL_TRAIN_SAFETENSORS_FILE_H
#define PL_TRAIN_SAFETENSORS_FILE_H

#include "train/safetensors.h"

/* Open a regular file and tell its bytes. Errors: PL_EINPUT, *fd is closed then. */
int pl_safetensors_open_file(const char *path, int *fd, uint64_t *size);
/* n bytes from byte `at` of an open file. Errors: PL_EINPUT. */
int pl_safetensors_read_at(int fd, const char *path, void *data, size_t n, uint64_t at);

#endif
