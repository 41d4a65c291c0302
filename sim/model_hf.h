/* Hugging Face config.json as keys model.*. */
#ifndef PL_SIM_MODEL_HF_H
#define PL_SIM_MODEL_HF_H

#include <stdio.h>

#include "base/json_read.h"
#include "sim/model.h"

/* A model preset (pl_config_import): model_type llama, qwen2, qwen3, qwen2_moe,
 * qwen3_moe, mixtral, olmoe, deepseek_v2, deepseek_v3 or gpt2. *yaml is the caller's to
 * free. Errors: PL_EINPUT, PL_ECONFIG "FILE: key: ..." (also for what a supported type
 * has and model.* cannot say). */
int pl_model_import(const char *path, char **yaml);
/* Same for a file that is read already. */
int pl_model_import_json(struct pl_json_value root, const char *name, char **yaml);

/* A config.json whose weights are to be read: also refuses (PL_EUNSUP) what changes
 * the numbers and model.* cannot say, such as scaled rotary angles. *model_type is the
 * caller's to free. */
int pl_model_hf_read(const char *path, struct pl_model *out, char **model_type);

/* The model type of Hugging Face that computes what the model does; NULL: none. */
const char *pl_model_hf_type(const struct pl_model *model);
/* config.json of that type, for AutoModelForCausalLM. positions: longest sequence a
 * rotary model was trained on; number_type: torch's, such as float32. Errors:
 * PL_EUNSUP: there is no such type. */
int pl_model_hf_write(const struct pl_model *model, int positions,
                      const char *number_type, FILE *out);

/* Ask the configuration to take *.json as model presets. */
void pl_model_register(void);

#endif
