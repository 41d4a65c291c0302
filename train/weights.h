/* Weights of a model in safetensors files under Hugging Face's names. Our parameters
 * have those names already; where a model type names, joins or transposes them
 * differently, the table in train/weights_names.c says so. One tensor at a time is held
 * on the host. */
#ifndef PL_TRAIN_WEIGHTS_H
#define PL_TRAIN_WEIGHTS_H

#include "train/problem.h"
#include "train/safetensors.h"

/* Files to start from, with the place of every parameter in them; owned:
 * pl_weights_close. */
struct pl_weights;

/* Open path (as pl_safetensors_open) for the parameters of a problem, under the names
 * of model_type (config.json's; NULL: ours). tied: a stored lm_head.weight is the
 * embedding again and not read. Everything is checked but the numbers. Errors: those of
 * pl_safetensors_open; PL_EINPUT naming the tensor that is missing, left over or of
 * another shape, and the nearest name. */
int pl_weights_open(const char *path, const char *model_type, bool tied,
                    const struct pl_problem *problem, struct pl_weights **out);
void pl_weights_close(struct pl_weights *weights); /* NULL is fine */
/* Read all, and drop it: every number is there and finite. Errors: PL_EINPUT. */
int pl_weights_check(struct pl_weights *weights);
/* Read all into blocks[stage], device memory. Errors: PL_EINPUT. */
int pl_weights_load(struct pl_weights *weights, const struct pl_problem *problem,
                    float *const *blocks);

/* Write the parameters in blocks[stage] to the file path, or several, as
 * pl_safetensors_create says. Errors: PL_EIO; PL_EUNSUP: a number that the type cannot
 * hold. */
int pl_weights_save(const char *path, const char *model_type,
                    const struct pl_safetensors_form *form,
                    const struct pl_problem *problem, const float *const *blocks);

#endif
