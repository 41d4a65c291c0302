/* host, its operations for any CPU: GEMM by OpenBLAS, the rest as the compiler
 * vectorises it for the baseline; see host.h. */
#include "gpu/host.h"

#include <cblas.h>

#define HOST(name) pl_base_##name
#define HOST_GEMM_BY_BLAS
enum { LANES = 4, TILE_ROWS = 6 };
#include "gpu/host_pack.h"
#include "gpu/host_tile.h"

static int gemm_to(bool ta, bool tb, bool lower, int M, int N, int K, float alpha,
                   const float *A, int lda, const float *B, int ldb, float beta,
                   const float *D, float *C, int ldc);

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
    const float *A, *B, *D;
    float *C;
};

static void blas_part(void *context, int part)
{
    const struct blas *p = context;
    const int first = part * ROWS, rows = least(ROWS, p->M - first);
    const size_t down = (size_t)first * (p->ta ? 1 : (size_t)p->lda),
                 ldc = (size_t)p->ldc, at = (size_t)first * ldc;
    for (int i = 0; i < rows && p->D != p->C && p->beta != 0; i++)
        memcpy(p->C + at + (size_t)i * ldc, p->D + at + (size_t)i * ldc,
               (size_t)p->N * sizeof *p->C);
    cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans,
                p->tb ? CblasTrans : CblasNoTrans, rows, p->N, p->K, p->alpha,
                p->A + down, p->lda, p->B, p->ldb, p->beta, p->C + at, p->ldc);
}

/* lower: by blocks of columns, narrow ones where they compute little of the rest. */
static int gemm_to(bool ta, bool tb, bool lower, int M, int N, int K, float alpha,
                   const float *A, int lda, const float *B, int ldb, float beta,
                   const float *D, float *C, int ldc)
{
    const int block = !lower ? N : N > 16 * PANEL ? 2 * PANEL : PANEL;
    for (int j = 0; j < N && M; j += block) {
        const int top = lower ? j : 0;
        const size_t at = (size_t)top * (size_t)ldc + (size_t)j;
        struct blas p = {ta,
                         tb,
                         M - top,
                         least(block, N - j),
                         K,
                         lda,
                         ldb,
                         ldc,
                         alpha,
                         beta,
                         A + (size_t)top * (ta ? 1 : (size_t)lda),
                         B + (size_t)j * (tb ? (size_t)ldb : 1),
                         D + at,
                         C + at};
        pl_pool_for((p.M + ROWS - 1) / ROWS, blas_part, &p);
    }
    return 0;
}
