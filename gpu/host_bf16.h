/* Inside of the device `host` in bf16: gemm, the products, attention and attention_back
 * exist once for each kind of tiles, from the same text (host_bf16_gemm.h,
 * host_bf16_attention.h); every other operation is host's own. */
#ifndef PL_GPU_HOST_BF16_H
#define PL_GPU_HOST_BF16_H

#include "gpu/host.h"

#define PL_BF16_OPS(p)                                                                \
    int p##gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,   \
                int lda, const float *B, int ldb, float beta, float *C, int ldc);     \
    int p##product(enum pl_product which, int rows, int in, int out, const float *a,  \
                   const float *b, const float *bias, const float *addend, float *c); \
    int p##product_groups(enum pl_product which, const struct pl_groups *groups,      \
                          int in, int out, const float *a, const float *b,            \
                          const float *bias, float *c);                               \
    int p##attention(const struct pl_attention_shape *shape, const float *qkv,        \
                     float *out, float *lse);                                         \
    int p##attention_back(const struct pl_attention_shape *shape, const float *qkv,   \
                          const float *out, const float *lse, const float *dout,      \
                          float *dqkv);

PL_BF16_OPS(pl_bf16_amx_)
PL_BF16_OPS(pl_bf16_avx512_)
PL_BF16_OPS(pl_bf16_plain_)

/* May this process use AMX? Asks the kernel the first time. reason: why not. */
bool pl_host_amx(const char **reason);

/* pl_device_precision() of host, bf16 or bf16-emulated. */
int pl_host_precision(const char *precision, const struct pl_device **out);

/* Complete devices, NULL-terminated, fastest first, those that this CPU runs; the last
 * two (x86-64: AVX-512, plain) emulate. */
const struct pl_device *const *pl_host_bf16_sets(void);

#endif
