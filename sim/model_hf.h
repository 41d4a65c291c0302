/* Hugging Face config.json as keys model.*. */
#ifndef PL_SIM_MODEL_HF_H
#define PL_SIM_MODEL_HF_H

#include "base/json_read.h"

/* A model preset (pl_config_import): model_type llama, qwen2, qwen3, qwen2_moe,
 * qwen3_moe, mixtral, olmoe, deepseek_v2, deepseek_v3 or gpt2. *yaml is the caller's to
 * free. Errors: PL_EINPUT, PL_ECONFIG "FILE: key: ..." (also for what a supported type
 * has and model.* cannot say). */
int pl_model_import(const char *path, char **yaml);
/* Same for a file that is read already. */
int pl_model_import_json(struct pl_json_value root, const char *name, char **yaml);

/* Ask the configuration to take *.json as model presets. */
void pl_model_register(void);

#endif
