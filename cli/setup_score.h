/* The keys eval.* and data.bpe: what an arm is scored on beside the validation loss. */
#ifndef PL_CLI_SETUP_SCORE_H
#define PL_CLI_SETUP_SCORE_H

#include "base/config.h"
#include "train/run.h"

/* The sets of a configuration for sequences of train.seq tokens, and the bytes per
 * token of data's validation windows (NaN unknown). data NULL: no sets. Errors:
 * PL_ECONFIG, PL_EINPUT naming key and file; *out is empty then; released with
 * pl_score_free. */
int pl_setup_scores(const struct pl_config *config, const struct pl_data *data,
                    struct pl_score_sets *out, double *bytes_per_token);
/* Of everything in the files that changes a score. */
uint64_t pl_setup_scores_fingerprint(const struct pl_score_sets *sets);

#endif
