/* Products of rows in groups (struct pl_groups), each group with its own weights: what
 * the plain kernel (cuda_groups.cu) and the one on tensor cores (cuda_groups_mma.cu)
 * share. Loads are read by the kernels, so that nobody waits for them and a graph may
 * be replayed with others: blocks are as many as the fullest case needs, and each finds
 * its group. Results are cut into tiles of PL_TILE rows; every sum over k is made by
 * one thread or tensor core in order. */
#ifndef PL_GPU_CUDA_GROUPS_CUH
#define PL_GPU_CUDA_GROUPS_CUH

#include "gpu/cuda_real.cuh"

constexpr int PL_TILE = 128, PL_BAND = 8;

struct groups {
    struct pl_groups g;
    int in, out;
    const void *a, *b; /* x W, dy W, dy x */
    size_t b_stride;   /* elements from a group's W to the next */
    const float *bias;
    void *c;
    int slots, across; /* tiles of rows, or of out (dW), at most; tiles of columns */
    int width;         /* columns of a tile */
};

/* A tile of the result. */
struct tile {
    int group, column; /* first one */
    int row, end;    /* y, dx: first row of all rows, end of the group's; dW: of out */
    int first, rows; /* dW: the group's rows */
};

/* Where the threads before this one, all of the block, have this sum. */
static __device__ inline int groups_before(int value)
{
    __shared__ int total[PL_WARP];
    int before = 0;
    for (int offset = 1; offset < PL_WARP; offset *= 2) {
        int other = __shfl_xor_sync(~0u, value, offset);
        if (pl_lane() & offset) before += other;
        value += other;
    }
    if (pl_lane() == 0) total[pl_warp()] = value;
    __syncthreads();
    for (int w = 0; w < pl_warp(); w++) before += total[w];
    return before;
}

/* Which group has tile `slot` of rows, its first row and the end of the group; step 0:
 * all rows of group `slot`. A group whose rows begin at f has the tiles f / step + e to
 * (f + load) / step + e, which are never too few, and rows / step + n in all. */
static __device__ inline void groups_find(const struct pl_groups &g, int slot, int step,
                                          int *group, int *row, int *end)
{
    __shared__ int found[3];
    const int each = (g.n + (int)blockDim.x - 1) / (int)blockDim.x;
    const int from = (int)threadIdx.x * each, to = min(from + each, g.n);
    int own = 0;
    if (threadIdx.x < 3) found[threadIdx.x] = 0;
    for (int e = from; e < to; e++) own += g.load[e];
    int first = groups_before(own);
    for (int e = from; e < to; e++) {
        const int end_row = first + g.load[e];
        const int begin = step ? first / step + e : e;
        if (slot >= begin && slot <= (step ? end_row / step + e : e)) {
            found[0] = e;
            found[1] = first + (slot - begin) * step;
            found[2] = end_row;
        }
        first = end_row;
    }
    __syncthreads();
    *group = found[0];
    *row = found[1];
    *end = found[2];
}

/* The tile of this block; false: it has no rows. Tiles go down a band of PL_BAND, then
 * to the next columns, so that those at work at once share their factors in cache. */
template <enum pl_product WHICH>
static __device__ inline bool groups_tile(const struct groups &p, struct tile *t)
{
    const int block = (int)blockIdx.x, band = PL_BAND * p.across;
    if (WHICH == PL_PRODUCT_DW) {
        const int each = p.slots * p.across, inside = block % each;
        int end;
        groups_find(p.g, block / each, 0, &t->group, &t->first, &end);
        t->rows = end - t->first;
        t->row = inside % p.slots * PL_TILE;
        t->end = p.out;
        t->column = inside / p.slots * p.width;
        return t->rows > 0;
    }
    groups_find(p.g, block / band * PL_BAND + block % PL_BAND, PL_TILE, &t->group,
                &t->row, &t->end);
    t->column = block % band / PL_BAND * p.width;
    return t->row < t->end;
}

/* The arguments, and how many blocks. */
static inline struct groups groups_of(enum pl_product which, const struct pl_groups *g,
                                      int in, int out, const void *a, const void *b,
                                      const float *bias, void *c, int width,
                                      unsigned *blocks)
{
    struct groups p = {*g, in, out, a, b, g->stride, bias, c, 0, 0, width};
    const int columns = which == PL_PRODUCT_Y ? out : in;
    p.across = (columns + width - 1) / width;
    p.slots = g->rows / PL_TILE + g->n;
    if (which == PL_PRODUCT_DW) {
        p.slots = (out + PL_TILE - 1) / PL_TILE;
        *blocks = (unsigned)g->n * (unsigned)p.slots * (unsigned)p.across;
    } else {
        *blocks = (unsigned)((p.slots + PL_BAND - 1) / PL_BAND * PL_BAND) *
                  (unsigned)p.across;
    }
    return p;
}

#pragma GCC visibility push(hidden)
/* cuda_groups_mma.cu: on tensor cores, rows of a, b and c 16 bytes apart or multiples
 * of that. */
bool pl_cuda_groups_takes(enum pl_product which, const struct pl_groups *g, int in,
                          int out, const float *a, const float *b, const float *c);
int pl_cuda_groups_mma(enum pl_product which, const struct pl_groups *g, int in,
                       int out, const float *a, const float *b, const float *bias,
                       float *c);
#pragma GCC visibility pop

#endif
