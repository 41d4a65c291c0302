/* Token data. Sequence k of seed q is a pure function of (q, k); arms that share a seed
 * see the same sequences in the same order. Owned: pl_data_free. */
#ifndef PL_TRAIN_DATA_H
#define PL_TRAIN_DATA_H

#include <stdint.h>

enum pl_split { PL_SPLIT_TRAIN, PL_SPLIT_VALID };

extern const char *const pl_data_names[]; /* NULL-terminated: grammar text tokens */

struct pl_data;

/* name: grammar | text | tokens. path: any file (bytes are tokens, vocabulary 256) or
 * an llm.c/FineWeb .bin shard (memory-mapped); unused by grammar (vocabulary 256, its
 * own seeded text). The last valid_fraction of it is validation, unless valid_path
 * names a second file. vocab: ids must be below it; checked with the offset of the
 * first offender. Errors: PL_EINPUT with file and cause (missing, truncated: bytes
 * expected and found, bad magic, too short for T+1 tokens, token beyond vocabulary). */
int pl_data_open(const char *name, const char *path, const char *valid_path,
                 double valid_fraction, int vocab, int T, struct pl_data **out);
void pl_data_free(struct pl_data *data);

int64_t pl_data_tokens(const struct pl_data *data, enum pl_split split);
/* For bits per byte; NaN unknown. */
double pl_data_bytes_per_token(const struct pl_data *data);

/* Host arrays of T ids each: a window of T+1 tokens drawn with replacement (train), or
 * the k-th of evenly spaced windows out of n_windows (valid; seed unused). */
void pl_data_train(const struct pl_data *data, uint64_t seed, int64_t k,
                   int32_t *tokens, int32_t *targets);
void pl_data_valid(const struct pl_data *data, int64_t k, int64_t n_windows,
                   int32_t *tokens, int32_t *targets);

#endif
