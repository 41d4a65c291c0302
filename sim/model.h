/* Description of a Llama-style decoder: immutable plain data, passed by pointer, owned
 * by the caller. */
#ifndef PL_SIM_MODEL_H
#define PL_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct pl_model {
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    bool tied;         /* head shares the embedding table */
    double rope_theta; /* base of the rotary angles */
    double norm_eps;   /* RMSNorm */
};

/* Ranges and divisibility (heads a multiple of kv_heads, even head_dim).
 * Errors: PL_ECONFIG naming the key. */
int pl_model_check(const struct pl_model *model);

/* Every parameter, a tied table once. */
uint64_t pl_model_params(const struct pl_model *model);
/* Training flops per token at sequence length T: 6 N + 12 layers heads*head_dim T, N
 * with the head once and without an untied input embedding, no causal discount. */
double pl_model_flops(const struct pl_model *model, int T);

/* Contiguous split of the layers over P stages: stage s holds layers
 * first[s]..first[s+1]-1, sizes differ by at most one, the larger ones first. first has
 * P+1 entries. Errors: PL_ECONFIG when P > layers. */
int pl_model_split(const struct pl_model *model, int P, int *first);

#endif
