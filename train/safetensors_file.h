/* What the readers of safetensors share; private to train/safetensors*.c. */
#ifndef PL_TRAIN_SAFETENSORS_FILE_H
#define PL_TRAIN_SAFETENSORS_FILE_H

#include "train/safetensors.h"

/* Open a regular file and tell its bytes. Errors: PL_EINPUT, *fd is closed then. */
int pl_safetensors_open_file(const char *path, int *fd, uint64_t *size);
/* n bytes from byte `at` of an open file. Errors: PL_EINPUT. */
int pl_safetensors_read_at(int fd, const char *path, void *data, size_t n, uint64_t at);

/* One file of the writer: as pl_safetensors_create, put, commit and discard. */
struct pl_tensor_file;
int pl_tensor_file_create(const char *path, const struct pl_safetensors_form *form,
                          const struct pl_tensor *tensors, int n,
                          struct pl_tensor_file **out);
int pl_tensor_file_put(struct pl_tensor_file *w, const float *x);
int pl_tensor_file_commit(struct pl_tensor_file *w);
void pl_tensor_file_discard(struct pl_tensor_file *w); /* NULL is fine */
/* Numbers of a tensor of which only the shape is set. */
uint64_t pl_tensor_count(const struct pl_tensor *t);

#endif
