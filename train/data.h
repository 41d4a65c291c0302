/* Token data. Sequence k of seed q is a pure function of (q, k); arms that share a seed
 * see the same sequences in the same order. Owned: pl_data_free. One thread at a time
 * per object. */
#ifndef PL_TRAIN_DATA_H
#define PL_TRAIN_DATA_H

#include <stdint.h>

enum pl_split { PL_SPLIT_TRAIN, PL_SPLIT_VALID };

/* How the training part is gone through; train/data_order.c has the formulas. */
enum pl_data_order {
    PL_ORDER_DRAW,  /* windows at random places, with replacement */
    PL_ORDER_EPOCH, /* each window once an epoch, in an order of its own each epoch */
    PL_ORDER_FILE   /* each window once an epoch, as they lie in the file */
};
extern const char *const pl_data_order_names[]; /* NULL-terminated */

const char *const *pl_data_names(void); /* kinds, NULL-terminated */

struct pl_data;

/* name: grammar (own seeded text), text (bytes are tokens, vocabulary 256), tokens
 * (llm.c, FineWeb), nanogpt or megatron. path: files and patterns between spaces, one
 * stream; unused by grammar. The last valid_fraction of it is validation, unless
 * valid_path names other files of the same kind. vocab: ids must be below it.
 *
 * Files may be far larger than memory: at opening, sizes, headers and 64 places are
 * looked at; an id is checked when a window is read. Errors: PL_EINPUT with file,
 * offset and cause (missing, truncated, another kind of file, too short for T+1 tokens,
 * token beyond the vocabulary). */
int pl_data_open(const char *name, const char *path, const char *valid_path,
                 double valid_fraction, int vocab, int T, struct pl_data **out);
void pl_data_free(struct pl_data *data);

/* Default: PL_ORDER_DRAW. */
void pl_data_set_order(struct pl_data *data, enum pl_data_order order);

int64_t pl_data_tokens(const struct pl_data *data, enum pl_split split);
/* For bits per byte; NaN unknown. */
double pl_data_bytes_per_token(const struct pl_data *data);
/* Of what the windows will be: kind, sizes, and the tokens at 64 places of each stream
 * (of all up to 2 Mi tokens). File names do not count. */
uint64_t pl_data_fingerprint(const struct pl_data *data);

/* Host arrays of T ids each: a window of T+1 tokens by the order (train), or the k-th
 * of evenly spaced windows out of n_windows (valid; seed unused). PL_EINPUT: an id is
 * not in the vocabulary (file and offset are named), or a file has changed. */
int pl_data_train(const struct pl_data *data, uint64_t seed, int64_t k, int32_t *tokens,
                  int32_t *targets);
int pl_data_valid(const struct pl_data *data, int64_t k, int64_t n_windows,
                  int32_t *tokens, int32_t *targets);

#endif
