/* bf16 on the tensor cores of sm_80 and later: one function an instruction, each with a
 * plain twin in tests/cuda_shim_mma.h. Lane l of a warp has g = l / 4 and t = l % 4; a
 * register holds two bf16, the one of the lower column (or row) in its lower half.
 * Source: PTX ISA 8.0, mma.m16n8k16, ldmatrix, cp.async. All lanes of a warp take part
 * in mma and ldmatrix. */
#ifndef PL_GPU_CUDA_MMA_CUH
#define PL_GPU_CUDA_MMA_CUH

#ifndef CUDA_SHIM
#include <cuda_bf16.h>
#include <cuda_runtime.h>

/* Both rounded to nearest even. */
static __device__ inline unsigned pl_pair(float lower, float upper)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
    return pair;
}

/* 2^x within 2 units of 2^-23 relative; 2^-inf = 0. */
static __device__ inline float pl_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* c (16,8) += a (16,16) b (16,8). a[0]: row g, columns 2t and 2t + 1; a[1]: row g + 8;
 * a[2], a[3]: the same rows, columns 8 on. b0: rows 2t and 2t + 1 of column g; b1: rows
 * 8 on. c[0], c[1]: row g, columns 2t and 2t + 1; c[2], c[3]: row g + 8. */
static __device__ inline void pl_mma(float c[4], const unsigned a[4], unsigned b0,
                                     unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline unsigned pl_shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices of shared memory: lane l gives the address of row l % 8 (16
 * bytes, aligned) of matrix l / 8; x[i] = row g, columns 2t and 2t + 1 of matrix i. */
static __device__ inline void pl_ldmatrix(unsigned x[4], const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(pl_shared_address(row))
                 : "memory");
}

/* The same, each matrix transposed: x[i] = rows 2t and 2t + 1, column g. */
static __device__ inline void pl_ldmatrix_trans(unsigned x[4], const __nv_bfloat16 *row)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
        : "r"(pl_shared_address(row))
        : "memory");
}

/* Copy BYTES (8 or 16, aligned) from global to shared memory, or, if not wanted, zeros
 * (nothing is read). Seen by this thread after pl_copy_wait, by others after a barrier
 * too. */
template <int BYTES>
static __device__ inline void pl_copy_async(void *shared, const void *global,
                                            bool wanted)
{
    int bytes = wanted ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         pl_shared_address(shared)),
                     "l"(global), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                         pl_shared_address(shared)),
                     "l"(global), "r"(bytes)
                     : "memory");
}

/* Wait for all copies of this thread. */
static __device__ inline void pl_copy_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* The copies of this thread since the last commit become a group, maybe an empty one;
 * wait for all groups but the N latest. */
static __device__ inline void pl_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> static __device__ inline void pl_copy_wait_but(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#endif

#endif
