/* What each operation of gpu/device.h must do at least, in terms of its parameters:
 * PL_COST_name is flops (of matrix products and attention, a multiply-add counts two),
 * floats (and integers) moved, and activations moved (real_bytes each). Every array
 * that is read or written counts once, with caches of any size; rows of a table that
 * tokens choose do not count, they may all be one. A fourth number, of products, is
 * their kind. One line an operation. */
#ifndef PL_GPU_OP_COSTS_H
#define PL_GPU_OP_COSTS_H

#include "gpu/device.h"

static inline double pl_adamw_elements(int count, const struct pl_adamw_tensor *list)
{
    double n = 0;
    for (int k = 0; k < count; k++) n += (double)list[k].n;
    return n;
}

/* Parameters of groups, `each` a group, that products of their rows read: a group has
 * rows or is not asked. */
static inline double pl_groups_elements(const struct pl_groups *g, double each)
{
    return each * (g->n < g->rows ? g->n : g->rows);
}

/* clang-format off */
#define PL_D(x) ((double)(x))
#define PL_AGAIN(b) (1 + ((b) != 0)) /* c = ... + b c: written, and read unless b is 0 (NULL) */
#define PL_ALONG(along, each, m, n) ((along) == PL_EACH ? (each) : (along) == PL_ROW ? (m) : (n))
/* pairs of query and key under a causal mask, times heads */
#define PL_PAIRS(s) (PL_D((s)->B) * (s)->heads * (s)->T * ((s)->T + 1.0) / 2)
#define PL_Q(s) (PL_D((s)->B) * (s)->T * (s)->heads * (s)->head_dim)
#define PL_QKV(s) (PL_Q(s) * ((s)->heads + 2.0 * (s)->kv_heads) / (s)->heads)

#define PL_COST_gemm 2 * PL_D(M) * N * K, PL_D(M) * K + PL_D(K) * N + PL_D(M) * N * PL_AGAIN(beta), 0
#define PL_COST_axpby 0, PL_D(n) * (1 + (x != y) + (b != 0 || x == y)), 0
#define PL_COST_blend 0, PL_D(n) * (1.0 + terms), 0
#define PL_COST_distance 0, PL_D(n) * (1 + (x != y)), 0
#define PL_COST_dot 0, PL_D(n) * (1 + (x != y)), 0
#define PL_COST_sign 0, 2 * PL_D(n), 0
#define PL_COST_mul 0, PL_D(n) * (2 + (z != x) + (b != 0 && y != x && y != z)), 0
#define PL_COST_ratio 0, PL_D(m) * n * (2 + (args->b != 0 && y != x)) + \
    PL_ALONG(args->along, v == x ? 0 : PL_D(m) * n, PL_D(m), PL_D(n)), 0
#define PL_COST_squares 0, PL_D(m) * n + PL_ALONG(along, 0, PL_D(m), PL_D(n)) * PL_AGAIN(b), 0
#define PL_COST_syrk PL_D(n) * (n + 1.0) * k, PL_D(n) * k + PL_D(n) * n * PL_AGAIN(beta), 0
#define PL_COST_gemm_batch 2 * PL_D(count) * M * N * K, \
    count * (PL_D(M) * K + PL_D(K) * N + PL_D(M) * N * PL_AGAIN(beta)), 0
#define PL_COST_syrk_batch PL_D(count) * n * (n + 1.0) * k, \
    count * (PL_D(n) * k + PL_D(n) * n * PL_AGAIN(beta)), 0
#define PL_COST_round_bf16 0, 2 * PL_D(n), 0
#define PL_COST_product 2 * PL_D(rows) * in * out, \
    which == PL_PRODUCT_DW ? PL_D(in) * out * PL_AGAIN(addend) : PL_D(in) * out + (bias ? out : 0), \
    PL_D(rows) * (which == PL_PRODUCT_DW ? PL_D(in) + out : \
                  which == PL_PRODUCT_Y ? in + PL_D(out) * PL_AGAIN(addend) : out + PL_D(in) * PL_AGAIN(addend)), \
    (int)which
#define PL_COST_product_groups 2 * PL_D(groups->rows) * in * out, \
    pl_groups_elements(groups, PL_D(in) * out * PL_AGAIN(which == PL_PRODUCT_DW) + (bias ? out : 0)) + groups->n, \
    PL_D(groups->rows) * (PL_D(in) + out), \
    (int)which
#define PL_COST_bias_groups_back 0, pl_groups_elements(groups, 2.0 * d) + groups->n, PL_D(groups->rows) * d
#define PL_COST_gather 0, PL_D(n), 2 * PL_D(n) * d
#define PL_COST_embed 0, PL_D(rows), PL_D(rows) * d
#define PL_COST_embed_back 0, PL_D(rows), PL_D(rows) * d
#define PL_COST_rmsnorm 0, PL_D(rows) + d, 2 * PL_D(rows) * d
#define PL_COST_rmsnorm_back 0, PL_D(rows) + 3.0 * d, (3 + (dx != dy)) * PL_D(rows) * d
#define PL_COST_layernorm 0, 2 * PL_D(rows) + d, 2 * PL_D(rows) * d
#define PL_COST_layernorm_back 0, 2 * PL_D(rows) + 3.0 * d, (3 + (dx != dy)) * PL_D(rows) * d
#define PL_COST_headnorm 0, PL_D(rows) * n_heads + d, 2 * PL_D(rows) * (PL_D(n_heads) * d + more)
#define PL_COST_headnorm_back 0, PL_D(rows) * n_heads + 3.0 * d, 3 * PL_D(rows) * n_heads * d
#define PL_COST_add_rows 0, PL_D(period < rows ? period : rows) * d, 2 * PL_D(rows) * d
#define PL_COST_add_rows_back 0, 2 * PL_D(period < rows ? period : rows) * d, PL_D(rows) * d
#define PL_COST_route 0, PL_D(route->rows) * (route->experts + 4.0 * route->chosen), \
    PL_D(route->rows) * route->experts
#define PL_COST_route_back 0, PL_D(route->rows) * (route->experts + 2.0 * route->chosen), \
    PL_D(route->rows) * route->experts
#define PL_COST_combine 0, PL_D(rows) * n * (1 + (w != 0)), PL_D(rows) * (n + PL_AGAIN(addend)) * d
#define PL_COST_combine_back 0, 3 * PL_D(rows) * n, PL_D(rows) * (2.0 * n + 1) * d
#define PL_COST_rope 0, 0, 2 * PL_D(rows) * n_heads * head_dim
#define PL_COST_attention 4 * PL_PAIRS(shape) * shape->head_dim, \
    PL_D(shape->B) * shape->heads * shape->T, PL_QKV(shape) + PL_Q(shape)
#define PL_COST_attention_back 10 * PL_PAIRS(shape) * shape->head_dim, \
    PL_D(shape->B) * shape->heads * shape->T, 2 * PL_QKV(shape) + 2 * PL_Q(shape)
#define PL_COST_swiglu 0, 0, 3 * PL_D(rows) * f
#define PL_COST_swiglu_back 0, 0, 5 * PL_D(rows) * f
#define PL_COST_gelu 0, 0, 2 * PL_D(n)
#define PL_COST_gelu_back 0, 0, 3 * PL_D(n)
#define PL_COST_xent 0, PL_D(rows), PL_D(rows) * vocab * PL_AGAIN(scale)
#define PL_COST_adamw 0, 7 * pl_adamw_elements(count, list), 0
/* clang-format on */

#endif
