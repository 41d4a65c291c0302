/* host, its operations for any CPU: GEMM by OpenBLAS, the rest as the compiler
 * vectorises it for the baseline; see host.h. */
#include "gpu/host.h"

#include <cblas.h>

#define HOST(name) pl_base_##name
#define HOST_GEMM_BY_BLAS
enum { LANES = 4, TILE_ROWS = 6 };
#include "gpu/host_pack.h"
#include "gpu/host_gemm.h"
#include "gpu/host_math.h"
#include "gpu/host_layers.h"
#include "gpu/host_blocks.h"
#include "gpu/host_moe.h"
#include "gpu/host_vector.h"
#include "gpu/host_batch.h"
#include "gpu/host_attention.h"

/* ROWS rows of C, whatever the number of threads: OpenBLAS may sum a smaller block in
 * another order. */
struct blas {
    bool ta, tb;
    int M, N, K, lda, ldb, ldc;
    float alpha, beta;
    const float *A, *B;
    float *C;
};

static void blas_part(void *context, int part)
{
    const struct blas *p = context;
    int first = part * ROWS;
    size_t down = (size_t)first * (p->ta ? 1 : (size_t)p->lda);
    cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans,
                p->tb ? CblasTrans : CblasNoTrans, least(ROWS, p->M - first), p->N,
                p->K, p->alpha, p->A + down, p->lda, p->B, p->ldb, p->beta,
                p->C + (size_t)first * (size_t)p->ldc, p->ldc);
}

int pl_base_gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                 int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    struct blas p = {ta, tb, M, N, K, lda, ldb, ldc, alpha, beta, A, B, C};
    if (M && N) pl_pool_for((M + ROWS - 1) / ROWS, blas_part, &p);
    return 0;
}
