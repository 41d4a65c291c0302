/* Names of tensors in Hugging Face's transformers (models/TYPE/modeling_TYPE.py). The
 * types that are not listed store every parameter as it is, under the same name. */
#include "train/weights_names.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* # stands for a number. */
struct rule {
    const char *stored;
    bool transposed;
    const char *ours[PL_WEIGHT_PARTS];
};

/* GPT-2: Conv1D holds (inputs, outputs), and queries, keys and values are one. */
static const struct rule gpt2[] = {
    {"transformer.wte.weight", false, {"model.embed_tokens.weight"}},
    {"transformer.wpe.weight", false, {"model.embed_positions.weight"}},
    {"transformer.h.#.ln_1.weight", false, {"model.layers.#.input_layernorm.weight"}},
    {"transformer.h.#.ln_1.bias", false, {"model.layers.#.input_layernorm.bias"}},
    {"transformer.h.#.attn.c_attn.weight",
     true,
     {"model.layers.#.self_attn.q_proj.weight",
      "model.layers.#.self_attn.k_proj.weight",
      "model.layers.#.self_attn.v_proj.weight"}},
    {"transformer.h.#.attn.c_attn.bias",
     false,
     {"model.layers.#.self_attn.q_proj.bias", "model.layers.#.self_attn.k_proj.bias",
      "model.layers.#.self_attn.v_proj.bias"}},
    {"transformer.h.#.attn.c_proj.weight",
     true,
     {"model.layers.#.self_attn.o_proj.weight"}},
    {"transformer.h.#.attn.c_proj.bias",
     false,
     {"model.layers.#.self_attn.o_proj.bias"}},
    {"transformer.h.#.ln_2.weight",
     false,
     {"model.layers.#.post_attention_layernorm.weight"}},
    {"transformer.h.#.ln_2.bias",
     false,
     {"model.layers.#.post_attention_layernorm.bias"}},
    {"transformer.h.#.mlp.c_fc.weight", true, {"model.layers.#.mlp.up_proj.weight"}},
    {"transformer.h.#.mlp.c_fc.bias", false, {"model.layers.#.mlp.up_proj.bias"}},
    {"transformer.h.#.mlp.c_proj.weight",
     true,
     {"model.layers.#.mlp.down_proj.weight"}},
    {"transformer.h.#.mlp.c_proj.bias", false, {"model.layers.#.mlp.down_proj.bias"}},
    {"transformer.ln_f.weight", false, {"model.norm.weight"}},
    {"transformer.ln_f.bias", false, {"model.norm.bias"}},
    {0},
};

static const struct rule mixtral[] = {
    {"model.layers.#.block_sparse_moe.gate.weight",
     false,
     {"model.layers.#.mlp.gate.weight"}},
    {"model.layers.#.block_sparse_moe.experts.#.w1.weight",
     false,
     {"model.layers.#.mlp.experts.#.gate_proj.weight"}},
    {"model.layers.#.block_sparse_moe.experts.#.w3.weight",
     false,
     {"model.layers.#.mlp.experts.#.up_proj.weight"}},
    {"model.layers.#.block_sparse_moe.experts.#.w2.weight",
     false,
     {"model.layers.#.mlp.experts.#.down_proj.weight"}},
    {0},
};

static const struct {
    const char *model_type, *prefix;
    const struct rule *rules;
} types[] = {{"gpt2", "transformer.", gpt2}, {"mixtral", "model.", mixtral}};

/* Vectors of ours that are stored as matrices of one row. */
static const char *const rows[] = {"model.layers.#.mlp.shared_expert_gate.weight"};

/* Masks and angles that older versions stored. */
static const char *const ignored[] = {
    "transformer.h.#.attn.bias", "transformer.h.#.attn.masked_bias", "h.#.attn.bias",
    "h.#.attn.masked_bias", "model.layers.#.self_attn.rotary_emb.inv_freq"};

/* Does name follow the pattern? number[2] gets what # stands for. */
static bool match(const char *pattern, const char *name, int number[2])
{
    int n = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*pattern != *name++) return false;
            continue;
        }
        if (!isdigit((unsigned char)*name) || n == 2) return false;
        char *end;
        number[n++] = (int)strtol(name, &end, 10);
        name = end;
    }
    return !*name;
}

