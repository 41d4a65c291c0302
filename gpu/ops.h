/* The operations of gpu/device.h as one list (name, parameters, arguments), so that a
 * device's files declare, forward and tabulate them without repeating it. The order is
 * that of the members (C++ wants it). */
#ifndef PL_GPU_OPS_H
#define PL_GPU_OPS_H

#include "gpu/device.h"

/* clang-format off */
/* On float only. */
#define PL_OPS_FLOAT(X, p)                                                             \
    X(p, gemm, (bool ta, bool tb, int M, int N, int K, float alpha, const float *A,    \
                int lda, const float *B, int ldb, float beta, float *C, int ldc),      \
      (ta, tb, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc))                          \
    X(p, axpby, (size_t n, float a, const float *x, float b, float *y),                \
      (n, a, x, b, y))                                                                 \
    X(p, blend, (size_t n, int terms, const float *a, const float *const *x,           \
                 float *y), (n, terms, a, x, y))                                       \
    X(p, dot, (size_t n, const float *x, const float *y, double *out), (n, x, y, out)) \
    X(p, distance, (size_t n, const float *x, const float *y, double *out),            \
      (n, x, y, out))                                                                  \
    X(p, sign, (size_t n, const float *x, float *y), (n, x, y))                        \
    X(p, mul, (size_t n, float a, const float *x, const float *z, float b, float *y),  \
      (n, a, x, z, b, y))                                                              \
    X(p, ratio, (int m, int n, const struct pl_ratio_args *args, const float *x,       \
                 const float *v, float *y), (m, n, args, x, v, y))                     \
    X(p, squares, (enum pl_along along, int m, int n, float a, const float *x,         \
                   float b, float *out), (along, m, n, a, x, b, out))                  \
    X(p, syrk, (bool ta, int n, int k, float alpha, const float *A, int lda,           \
                float beta, float *C, int ldc),                                        \
      (ta, n, k, alpha, A, lda, beta, C, ldc))                                         \
    X(p, gemm_batch, (int count, bool ta, bool tb, int M, int N, int K, float alpha,   \
                      const float *A, int lda, size_t stride_a, const float *B,        \
                      int ldb, size_t stride_b, float beta, const float *addend,       \
                      float *C, int ldc, size_t stride_c),                             \
      (count, ta, tb, M, N, K, alpha, A, lda, stride_a, B, ldb, stride_b, beta,        \
       addend, C, ldc, stride_c))                                                      \
    X(p, syrk_batch, (int count, bool ta, int n, int k, float alpha, const float *A,   \
                      int lda, size_t stride_a, float beta, const float *addend,       \
                      float *C, int ldc, size_t stride_c),                             \
      (count, ta, n, k, alpha, A, lda, stride_a, beta, addend, C, ldc, stride_c))      \
    X(p, round_bf16, (size_t n, const float *x, float *y), (n, x, y))                  \
    X(p, adamw, (int count, const struct pl_adamw_tensor *list,                        \
                 const struct pl_adamw_args *args), (count, list, args))
/* On activations, or activations and float. */
#define PL_OPS_PRODUCT(X, p)                                                           \
    X(p, product, (enum pl_product which, int rows, int in, int out, const float *a,   \
                   const float *b, const float *bias, const float *addend, float *c),  \
      (which, rows, in, out, a, b, bias, addend, c))                                  \
    X(p, product_groups, (enum pl_product which, const struct pl_groups *groups,       \
                          int in, int out, const float *a, const float *b,             \
                          const float *bias, float *c),                                \
      (which, groups, in, out, a, b, bias, c))
#define PL_OPS_ROWS(X, p)                                                              \
    X(p, gather, (int n, int d, const int32_t *from, const float *x, float *y),        \
      (n, d, from, x, y))                                                              \
    X(p, embed, (int rows, int d, const int32_t *tokens, const float *table,           \
                 float *out), (rows, d, tokens, table, out))                           \
    X(p, embed_back, (int rows, int d, const int32_t *tokens, const float *dout,       \
                      float *dtable), (rows, d, tokens, dout, dtable))                 \
    X(p, add_rows, (int rows, int period, int d, const float *x, float *y),            \
      (rows, period, d, x, y))                                                         \
    X(p, add_rows_back, (int rows, int period, int d, const float *dy, float *dx),     \
      (rows, period, d, dy, dx))
#define PL_OPS_NORM(X, p)                                                              \
    X(p, rmsnorm, (int rows, int d, float eps, const float *x, const float *gain,      \
                   float *y, float *rstd), (rows, d, eps, x, gain, y, rstd))           \
    X(p, rmsnorm_back, (int rows, int d, const float *x, const float *gain,            \
                        const float *rstd, const float *dy, float *dx, float *dgain),  \
      (rows, d, x, gain, rstd, dy, dx, dgain))                                         \
    X(p, layernorm, (int rows, int d, float eps, const float *x, const float *gain,    \
                     const float *shift, float *y, float *mean, float *rstd),          \
      (rows, d, eps, x, gain, shift, y, mean, rstd))                                   \
    X(p, layernorm_back, (int rows, int d, const float *x, const float *gain,          \
                          const float *mean, const float *rstd, const float *dy,       \
                          float *dx, float *dgain, float *dshift),                     \
      (rows, d, x, gain, mean, rstd, dy, dx, dgain, dshift))                           \
    X(p, headnorm, (int rows, int n_heads, int d, int more, int ld, float eps,         \
                    const float *x, const float *gain, float *y, float *rstd),         \
      (rows, n_heads, d, more, ld, eps, x, gain, y, rstd))                             \
    X(p, headnorm_back, (int rows, int n_heads, int d, int ld, const float *x,         \
                         const float *gain, const float *rstd, float *g,               \
                         float *dgain),                                                \
      (rows, n_heads, d, ld, x, gain, rstd, g, dgain))
