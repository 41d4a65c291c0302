/* host: batches of products, one matrix a part when there are several, and rounding to
 * bf16. Included once for each instruction set, after host_vector.h. */
#ifndef PL_GPU_HOST_BATCH_H
#define PL_GPU_HOST_BATCH_H

struct batch {
    bool ta, tb, symmetric; /* symmetric: op(B) = op(A)^T */
    int M, N, K, lda, ldb, ldc;
    size_t stride_a, stride_b, stride_c;
    float alpha, beta;
    const float *A, *B, *D;
    float *C;
};

static void batch_part(void *context, int i)
{
    const struct batch *p = context;
    const float *A = p->A + (size_t)i * p->stride_a;
    const float *D = p->D + (size_t)i * p->stride_c;
    float *C = p->C + (size_t)i * p->stride_c;
    if (p->symmetric)
        syrk_to(p->ta, p->N, p->K, p->alpha, A, p->lda, p->beta, D, C, p->ldc);
    else
        gemm_to(p->ta, p->tb, false, p->M, p->N, p->K, p->alpha, A, p->lda,
                p->B + (size_t)i * p->stride_b, p->ldb, p->beta, D, C, p->ldc);
}

int HOST(gemm_batch)(int count, bool ta, bool tb, int M, int N, int K, float alpha,
                     const float *A, int lda, size_t stride_a, const float *B, int ldb,
                     size_t stride_b, float beta, const float *addend, float *C,
                     int ldc, size_t stride_c)
{
    struct batch p = {ta,       tb,       false,    M,     N,    K, lda, ldb,    ldc,
                      stride_a, stride_b, stride_c, alpha, beta, A, B,   addend, C};
    pl_pool_for(count, batch_part, &p);
    return 0;
}

int HOST(syrk_batch)(int count, bool ta, int n, int k, float alpha, const float *A,
                     int lda, size_t stride_a, float beta, const float *addend,
                     float *C, int ldc, size_t stride_c)
{
    struct batch p = {ta,       !ta, true,     n,     n,    k, lda,  0,      ldc,
                      stride_a, 0,   stride_c, alpha, beta, A, NULL, addend, C};
    pl_pool_for(count, batch_part, &p);
    return 0;
}

int HOST(round_bf16)(size_t n, const float *x, float *y)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        union {
            float f;
            uint32_t bits;
        } in = {x[i]}, out;
        const uint32_t odd = in.bits >> 16 & 1;
        const uint32_t up = (in.bits + 0x7fff + odd) & 0xffff0000;
        const uint32_t nan = (in.bits & 0xffff0000) | 0x400000;
        out.bits = (in.bits & 0x7fffffff) > 0x7f800000 ? nan : up;
        y[i] = out.f;
    }
    return 0;
}

#endif
