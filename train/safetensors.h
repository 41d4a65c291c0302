/* The safetensors format (github.com/huggingface/safetensors, README, "Format"): u64
 * little-endian N; N bytes of JSON that begin with '{' and may end in spaces, a map of
 * tensor name to {dtype, shape, data_offsets [begin, end) after the header}, with
 * "__metadata__" a map of texts; then the numbers, row-major, little-endian, without
 * holes. A model is one file, or several with an index {"weight_map": {name: file}}.
 * Numbers pass through buffers of the caller; nothing else of their size is held. */
#ifndef PL_TRAIN_SAFETENSORS_H
#define PL_TRAIN_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_TENSOR_RANK = 8 };

/* Types of numbers by their names there: F64, F32, F16 and BF16 are read; F32, F16 and
 * BF16 are written; of others only the size is known. */
struct pl_tensor_type {
    const char *name;
    size_t bytes;
    /* n numbers to and from float; encode rounds to nearest even. NULL: not done. */
    void (*decode)(const void *in, size_t n, float *out);
    void (*encode)(const float *in, size_t n, void *out);
    double largest; /* finite number; encode of more makes an infinity */
};

extern const struct pl_tensor_type pl_tensor_types[]; /* name NULL ends it */
/* NULL: there is none. */
const struct pl_tensor_type *pl_tensor_type_find(const char *name);

struct pl_tensor {
    char *name;
    const struct pl_tensor_type *type;
    int rank; /* 0: one number */
    uint64_t shape[PL_TENSOR_RANK], count;
    int file;             /* reader: which of the files */
    uint64_t begin, size; /* reader: bytes, from the start of the file */
};

/* "64 x 128", "scalar" for rank 0; text has n bytes. Returns text. */
const char *pl_tensor_shape(const struct pl_tensor *t, char *text, size_t n);

/* Opened for reading; owned: pl_safetensors_free. */
struct pl_safetensors {
    char *path; /* of the file or index */
    int n, n_files;
    struct pl_tensor *tensors; /* [n] by name (strcmp) */
    char **files;              /* [n_files] paths */
    int open, fd;              /* file that fd reads, -1: none */
};

/* Open a FILE.safetensors, an index FILE.json, or the folder that holds
 * model.safetensors or model.safetensors.index.json, and check every header against its
 * file. Errors: PL_EINPUT, PL_ECONFIG "FILE: what is wrong"; *out untouched. */
int pl_safetensors_open(const char *path, struct pl_safetensors **out);
void pl_safetensors_free(struct pl_safetensors *st);
/* Position of a name in tensors, or -1. */
int pl_safetensors_find(const struct pl_safetensors *st, const char *name);
/* All numbers of tensor i, in order, as float. Errors: PL_EINPUT: another type than the
 * four, cannot read, or a number that is not finite, also after rounding to float. */
int pl_safetensors_read(struct pl_safetensors *st, int i, float *out);
/* *crc of every byte of every file. Errors: PL_EINPUT. */
int pl_safetensors_crc(const struct pl_safetensors *st, uint32_t *crc);

/* Text beside the tensors; a list ends with key NULL. */
struct pl_tensor_note {
    const char *key, *value;
};

/* Value of a note of a file, of an index or of the one in a folder; caller frees. NULL:
 * it is not there or the file cannot be read. */
char *pl_safetensors_note(const char *path, const char *key);

struct pl_safetensors_form {
    const struct pl_tensor_type *type; /* of all numbers */
    uint64_t most; /* bytes of the tensors in a file, but for one larger tensor; 0: one
                      file */
    const struct pl_tensor_note *notes; /* NULL: none */
};

struct pl_safetensors_writer;

/* Start path, a NAME.safetensors: tensors[n] give name, rank and shape. More than
 * form.most bytes become NAME-00001-of-00003.safetensors and so on, with
 * path.index.json, as transformers' save_pretrained does it. What is borrowed stays
 * until the end of the writer. Nothing there changes before commit. Errors: PL_EIO. */
int pl_safetensors_create(const char *path, const struct pl_safetensors_form *form,
                          const struct pl_tensor *tensors, int n,
                          struct pl_safetensors_writer **out);
/* The numbers of the next tensor. Errors: PL_EIO; PL_EUNSUP: one is not finite, or
 * beyond the type's largest. */
int pl_safetensors_put(struct pl_safetensors_writer *w, const float *x);
/* After the last tensor: sync and rename; other files of that path are removed, as of a
 * save in another number of files. Frees w. PL_EIO: path is as it was if it is one
 * file; else there is no index. */
int pl_safetensors_commit(struct pl_safetensors_writer *w);
void pl_safetensors_discard(struct pl_safetensors_writer *w); /* NULL is fine */

#endif