#define PL_OPS_GROUPS(X, p)                                                            \
    X(p, bias_groups_back, (const struct pl_groups *groups, int d, const float *dy,    \
                            float *db), (groups, d, dy, db))
#define PL_OPS_MOE(X, p)                                                               \
    X(p, route, (const struct pl_routing *route, const float *logits,                  \
                 const float *bias, double *terms), (route, logits, bias, terms))      \
    X(p, route_back, (const struct pl_routing *route, const float *logits,             \
                      const float *dweight, double factor, float *dlogits,             \
                      float *dbias), (route, logits, dweight, factor, dlogits, dbias)) \
    X(p, combine, (int rows, int n, int d, const int32_t *slot, const float *w,        \
                   const float *x, const float *addend, float *y),                     \
      (rows, n, d, slot, w, x, addend, y))                                             \
    X(p, combine_back, (int rows, int n, int d, const int32_t *slot, const float *w,   \
                        const float *x, const float *dy, float *dx, float *dw),        \
      (rows, n, d, slot, w, x, dy, dx, dw))
#define PL_OPS_ROPE(X, p)                                                              \
    X(p, rope, (int rows, int T, int n_heads, int head_dim, int ld, double theta,      \
                int direction, float *x),                                              \
      (rows, T, n_heads, head_dim, ld, theta, direction, x))
#define PL_OPS_ATTENTION(X, p)                                                         \
    X(p, attention, (const struct pl_attention_shape *shape, const float *qkv,         \
                     float *out, float *lse), (shape, qkv, out, lse))                  \
    X(p, attention_back, (const struct pl_attention_shape *shape, const float *qkv,    \
                          const float *out, const float *lse, const float *dout,       \
                          float *dqkv), (shape, qkv, out, lse, dout, dqkv))
#define PL_OPS_POINT(X, p)                                                             \
    X(p, swiglu, (int rows, int f, const float *gate_up, float *h),                    \
      (rows, f, gate_up, h))                                                           \
    X(p, swiglu_back, (int rows, int f, const float *gate_up, const float *dh,         \
                       float *dgate_up), (rows, f, gate_up, dh, dgate_up))             \
    X(p, gelu, (size_t n, const float *x, float *y), (n, x, y))                        \
    X(p, gelu_back, (size_t n, const float *x, const float *dy, float *dx),            \
      (n, x, dy, dx))                                                                  \
    X(p, xent, (int rows, int vocab, float *logits, const int32_t *targets,            \
                float scale, double *sum), (rows, vocab, logits, targets, scale, sum))

#define PL_OPS_REAL(X, p)                                                              \
    PL_OPS_GROUPS(X, p) PL_OPS_ROWS(X, p) PL_OPS_NORM(X, p) PL_OPS_MOE(X, p)            \
    PL_OPS_ROPE(X, p) PL_OPS_ATTENTION(X, p) PL_OPS_POINT(X, p)
#define PL_OPS(X, p) PL_OPS_FLOAT(X, p) PL_OPS_PRODUCT(X, p) PL_OPS_REAL(X, p)
/* clang-format on */

/* The operation `product` where activations are float, by three others: the addend is
 * copied to c unless it is there, the gemm adds to it, then the bias is added. */
#define PL_PRODUCT_BY_GEMM(name, gemm, copy, add_rows)                               \
    int name(enum pl_product which, int rows, int in, int out, const float *a,       \
             const float *b, const float *bias, const float *addend, float *c)       \
    {                                                                                \
        const float beta = addend ? 1 : 0;                                           \
        const size_t n = which == PL_PRODUCT_Y    ? (size_t)rows * (size_t)out       \
                         : which == PL_PRODUCT_DX ? (size_t)rows * (size_t)in        \
                                                  : (size_t)out * (size_t)in;        \
        int rc = addend && addend != c ? copy(c, addend, n * sizeof *c) : 0;         \
        if (rc) return rc;                                                           \
        if (which == PL_PRODUCT_DX)                                                  \
            return gemm(false, false, rows, in, out, 1, a, out, b, in, beta, c, in); \
        if (which == PL_PRODUCT_DW)                                                  \
            return gemm(true, false, out, in, rows, 1, a, out, b, in, beta, c, in);  \
        rc = gemm(false, true, rows, out, in, 1, a, in, b, in, beta, c, out);        \
        return rc || !bias ? rc : add_rows(rows, 1, out, bias, c);                   \
    }

#define PL_OP_DECLARE(p, name, params, args) int p##name params;
#define PL_OP_MEMBER(p, name, params, args) .name = p##name,

#define PL_DEVICE_OPS(p) PL_OPS(PL_OP_DECLARE, p)
/* The operation members of struct pl_device, for its initializer. */
#define PL_DEVICE_OP_TABLE(p) PL_OPS(PL_OP_MEMBER, p)

#endif
