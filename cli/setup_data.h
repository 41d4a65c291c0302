/* The keys data.*: what an arm is trained on. */
#ifndef PL_CLI_SETUP_DATA_H
#define PL_CLI_SETUP_DATA_H

#include "base/config.h"
#include "train/data.h"

/* The data of a configuration for sequences of T tokens. Errors: those of pl_data_open;
 * PL_ECONFIG naming the key. *out is NULL then; released with pl_data_free. */
int pl_setup_data(const struct pl_config *config, int T, struct pl_data **out);
/* Warn of a text whose bytes are fewer than the vocabulary by far: tokens were meant. */
void pl_setup_data_warn(const struct pl_config *config);

/* The kind of data of a configuration that pl_setup_data takes. */
const char *pl_setup_data_source(const struct pl_config *config);
/* Files of the same kind (text where it is the grammar), all of them validation. */
int pl_setup_data_like(const struct pl_config *config, const char *files, int T,
                       struct pl_data **out);

#endif
