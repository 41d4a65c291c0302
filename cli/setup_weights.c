#include "cli/setup_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/setup.h"
#include "sim/model_hf.h"

/* config.json in the folder path, or beside the file path; caller frees. */
static char *config_beside(const char *path)
{
    struct stat st;
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return pl_printf("%s/config.json", path);
    const char *slash = strrchr(path, '/');
    return pl_printf("%.*sconfig.json", slash ? (int)(slash - path) + 1 : 0, path);
}

/* The value of a key as one writes it: a name, yes or no, or a number. */
static const char *value_text(const char *name, double value, char text[32])
{
    const struct pl_key *key = pl_keys;
    while (strcmp(key->name, name)) key++;
    if (key->type == PL_KEY_NAME) return key->choices[(int)value];
    if (key->type == PL_KEY_BOOL) return value != 0 ? "yes" : "no";
    snprintf(text, 32, "%.10g", value);
    return text;
}

/* The settings by which the same tensors give other numbers, and those that are better
 * told by their keys than by a tensor that is missing or of another shape. */
static int compare(const char *path, const struct pl_model *ours,
                   const struct pl_model *theirs)
{
    const bool learned = ours->positions > 0, dense = ours->experts == 0;
    const struct {
        const char *key;
        double ours, theirs;
        bool unused; /* nothing that is computed depends on it */
    } cases[] = {
        {"model.layers", ours->layers, theirs->layers, false},
        {"model.hidden", ours->hidden, theirs->hidden, false},
        {"model.heads", ours->heads, theirs->heads, false},
        {"model.kv_heads", ours->kv_heads, theirs->kv_heads, false},
        {"model.head_dim", ours->head_dim, theirs->head_dim, false},
        {"model.vocab", ours->vocab, theirs->vocab, false},
        {"model.tied", ours->tied, theirs->tied, false},
        {"model.norm", ours->norm, theirs->norm, false},
        {"model.norm_eps", ours->norm_eps, theirs->norm_eps, false},
        {"model.mlp", ours->mlp, theirs->mlp, false},
        {"model.bias", ours->bias, theirs->bias, false},
        {"model.qk_norm", ours->qk_norm, theirs->qk_norm, false},
        {"model.positions", ours->positions, theirs->positions, false},
        {"model.rope_theta", ours->rope_theta, theirs->rope_theta, learned},
        {"model.experts", ours->experts, theirs->experts, false},
        {"model.experts_per_token", ours->experts_per_token, theirs->experts_per_token,
         dense},
        {"model.dense_layers", ours->dense_layers, theirs->dense_layers, dense},
        {"model.shared_gate", ours->shared_gate, theirs->shared_gate, dense},
        {"model.router_bias", ours->router_bias, theirs->router_bias, dense},
        {"model.scoring_func", ours->scoring, theirs->scoring, dense},
        {"model.norm_topk_prob", ours->norm_topk, theirs->norm_topk, dense},
        {"model.routed_scaling_factor", ours->routed_scale, theirs->routed_scale,
         dense},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *key = cases[i].key;
        char a[32], b[32];
        if (cases[i].unused || cases[i].ours == cases[i].theirs) continue;
        return pl_fail(
            PL_ECONFIG,
            "%s is %s, but %s says %s; model.preset: %s takes the model from "
            "there",
            key, value_text(key, cases[i].ours, a), path,
            value_text(key, cases[i].theirs, b), path);
    }
    return 0;
}

/* model_type of the config.json beside path, or of the model; caller frees. */
static int type_of(const char *path, const struct pl_model *model, char **type)
{
    char *json = config_beside(path);
    struct pl_model theirs;
    int rc = 0;
    *type = NULL;
    if (!access(json, F_OK)) {
        rc = pl_model_hf_read(json, &theirs, type);
        if (!rc) rc = compare(json, model, &theirs);
        if (rc) free(*type);
    } else if (pl_model_hf_type(model)) {
        *type = pl_strdup(pl_model_hf_type(model));
    }
    free(json);
    return rc;
}

int pl_setup_weights(const struct pl_config *config, const struct pl_model *model,
                     const struct pl_problem *problem, struct pl_weights **out)
{
    const char *path = pl_config_text(config, "model.weights");
    char *type;
    *out = NULL;
    if (!*path) return 0;
    if (!problem->type->on_data)
        return pl_fail(PL_EUNSUP, "%s: model.weights: problem.name is %s, not a model",
                       pl_config_where(config, "model.weights"), problem->type->name);
    int rc = type_of(path, model, &type);
    if (rc) return pl_setup_blame(config, "model.weights", rc);
    rc = pl_weights_open(path, type, model->tied, problem, out);
    free(type);
    return pl_setup_blame(config, "model.weights", rc);
}

int pl_setup_weights_hash(const struct pl_config *config, uint64_t *hash)
{
    const char *path = pl_config_text(config, "model.weights");
    struct pl_safetensors *st;
    uint32_t crc = 0;
    *hash = 0;
    if (!*path) return 0;
    int rc = pl_safetensors_open(path, &st);
    if (!rc) {
        rc = pl_safetensors_crc(st, &crc);
        pl_safetensors_free(st);
        *hash = crc;
    }
    return pl_setup_blame(config, "model.weights", rc);
}

/* Torch's name of a type of numbers. */
static const char *torch_name(const struct pl_tensor_type *type)
{
    return !strcmp(type->name, "BF16")  ? "bfloat16"
           : !strcmp(type->name, "F16") ? "float16"
                                        : "float32";
}

static int write_config(const char *folder, const struct pl_model *model, int T,
                        const struct pl_tensor_type *type)
{
    char *path = pl_printf("%s/config.json", folder);
    struct pl_file *file = pl_file_create(path);
    free(path);
    if (!file) return PL_EIO;
    int rc = pl_model_hf_write(model, T, torch_name(type), pl_file_stream(file));
    if (!rc) return pl_file_commit(file);
    pl_file_discard(file);
    return rc;
}

int pl_setup_weights_save(const char *folder, const struct pl_model *model, int T,
                          const struct pl_safetensors_form *form,
                          const struct pl_problem *problem, const float *const *blocks)
{
    const char *model_type = pl_model_hf_type(model);
    char *path = pl_printf("%s/model.safetensors", folder);
    int rc = pl_weights_save(path, model_type, form, problem, blocks);
    free(path);
    if (rc) return rc;
    if (model_type) return write_config(folder, model, T, form->type);
    pl_log(PL_LOG_WARN,
           "%s: no model type of Hugging Face fits, so there is no config.json",
           folder);
    return 0;
}
