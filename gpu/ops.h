/* Prototypes of one device's operations, as gpu/device.h defines them: a device's files
 * share them by naming a prefix once, as PL_DEVICE_OPS(pl_ref_) does. */
#ifndef PL_GPU_OPS_H
#define PL_GPU_OPS_H

#include "gpu/device.h"

#define PL_DEVICE_OPS(p)                                                              \
    int p##gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,   \
                int lda, const float *B, int ldb, float beta, float *C, int ldc);     \
    int p##axpby(size_t n, float a, const float *x, float b, float *y);               \
    int p##dot(size_t n, const float *x, const float *y, double *out);                \
    int p##sign(size_t n, const float *x, float *y);                                  \
    int p##embed(int rows, int d, const int32_t *tokens, const float *table,          \
                 float *out);                                                         \
    int p##embed_back(int rows, int d, const int32_t *tokens, const float *dout,      \
                      float *dtable);                                                 \
    int p##rmsnorm(int rows, int d, float eps, const float *x, const float *gain,     \
                   float *y, float *rstd);                                            \
    int p##rmsnorm_back(int rows, int d, const float *x, const float *gain,           \
                        const float *rstd, const float *dy, float *dx, float *dgain); \
    int p##rope(int rows, int T, int n_heads, int head_dim, int ld, double theta,     \
                int direction, float *x);                                             \
    int p##attention(const struct pl_attention_shape *shape, const float *qkv,        \
                     float *out, float *lse);                                         \
    int p##attention_back(const struct pl_attention_shape *shape, const float *qkv,   \
                          const float *out, const float *lse, const float *dout,      \
                          float *dqkv);                                               \
    int p##swiglu(int rows, int f, const float *gate_up, float *h);                   \
    int p##swiglu_back(int rows, int f, const float *gate_up, const float *dh,        \
                       float *dgate_up);                                              \
    int p##xent(int rows, int vocab, float *logits, const int32_t *targets,           \
                float scale, double *loss);                                           \
    int p##adamw(size_t n, const struct pl_adamw_args *args, const float *g,          \
                 const float *w, float *m, float *v, float *u)

/* The operation members of struct pl_device, for its initializer. */
#define PL_DEVICE_OP_TABLE(p)                                                    \
    .gemm = p##gemm, .axpby = p##axpby, .dot = p##dot, .sign = p##sign,          \
    .embed = p##embed, .embed_back = p##embed_back, .rmsnorm = p##rmsnorm,       \
    .rmsnorm_back = p##rmsnorm_back, .rope = p##rope, .attention = p##attention, \
    .attention_back = p##attention_back, .swiglu = p##swiglu,                    \
    .swiglu_back = p##swiglu_back, .xent = p##xent, .adamw = p##adamw

#endif
