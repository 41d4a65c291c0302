/* cuda: a stable sort of few bits (LSD radix sort, 8 bits a pass; Merrill and Grimshaw
 * 2011 is the idea): count the digits of each chunk, sum the counts, place. Integers
 * only: the result does not depend on who counts first. */
#include "gpu/cuda_device.cuh"

enum { DIGITS = 256, ITEMS = 8, CHUNK = PL_BLOCK * ITEMS, WARPS = PL_BLOCK / PL_WARP };

struct pass {
    int n, shift;
    const int32_t *key, *from; /* from NULL: 0, 1, 2 ... */
    int32_t *to, *count;       /* count (chunks, DIGITS) */
};

/* Item i of this thread: a warp's items are neighbours, 32 at a time. */
static __device__ inline int item_at(int i)
{
    return (int)blockIdx.x * CHUNK + pl_warp() * PL_WARP * ITEMS + i * PL_WARP +
           pl_lane();
}

/* DIGITS where there is no item. */
static __device__ inline int digit_of(const struct pass &p, int item)
{
    if (item >= p.n) return DIGITS;
    return (int)((uint32_t)p.key[p.from ? p.from[item] : item] >> p.shift) % DIGITS;
}

static __global__ void count_kernel(struct pass p)
{
    __shared__ int count[DIGITS + 1];
    for (int i = (int)threadIdx.x; i <= DIGITS; i += PL_BLOCK) count[i] = 0;
    __syncthreads();
    for (int i = 0; i < ITEMS; i++) atomicAdd(&count[digit_of(p, item_at(i))], 1);
    __syncthreads();
    p.count[blockIdx.x * DIGITS + threadIdx.x] = count[threadIdx.x];
}

/* One block, thread = digit: counts become where each chunk's items of a digit begin.
 */
static __global__ void places_kernel(int chunks, int32_t *count)
{
    __shared__ int total[DIGITS];
    const int digit = (int)threadIdx.x;
    int sum = 0, start = 0;
    for (int b = 0; b < chunks; b++) sum += count[b * DIGITS + digit];
    total[digit] = sum;
    __syncthreads();
    for (int i = 0; i < digit; i++) start += total[i];
    for (int b = 0; b < chunks; b++) {
        int own = count[b * DIGITS + digit];
        count[b * DIGITS + digit] = start;
        start += own;
    }
}

static __global__ void place_kernel(struct pass p)
{
    __shared__ int begin[WARPS][DIGITS + 1];
    const int warp = pl_warp(), lane = pl_lane();
    int digit[ITEMS], rank[ITEMS];
    for (int i = lane; i <= DIGITS; i += PL_WARP) begin[warp][i] = 0;
    __syncwarp();
    for (int i = 0; i < ITEMS; i++) { /* rank among the warp's items of this digit */
        digit[i] = digit_of(p, item_at(i));
        unsigned same = __match_any_sync(~0u, digit[i]);
        rank[i] = begin[warp][digit[i]] + __popc(same & ((1u << lane) - 1));
        __syncwarp();
        if (lane == __ffs((int)same) - 1) begin[warp][digit[i]] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    int start = p.count[blockIdx.x * DIGITS + threadIdx.x];
    for (int w = 0; w < WARPS; w++) {
        int own = begin[w][threadIdx.x];
        begin[w][threadIdx.x] = start;
        start += own;
    }
    __syncthreads();
    for (int i = 0; i < ITEMS; i++) {
        int item = item_at(i);
        if (item < p.n)
            p.to[begin[warp][digit[i]] + rank[i]] = p.from ? p.from[item] : item;
    }
}

static size_t counts(int n)
{
    return ((size_t)n + CHUNK - 1) / CHUNK * DIGITS;
}

size_t pl_cuda_sort_bytes(int n)
{
    return (counts(n) + 2 * (size_t)n) * sizeof(int32_t);
}

int pl_cuda_sort(int n, int bits, const int32_t *key, void *room, const int32_t **order)
{
    int32_t *count = (int32_t *)room, *buffer[2] = {count + counts(n), NULL};
    const unsigned chunks = (unsigned)(counts(n) / DIGITS);
    struct pass p = {n, 0, key, NULL, NULL, count};
    int rc = 0;
    buffer[1] = buffer[0] + n;
    for (int i = 0; p.shift < bits && !rc; p.shift += 8, i = !i) {
        p.to = buffer[i];
        PL_LAUNCH(count_kernel, chunks, PL_BLOCK, 0, p);
        PL_LAUNCH(places_kernel, 1, PL_BLOCK, 0, (int)chunks, count);
        PL_LAUNCH(place_kernel, chunks, PL_BLOCK, 0, p);
        rc = pl_cuda_launched("sort");
        p.from = p.to;
    }
    *order = p.to;
    return rc;
}
