/* The decoder as a list of layers on pipeline stages; internal to train/net*.c and
 * layers/. Every buffer is a slice of one device arena that the net owns; a layer
 * writes its output and what its backward needs into its own buffers, so one batch is
 * in flight at a time.
 *
 * Tensors have the names of Hugging Face's Llama family: Qwen2's for biases, Qwen3's
 * and OLMoE's for q_norm and k_norm, OLMoE's and Qwen2-MoE's for experts, DeepSeek's
 * for ungated shared experts and the router's selection bias. A model of GPT-2's kind
 * has them too, one tensor a matrix, (out, in); GPT-2's own file stores them transposed
 * and q, k, v side by side:
 *   transformer.wte.weight          model.embed_tokens.weight
 *   transformer.wpe.weight          model.embed_positions.weight
 *   transformer.h.I.ln_1.*          model.layers.I.input_layernorm.*
 *   transformer.h.I.attn.c_attn.*   model.layers.I.self_attn.{q,k,v}_proj.*
 *   transformer.h.I.attn.c_proj.*   model.layers.I.self_attn.o_proj.*
 *   transformer.h.I.ln_2.*          model.layers.I.post_attention_layernorm.*
 *   transformer.h.I.mlp.c_fc.*      model.layers.I.mlp.up_proj.*
 *   transformer.h.I.mlp.c_proj.*    model.layers.I.mlp.down_proj.*
 *   transformer.ln_f.*              model.norm.*
 *
 * Activations that a block reads and writes at least, a row (d hidden, q queries, k
 * keys, w = q + 2 k, f inner). The residual is an addend of products, and norms add
 * their gradient to it, so it has no pass of its own; neither have biases where
 * `product` adds them itself (cuda in bf16).
 *                          Llama            GPT-2 (q = k = d, w = 3 d, f = 4 d)
 *   norm                   2 d              2 d
 *   q k v                  d + w            d + w        bias
 *   rotation               2 (q + k)        -
 *   attention              w + q            w + q
 *   out                    q + 2 d          q + 2 d      bias, residual
 *   norm                   2 d              2 d
 *   up (and gate)          d + 2 f          d + f        bias
 *   activation             3 f              2 f
 *   down                   f + 2 d          f + 2 d      bias, residual
 *   dW, dx of down         2 (d + f)        2 (d + f)
 *   activation             5 f              3 f
 *   dW, dx of up           2 (2 f + d)      2 (f + d)
 *   norm                   4 d              4 d          added to the residual's
 *   dW, dx of out          2 (d + q)        2 (d + q)
 *   attention              2 w + 2 q        2 w + 2 q
 *   rotation               2 (q + k)        -
 *   dW, dx of q k v        2 (w + d)        2 (w + d)
 *   norm                   4 d              4 d          added to the residual's
 *   db                     -                2 d + w + f
 *   normed q and k add     2 w forward, 3 (q + k) backward
 * With biases 103 d in GPT-2's block, where passes for residual and bias made it 125.
 */
#ifndef PL_TRAIN_NET_H
#define PL_TRAIN_NET_H

#include "train/problem.h"

enum { PL_LAYER_PARAMS = 8, PL_LAYER_BUFFERS = 24, PL_LAYER_SCRATCH = 8 };
enum { PL_NO_PARAM = -1, PL_NET_SUMS = 3 };

struct pl_net;

/* A feed-forward part (layers/ffn.h): of a dense block, of the shared experts, or of
 * the routed ones, each with rows of its own. */
struct pl_ffn {
    int width;                        /* inner */
    int up, up_bias, down, down_bias; /* parameters, of expert 0; up: gate and up */
    struct pl_groups groups;          /* the experts; n 0: one for all rows */
};

struct pl_layer {
    const struct pl_layer_type *type;
    int stage, index;                /* index: transformer block, for names */
    int param[PL_LAYER_PARAMS];      /* indices into the problem's parameters */
    struct pl_ffn ffn, shared;       /* ffn: of a dense block, or of all experts */
    int router;                      /* number of a mixture of experts among them */
    float *buffer[PL_LAYER_BUFFERS]; /* saved from forward to backward; [0] = output */
    size_t buffer_floats[PL_LAYER_BUFFERS];
    size_t scratch_floats[PL_LAYER_SCRATCH]; /* needed only inside backward */
    const float *in; /* output of the layer before, (rows, hidden) */
};

