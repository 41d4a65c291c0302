/* host: vectors of the instruction set, and matrices read through two strides. Included
 * once for each instruction set, with LANES defined. */
#ifndef PL_GPU_HOST_VEC_H
#define PL_GPU_HOST_VEC_H

#include <stddef.h>
#include <stdint.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loose_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t lane_index __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t loose_index
    __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t lane_bits __attribute__((vector_size(4 * LANES), may_alias));

/* Element (i, k) is at[i * row + k * col]. */
struct strided {
    const float *at;
    size_t row, col;
};

static inline int least(int a, int b)
{
    return a < b ? a : b;
}

#endif
