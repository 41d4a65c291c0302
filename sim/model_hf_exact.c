/* Is model.* all that a config.json says about what the model computes? For simulation
 * the rest does not matter; for weights it does. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/model_hf.h"

/* Values of keys under which model.* describes the model in full; absent or null is
 * one, too. */
static const struct {
    const char *key, *values[3]; /* texts, or booleans; none: null only */
} plain[] = {
    {"hidden_act", {"silu", "swish"}},
    {"activation_function", {"gelu_new", "gelu_pytorch_tanh"}},
    {"rope_scaling", {NULL}},
    {"clip_qkv", {NULL}},
    {"use_sliding_window", {"false"}},
    {"scale_attn_weights", {"true"}},
    {"scale_attn_by_inverse_layer_idx", {"false"}},
    {"add_cross_attention", {"false"}},
};

static int check_value(struct pl_json_value value, const char *name,
                       const char *const *values)
{
    const char *text = NULL;
    bool yes;
    int rc = 0;
    if (pl_json_type_of(value) == PL_JSON_BOOL) {
        rc = pl_json_as_bool(value, &yes);
        text = yes ? "true" : "false";
    } else if (pl_json_type_of(value) == PL_JSON_TEXT) {
        rc = pl_json_as_text(value, &text);
    }
    for (; !rc && text && *values; values++)
        if (!strcmp(text, *values)) return 0;
    return rc ? rc
              : pl_fail(PL_EUNSUP, "%s: %s: this setting is not implemented", name,
                        value.place);
}

static int check_plain(struct pl_json_value root, const char *name)
{
    struct pl_json_value value, rope;
    int rc = 0;
    for (size_t i = 0; i < sizeof plain / sizeof *plain && !rc; i++) {
        if (!pl_json_has(root, plain[i].key)) continue;
        rc = pl_json_member(root, plain[i].key, &value);
        if (!rc) rc = check_value(value, name, plain[i].values);
    }
    if (rc || !pl_json_has(root, "rope_parameters")) return rc;
    rc = pl_json_member(root, "rope_parameters", &rope);
    if (rc || !pl_json_has(rope, "rope_type")) return rc;
    static const char *const kinds[] = {"default", NULL};
    rc = pl_json_member(rope, "rope_type", &value);
    return rc ? rc : check_value(value, name, kinds);
}

int pl_model_hf_read(const char *path, struct pl_model *out, char **model_type)
{
    struct pl_json_file *file;
    const char *type = NULL;
    int rc = pl_json_read(path, &file);
    if (rc) return rc;
    rc = pl_json_get_text(pl_json_root(file), "model_type", &type);
    if (!rc) rc = check_plain(pl_json_root(file), path);
    struct pl_config *config = pl_config_new();
    if (!rc) rc = pl_config_set_value(config, "model.preset", path, path);
    if (!rc) rc = pl_config_resolve(config);
    if (!rc) rc = pl_model_read(config, out);
    if (!rc) *model_type = pl_strdup(type);
    pl_config_free(config);
    pl_json_free(file);
    return rc;
}