/* One forward, or one forward and backward, of a batch. */
struct pl_pass {
    const struct pl_batch *batch;
    int rows;                    /* B * T */
    const float *const *weights; /* blocks by stage: forward's, then backward's */
    const float *const *back;    /* backward's, known to the head in forward */
    float *const *grads;         /* NULL: loss only */
    double scale;
};

struct pl_layer_type {
    const char *name, *summary, *source;
    /* Parameters, buffers and scratch, in the order they lie in memory. */
    void (*declare)(struct pl_net *net, struct pl_layer *l);
    /* NULL, or: parameters of kind PL_PARAM_BALANCE, behind all others of the stage. */
    void (*declare_last)(struct pl_net *net, struct pl_layer *l);
    int (*forward)(const struct pl_net *net, const struct pl_layer *l,
                   struct pl_pass *pass);
    /* net->dx: gradient of the layer's output on entry, of its input on return. */
    int (*backward)(const struct pl_net *net, const struct pl_layer *l,
                    struct pl_pass *pass);
};

/* Initial values of a tensor: normal, or all the same when sd is 0. */
struct pl_net_fill {
    double sd;
    float value;
};

struct pl_net {
    const struct pl_device *dev;
    struct pl_problem *problem; /* the object whose state this is */
    struct pl_model model;
    int max_rows, T; /* bounds of a batch: rows, and sequence length */
    int n_layers;
    struct pl_layer *layers;
    int most_params;
    struct pl_net_fill *fill; /* [n_params] */
    float *arena;             /* device memory behind every pointer below */
    size_t arena_floats;
    float *dx; /* (rows, hidden); from the head's forward on */
    /* Device memory, of the batch in flight: [0] loss, summed by the head over rows;
     * [1] balance and [2] z terms, by routers. */
    double *sums;
    int32_t *loads; /* likewise: (layers with routers, experts) choices */
    float *scratch[PL_LAYER_SCRATCH];
};

extern const struct pl_layer_type pl_layer_embed, pl_layer_attention, pl_layer_mlp,
    pl_layer_moe, pl_layer_head;

/* net_table.c. A problem with its tables and layers, but no arena; max_rows 0: never
 * one. Errors: PL_ECONFIG, PL_EUNSUP. Owned: pl_problem_free. */
int pl_net_new(const struct pl_device *device, const struct pl_model *model, int P,
               int max_rows, int T, struct pl_problem **out);

/* net.c: F or B of a stage; the stages before, or all and the later ones' B, are done,
 * and net->sums was cleared before F of stage 0. */
int pl_net_stage(const struct pl_net *net, struct pl_pass *pass, int stage,
                 bool forward);

/* For declare(): append a parameter to the layer's stage; its index. */
int pl_net_param(struct pl_net *net, const struct pl_layer *l, enum pl_param_kind kind,
                 int rows, int cols, struct pl_net_fill fill, const char *format, ...)
    __attribute__((format(printf, 7, 8)));
/* The same of one row of constants: a gain (1), a bias (0). */
int pl_net_vector(struct pl_net *net, const struct pl_layer *l, int n, float value,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Initial values of matrices, plain and of those that end a residual branch
 * (net_init.c). */
struct pl_net_fill pl_net_fill(const struct pl_model *model, bool ends_branch);
int pl_net_init(struct pl_problem *p, uint64_t seed, float *const *weights);

/* Tensor number param in the blocks of a pass; NULL for PL_NO_PARAM. */
static inline const float *pl_net_weight(const struct pl_net *net,
                                         const struct pl_pass *pass, int param)
{
    if (param == PL_NO_PARAM) return NULL;
    const struct pl_param *p = &net->problem->params[param];
    return pass->weights[p->stage] + p->offset;
}

static inline float *pl_net_grad(const struct pl_net *net, const struct pl_pass *pass,
                                 int param)
{
    if (param == PL_NO_PARAM) return NULL;
    const struct pl_param *p = &net->problem->params[param];
    return pass->grads[p->stage] + p->offset;
}

/* Numbers in net->loads. */
static inline size_t pl_net_loads(const struct pl_net *net)
{
    const struct pl_routers *r = &net->problem->routers;
    return (size_t)r->layers * (size_t)r->experts;
}

/* Floats that n activations take. */
static inline size_t pl_net_reals(const struct pl_net *net, size_t n)
{
    return (n * net->dev->real_bytes + sizeof(float) - 1) / sizeof(float);
}

#endif
