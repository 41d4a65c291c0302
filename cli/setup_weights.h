/* Weights that a run starts from (model.weights) and leaves behind (run --save), in
 * folders of Hugging Face's form: config.json and model.safetensors. */
#ifndef PL_CLI_SETUP_WEIGHTS_H
#define PL_CLI_SETUP_WEIGHTS_H

#include "base/config.h"
#include "train/weights.h"

/* Open model.weights for a problem; *out NULL when it is not given. A config.json
 * beside the file must describe the same model. Errors: those of pl_weights_open;
 * PL_EUNSUP: problem.name trains no model; PL_ECONFIG: another model. */
int pl_setup_weights(const struct pl_config *config, const struct pl_model *model,
                     const struct pl_problem *problem, struct pl_weights **out);
/* A checksum of every byte of model.weights; 0 when it is not given. */
int pl_setup_weights_hash(const struct pl_config *config, uint64_t *hash);

/* Write config.json and model.safetensors, or its shards and their index, into folder.
 * T: tokens of a sequence. A model without a type of Hugging Face gets no config.json
 * and a warning. Errors: PL_EIO. */
int pl_setup_weights_save(const char *folder, const struct pl_model *model, int T,
                          const struct pl_safetensors_form *form,
                          const struct pl_problem *problem, const float *const *blocks);

#endif