static char *format(const char *pattern, const int number[2])
{
    char name[128];
    size_t n = 0;
    for (; *pattern; pattern++)
        n += (size_t)(*pattern == '#'
                          ? snprintf(name + n, sizeof name - n, "%d", *number++)
                          : snprintf(name + n, sizeof name - n, "%c", *pattern));
    assert(n < sizeof name);
    return pl_strdup(name);
}

static const struct rule *rules_of(const char *model_type)
{
    static const struct rule none[] = {{0}};
    for (size_t i = 0; model_type && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].model_type, model_type)) return types[i].rules;
    return none;
}

const char *pl_weight_prefix(const char *model_type)
{
    for (size_t i = 0; model_type && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].model_type, model_type)) return types[i].prefix;
    return "model.";
}

static bool match_any(const char *const *patterns, size_t n, const char *name)
{
    int number[2];
    for (size_t i = 0; i < n; i++)
        if (match(patterns[i], name, number)) return true;
    return false;
}

bool pl_weight_ignored(const char *name)
{
    return match_any(ignored, sizeof ignored / sizeof *ignored, name);
}

/* Rule whose part k the parameter is; NULL: none. */
static const struct rule *find_rule(const struct rule *rules, const char *name, int *k,
                                    int number[2])
{
    for (; rules->stored; rules++)
        for (*k = 0; *k < PL_WEIGHT_PARTS && rules->ours[*k]; ++*k)
            if (match(rules->ours[*k], name, number)) return rules;
    *k = 0;
    return NULL;
}

/* Number of a parameter that follows i: the parts of a tensor are neighbours. */
static int find_param(const struct pl_problem *p, int i, const char *name)
{
    while (i < p->n_params && strcmp(p->params[i].name, name)) i++;
    assert(i < p->n_params);
    return i;
}

static void set_shape(const struct pl_problem *p, struct pl_weight *w)
{
    struct pl_tensor *t = &w->tensor;
    const struct pl_param *first = &p->params[w->part[0]];
    const bool vector = first->kind != PL_PARAM_MATRIX &&
                        first->kind != PL_PARAM_EMBED && first->kind != PL_PARAM_HEAD &&
                        !match_any(rows, sizeof rows / sizeof *rows, first->name);
    uint64_t outputs = 0;
    for (int k = 0; k < w->n_parts; k++) {
        const struct pl_param *q = &p->params[w->part[k]];
        outputs += (uint64_t)(vector ? q->cols : q->rows);
    }
    t->rank = vector ? 1 : 2;
    t->shape[w->transposed] = outputs;
    if (!vector) t->shape[!w->transposed] = (uint64_t)first->cols;
    t->count = outputs * (vector ? 1 : (uint64_t)first->cols);
}

int pl_weight_list(const char *model_type, const struct pl_problem *p,
                   struct pl_weight **list)
{
    const struct rule *rules = rules_of(model_type);
    struct pl_weight *w = PL_NEW(p->n_params, struct pl_weight);
    int n = 0;
    for (int i = 0; i < p->n_params; i++) {
        int k, number[2];
        const char *name = p->params[i].name;
        const struct rule *rule = find_rule(rules, name, &k, number);
        if (k > 0) continue; /* a later part of a tensor */
        w[n].tensor.name = rule ? format(rule->stored, number) : pl_strdup(name);
        w[n].transposed = rule && rule->transposed;
        w[n].part[0] = i;
        w[n].n_parts = 1;
        for (k = 1; rule && k < PL_WEIGHT_PARTS && rule->ours[k]; k++) {
            char *part = format(rule->ours[k], number);
            w[n].part[w[n].n_parts++] = find_param(p, i, part);
            free(part);
        }
        set_shape(p, &w[n++]);
    }
    *list = w;
    return n;
}

void pl_weight_list_free(struct pl_weight *list, int n)
{
    for (int i = 0; i < n; i++) free(list[i].tensor.name);
    free(list);
}
