/* One file of the writer of safetensors; private to train/safetensors*.c. */
#ifndef PL_TRAIN_SAFETENSORS_FILE_H
#define PL_TRAIN_SAFETENSORS_FILE_H

#include "train/safetensors.h"

/* As pl_safetensors_create, put, commit and discard. */
struct pl_tensor_file;
int pl_tensor_file_create(const char *path, const struct pl_safetensors_form *form,
                          const struct pl_tensor *tensors, int n,
                          struct pl_tensor_file **out);
int pl_tensor_file_put(struct pl_tensor_file *w, const float *x);
int pl_tensor_file_finish(struct pl_tensor_file *w); /* as pl_file_finish */
int pl_tensor_file_commit(struct pl_tensor_file *w);
void pl_tensor_file_discard(struct pl_tensor_file *w); /* NULL is fine */
/* Numbers of a tensor of which only the shape is set. */
uint64_t pl_tensor_count(const struct pl_tensor *t);

#endif
