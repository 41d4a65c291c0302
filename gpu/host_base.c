/* host, its operations for any CPU: GEMM by OpenBLAS, the rest as the compiler
 * vectorises it for the baseline; see host.h. */
#include "gpu/host.h"

#include <cblas.h>

#define HOST(name) pl_base_##name
#define HOST_GEMM_BY_BLAS
enum { LANES = 4, TILE_ROWS = 6 };
#include "gpu/host_gemm.h"
#include "gpu/host_layers.h"
#include "gpu/host_blocks.h"
#include "gpu/host_vector.h"
#include "gpu/host_attention.h"

int pl_base_gemm(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                 int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    if (M && N)
        cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                    tb ? CblasTrans : CblasNoTrans, M, N, K, alpha, A, lda, B, ldb,
                    beta, C, ldc);
    return 0;
}
