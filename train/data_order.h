/* Which window sequence k is; internal to train/data*.c. */
#ifndef PL_TRAIN_DATA_ORDER_H
#define PL_TRAIN_DATA_ORDER_H

#include <stdint.h>

#include "train/data.h"

/* First token of sequence k of a seed in a stretch of n > T tokens. */
int64_t pl_data_start(enum pl_data_order order, uint64_t seed, int64_t k, int64_t n,
                      int T);

#endif
